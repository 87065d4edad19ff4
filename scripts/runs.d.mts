export interface BenchRun {
  version: string | undefined
  args: string[]
  label: string
}
export const NODES: string[]
export const HEADLINE_NODE: string
export function runsOf(noun: string, options?: { isQuick?: boolean; areAllNodes?: boolean }): BenchRun[]
export function lineOf(node: string, noun: string, args?: string[]): string
