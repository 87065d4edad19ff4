import type { CallReport, CallRow, CallTimes } from '../benchmark/json/report.ts'

export function goalsOf(row: CallRow, node: string): CallTimes
export function missesOf(row: CallRow, node: string): string[]
export function callSections(reports: readonly CallReport[]): string[]
export function withCallTables(text: string, reports: readonly CallReport[]): string
export function mergedReport(before: CallReport, after: CallReport): CallReport
