/** Figures of a step, both ways, and how they are shown. Runs on the JS thread; `step.ts`, `page.ts` and `picture.mjs` use them. */

import { INTERVAL_MS } from './lag.ts'
import type { Felt, Way } from './orchestrator.ts'
import type { Sizes } from './plan.ts'

/** A step run one way. */
export interface Run extends Felt {
  /** How long each ping took, in milliseconds. */
  readonly pings: readonly number[]
}

/** A step run both ways. */
export type Runs = Readonly<Record<Way, Run>>

export interface Result {
  /** Version of Node, as `process.version` has it. */
  readonly node: string
  /** Live objects that were asked for, in 10⁶ bytes. */
  readonly heapMb: number
  readonly sizes: Sizes
  /** Bytes of all responses of a step. */
  readonly bytes: number
  /** The first step of each process, which warms up. */
  readonly first: Runs
  /** The second step, which counts. */
  readonly second: Runs
}

/** What `--json` prints of a run. */
export interface Figures {
  readonly blockedMs: number
  readonly lagP50Ms: number
  readonly lagP99Ms: number
  readonly lagMaxMs: number
  readonly pingP99Ms: number
  readonly stepMs: number
  readonly cpuMs: number
  /** Peak resident memory of the process, from its start to the end of this step. */
  readonly peakBytes: number
}

/** Figures of both ways, and plain ÷ offloop; a ratio is null where nothing was measured, as of a loop that was never blocked. */
export interface Compared {
  readonly plain: Figures
  readonly offloop: Figures
  readonly ratios: Readonly<Record<keyof Figures, number | null>>
}

/** The object that `--json` prints. */
export interface StepReport extends Sizes {
  readonly offloop: string
  readonly node: string
  readonly heapMb: number
  readonly bytes: number
  readonly first: Compared
  readonly second: Compared
}

const SHOWN: Readonly<Record<keyof Figures, { readonly name: string; readonly show: (value: number) => string }>> = {
  blockedMs: { name: 'blocked, in all', show: showMs },
  lagP50Ms: { name: 'loop lag, p50', show: showMs },
  lagP99Ms: { name: 'loop lag, p99', show: showMs },
  lagMaxMs: { name: 'loop lag, max', show: showMs },
  pingP99Ms: { name: 'ping, p99', show: showMs },
  stepMs: { name: 'step time', show: showMs },
  cpuMs: { name: 'CPU time', show: showMs },
  peakBytes: { name: 'peak RSS', show: showBytes },
}
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `SHOWN` has exactly the keys of `Figures`
const KEYS = Object.keys(SHOWN) as (keyof Figures)[]

export function reportOf({ node, heapMb, sizes, bytes, first, second }: Result, version: string): StepReport {
  return { offloop: version, node, heapMb, ...sizes, bytes, first: compare(first), second: compare(second) }
}

export function compare({ plain, offloop }: Runs): Compared {
  const [theirs, ours] = [figuresOf(plain), figuresOf(offloop)]
  const ratioOf = (key: keyof Figures): number | null => {
    const ratio = theirs[key] / ours[key]
    return Number.isFinite(ratio) ? ratio : null
  }
  return {
    plain: theirs,
    offloop: ours,
    ratios: {
      blockedMs: ratioOf('blockedMs'),
      lagP50Ms: ratioOf('lagP50Ms'),
      lagP99Ms: ratioOf('lagP99Ms'),
      lagMaxMs: ratioOf('lagMaxMs'),
      pingP99Ms: ratioOf('pingP99Ms'),
      stepMs: ratioOf('stepMs'),
      cpuMs: ratioOf('cpuMs'),
      peakBytes: ratioOf('peakBytes'),
    },
  }
}

function figuresOf({ samples, pings, stepMs, cpuMs, peakBytes }: Run): Figures {
  const lags = samples.map(({ lag }) => lag)
  return {
    // What a timer of 10 ms notices.
    blockedMs: lags.reduce((sum, lag) => (INTERVAL_MS < lag ? sum + lag : sum), 0),
    lagP50Ms: at(0.5, lags),
    lagP99Ms: at(0.99, lags),
    lagMaxMs: at(1, lags),
    pingP99Ms: at(0.99, pings),
    stepMs,
    cpuMs,
    peakBytes,
  }
}

/** The first line of the table: Node's version and the live heap, then the columns. */
export function headOf({ node, heapMb }: Pick<Result, 'node' | 'heapMb'>): string[] {
  return [`Node ${node}, ${heapMb} MB live`, 'plain', 'offloop', 'plain ÷ offloop']
}

/** The other lines, as text. */
export function rowsOf({ plain, offloop, ratios }: Compared): string[][] {
  return KEYS.map((key) => {
    const { name, show } = SHOWN[key]
    return [name, show(plain[key]), show(offloop[key]), showTimes(ratios[key])]
  })
}

export function longestMs({ samples }: Run): number {
  return samples.reduce((longest, { lag }) => Math.max(longest, lag), 0)
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

function showTimes(times: number | null): string {
  return times === null ? '–' : `${times.toFixed(times < 10 ? 1 : 0)}×`
}
