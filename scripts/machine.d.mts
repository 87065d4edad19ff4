export function origin(what: string): string
export function day(): string
export function machine(): string
export function revision(): string
export function triple(): string
