export function python(name?: 'comparisons' | 'servers'): string | undefined
