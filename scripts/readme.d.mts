import type { StepReport } from '../benchmark/step/figures.ts'

export function withStepTable(text: string, report: Pick<StepReport, 'node' | 'heapMb' | 'second'>): string
