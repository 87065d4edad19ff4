export function browser(): string | undefined
export function installBrowser(): void
