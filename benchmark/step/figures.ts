/** What a step felt like, both ways, in numbers, and how they are shown. */

import type { Felt, Way } from './orchestrator.ts'
import { INTERVAL_MS } from './lag.ts'
import type { Sizes } from './plan.ts'

/** A step run one way. */
export interface Run extends Felt {
  /** How long each ping took, in milliseconds. */
  readonly pings: readonly number[]
}

export interface Result {
  readonly sizes: Sizes
  /** Bytes of all responses. */
  readonly bytes: number
  readonly runs: Readonly<Record<Way, Run>>
}

interface Figure {
  readonly name: string
  readonly of: (run: Run) => number
  readonly show: (value: number) => string
}

const FIGURES: readonly Figure[] = [
  { name: 'loop lag, p50', of: ({ samples }) => at(0.5, lagsOf(samples)), show: showMs },
  { name: 'loop lag, p90', of: ({ samples }) => at(0.9, lagsOf(samples)), show: showMs },
  { name: 'loop lag, p99', of: ({ samples }) => at(0.99, lagsOf(samples)), show: showMs },
  { name: 'loop lag, max', of: ({ samples }) => at(1, lagsOf(samples)), show: showMs },
  { name: 'ping, p99', of: ({ pings }) => at(0.99, pings), show: showMs },
  { name: 'ping, max', of: ({ pings }) => at(1, pings), show: showMs },
  { name: 'blocked, in all', of: blockedMs, show: showMs },
  { name: 'step time', of: ({ stepMs }) => stepMs, show: showMs },
  { name: 'CPU time', of: ({ cpuMs }) => cpuMs, show: showMs },
  { name: 'peak RSS', of: ({ peakBytes }) => peakBytes, show: showBytes },
]

export const HEAD: readonly string[] = ['', 'plain', 'offloop', 'plain ÷ offloop']

/** Rows of the table, as text: what, plain, offloop, and how many times the second the first is. */
export function rowsOf({ plain, offloop }: Result['runs']): string[][] {
  return FIGURES.map(({ name, of, show }) => [
    name,
    show(of(plain)),
    show(of(offloop)),
    showTimes(of(plain) / of(offloop)),
  ])
}

export function longestMs({ samples }: Run): number {
  return at(1, lagsOf(samples))
}

/** By holds that a timer of 10 ms notices. */
function blockedMs({ samples }: Run): number {
  return lagsOf(samples).reduce((sum, lag) => (INTERVAL_MS < lag ? sum + lag : sum), 0)
}

function lagsOf(samples: Run['samples']): number[] {
  return samples.map(({ lag }) => lag)
}

function at(share: number, values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(share * values.length) - 1] ?? 0
}

export function showMs(ms: number): string {
  if (ms < 100) return `${ms.toFixed(1)} ms`
  return ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(2)} s`
}

function showBytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`
}

function showTimes(times: number): string {
  return `${times < 10 ? times.toFixed(1) : times.toFixed(0)}×`
}
