export interface Section {
  noun: string
  node: string
  commit: string
  machine: string
  code: number
  output: string
}
export function keep(folder: string, day: string, sections: Section[]): void
