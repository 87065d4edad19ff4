export function python(): string | undefined
