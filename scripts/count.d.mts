export function count(output: string): { passed: number; failed: number }
