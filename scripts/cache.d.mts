export function cacheFolder(name: string): string
