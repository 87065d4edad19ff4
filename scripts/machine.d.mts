export function origin(what: string): string
