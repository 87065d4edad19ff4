export function failuresOf(output: string): string[]
export function count(output: string): { passed: number; failed: number }
