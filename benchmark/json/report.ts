/** Reports of `json-calls.ts`. Types only; `scripts/calls-table.mjs` makes tables of it. */

/** Sink of the bytes: none, or a receiver end to end. `sync` is `encodeSync`. */
export type Sink = 'bytes' | 'response' | 'file' | 'fetch' | 'sync'

/**
 * How bytes are made. `plain` is `Buffer.from(JSON.stringify(value))`, or the string alone where a sink takes it;
 * `worker` is JSON.stringify in a worker thread.
 */
export type Way = 'plain' | 'worker' | 'offloop'

/** Milliseconds of loop time of one call. */
export interface CallTimes {
  readonly first: number
  /** Mean of the first 20 calls. */
  readonly twenty: number
  /** Mean of calls 100 to 200, or of the second half of fewer calls. */
  readonly warm: number
}

export interface CallRow {
  readonly sink: Sink
  /** Baseline that offloop is compared with. */
  readonly baseline: Exclude<Way, 'offloop'>
  readonly shape: string
  /** Bytes of the JSON. */
  readonly size: number
  readonly heapMb: number
  /** Null where the baseline makes other bytes. */
  readonly plain: CallTimes | null
  readonly offloop: CallTimes
}

export interface CallReport {
  /** Version of Node. */
  readonly node: string
  readonly day: string
  readonly commit: string
  readonly machine: string
  readonly rows: readonly CallRow[]
}
