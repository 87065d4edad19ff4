/** Makes JSONL files safe to append to. */

import { invalidType } from '../errors.ts'
import { FileDurability, RepairAction, repairFile, RowCause, TailPolicy as Policy, unwrap } from '../native.ts'
import type { Failure, Progress, Repaired, RepairSettings } from '../native.ts'
import {
  checkKeys,
  choose,
  readBoolean,
  readInteger,
  readListener,
  readSignal,
  tableOf,
  type Cancellable,
} from '../options.ts'
import { run } from '../pool.ts'
import { watched, type Done, type Listener } from '../progress.ts'
import { readDurability, type Durability } from './durability.ts'
import { readPath } from './path.ts'

export type TailPolicy =
  | 'quarantine' // move the torn bytes to a synced sidecar, then cut them off (nothing lost)
  | 'truncate' // cut them off
  | 'isolate' // leave them, end them with "\n" so that the next row is whole
  | 'strict' // change nothing, reject with ERR_OFFLOOP_TORN if anything would change
  | 'report' // change nothing, say what quarantine would do

export interface RepairOptions extends Cancellable {
  /** @default 'quarantine' */
  readonly policy?: TailPolicy | undefined
  /**
   * How much to check: the last row, everything from an offset known to be durable, or the whole file. No byte before
   * that offset is ever cut off: a tail that is torn from before it rejects with ERR_OFFLOOP_CORRUPT. @default 'tail'
   */
  readonly verify?: 'tail' | 'all' | { readonly since: number } | undefined
  /** @default 'full' */
  readonly durability?: Durability | undefined
  /** Policies that change the file take the log's lock and reject with ERR_OFFLOOP_LOCKED while somebody holds it. @default true */
  readonly lock?: boolean | undefined
  /**
   * Told about ten times a second, and once when all is done, always before the promise settles. What it throws ends
   * the work and rejects the call; what was done to the file by then stays done.
   */
  readonly onProgress?: ((done: { readonly bytes: number; readonly total: number }) => void) | undefined
}

export type BadRowCause = 'partial' | 'nul' | 'utf8' | 'garbage' | 'glued' | 'nonstandard'

export interface BadRow {
  readonly offset: number
  readonly length: number
  readonly cause: BadRowCause
}

export interface RepairReport {
  readonly action: 'none' | 'terminated' | 'quarantined' | 'truncated' | 'isolated'
  /** Why the tail was not clean. */
  readonly cause: null | 'unterminated' | 'partial' | 'nul' | 'utf8' | 'garbage' | 'glued'
  readonly sizeBefore: number
  readonly size: number
  /** Where the torn bytes begin, and how many they are. */
  readonly offset: number | null
  readonly tornBytes: number
  readonly sidecar: string | null
  /** Bad rows before the tail, never touched by a repair (`verify` other than 'tail' finds them all). */
  readonly badRows: readonly BadRow[]
}

const KEYS = tableOf({
  policy: true,
  verify: true,
  durability: true,
  lock: true,
  onProgress: true,
  signal: true,
})
const POLICIES = tableOf({
  quarantine: Policy.Quarantine,
  truncate: Policy.Truncate,
  isolate: Policy.Isolate,
  strict: Policy.Strict,
  report: Policy.Report,
})
const VERIFY_KEYS = tableOf({ since: true })
/** Where the search for bad rows begins. */
const SEARCHES = tableOf<number | null>({ tail: null, all: 0 })

const ACTIONS: Readonly<Record<RepairAction, RepairReport['action']>> = {
  [RepairAction.None]: 'none',
  [RepairAction.Terminated]: 'terminated',
  [RepairAction.Quarantined]: 'quarantined',
  [RepairAction.Truncated]: 'truncated',
  [RepairAction.Isolated]: 'isolated',
}
const ROW_CAUSES = {
  [RowCause.Partial]: 'partial',
  [RowCause.Nul]: 'nul',
  [RowCause.Utf8]: 'utf8',
  [RowCause.Garbage]: 'garbage',
  [RowCause.Glued]: 'glued',
} as const
const CAUSES: Readonly<Record<number, RepairReport['cause']>> = {
  ...ROW_CAUSES,
  [RowCause.Unterminated]: 'unterminated',
}
const BAD_CAUSES: Readonly<Record<number, BadRowCause>> = { ...ROW_CAUSES, [RowCause.Nonstandard]: 'nonstandard' }

/** Makes a JSONL file safe to append to. Never removes a row JSON.parse accepts; completes one that only lacks its newline. Idempotent. A missing or empty file is clean. */
export async function repair(path: string | URL, options: RepairOptions = {}): Promise<RepairReport> {
  const name = readPath(path)
  const { settings, onProgress, signal } = readRules(options)
  const start = (stopping: AbortSignal | undefined, progress?: Progress): Promise<Repaired | Failure> =>
    run((stop) => repairFile(name, settings, progress, stop), { lane: 'files', signal: stopping })
  const tell = ({ bytes, total }: Done): void => onProgress?.({ bytes, total })
  const outcome = await (onProgress === undefined ? start(signal) : watched(tell, signal, start))
  return reportOf(unwrap(outcome))
}

interface Rules {
  readonly settings: RepairSettings
  readonly onProgress: Listener | undefined
  readonly signal: AbortSignal | undefined
}

function readRules(options: RepairOptions): Rules {
  checkKeys(options, KEYS)
  const policy = choose('options.policy', options.policy, POLICIES, Policy.Quarantine)
  const from = readSearch(options.verify)
  const durability = readDurability(options.durability, FileDurability.Full)
  const locks = readBoolean('options.lock', options.lock, true)
  const onProgress = readListener('options.onProgress', options.onProgress)
  const settings = { policy, durability, locks, ...(from !== null && { verifyFrom: from }) }
  return { settings, onProgress, signal: readSignal(options.signal) }
}

function readSearch(verify: RepairOptions['verify']): number | null {
  if (typeof verify !== 'object' || verify === null) return choose('options.verify', verify, SEARCHES, null)
  checkKeys(verify, VERIFY_KEYS, 'options.verify')
  const { since } = verify
  const offset = readInteger('options.verify.since', since, 0, Number.MAX_SAFE_INTEGER)
  if (offset === undefined) throw invalidType('options.verify.since', 'of type number', since)
  return offset
}

export function reportOf(repaired: Repaired): RepairReport {
  const { action, cause, sizeBefore, size, offset, tornBytes, sidecar, badRows } = repaired
  return {
    action: ACTIONS[action],
    cause: cause === undefined ? null : (CAUSES[cause] ?? null),
    sizeBefore,
    size,
    offset: offset ?? null,
    tornBytes,
    sidecar: sidecar ?? null,
    badRows: badRowsOf(badRows),
  }
}

/** From three numbers each. */
function badRowsOf(numbers: readonly number[]): BadRow[] {
  const rows: BadRow[] = []
  for (let at = 0; at < numbers.length; at += 3) {
    const [offset = 0, length = 0, cause = 0] = numbers.slice(at, at + 3)
    rows.push({ offset, length, cause: BAD_CAUSES[cause] ?? 'garbage' })
  }
  return rows
}
