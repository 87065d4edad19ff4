/** Makes JSONL files safe to append to. A task reads and repairs the file; the JS thread reads options and makes the report. */

import { invalidType } from '../runtime/errors.ts'
import { repairFile, unwrap } from '../runtime/native.ts'
import type { Failure, TaskProgress, RepairInput, RepairOutcome } from '../runtime/native.ts'
import {
  choose,
  copyOptions,
  readBoolean,
  readInteger,
  readListener,
  readSignal,
  tableOf,
  withoutPrototype,
  type Cancellable,
} from '../runtime/options.ts'
import { run } from '../runtime/pool.ts'
import { watched, type Done, type Listener } from '../runtime/progress.ts'
import { readDurability, type Durability } from './durability.ts'
import { readPath } from './path.ts'

export type TailPolicy =
  | 'quarantine' // move the torn bytes to a synced sidecar, then cut them off (nothing is lost)
  | 'truncate' // cut them off
  | 'isolate' // leave them and end them with "\n", so that the next row is whole
  | 'strict' // change nothing; reject with ERR_OFFLOOP_TORN if something would change
  | 'report' // change nothing; say what quarantine would do

export interface RepairOptions extends Cancellable {
  /** @default 'quarantine' */
  readonly policy?: TailPolicy | undefined
  /**
   * How much to check: the last row, everything from an offset known to be durable, or the whole file. A repair never cuts off bytes
   * before that offset: a tail that is torn from an earlier byte on rejects with ERR_OFFLOOP_CORRUPT. @default 'tail'
   */
  readonly verify?: 'tail' | 'all' | { readonly since: number } | undefined
  /** @default 'full' */
  readonly durability?: Durability | undefined
  /** Policies that change the file take the log's lock, and reject with ERR_OFFLOOP_LOCKED while another holder has it. @default true */
  readonly lock?: boolean | undefined
  /**
   * Called about ten times a second, and once at the end, always before the promise settles. An error that it throws ends
   * the work and rejects the call. Changes made to the file by then stay.
   */
  readonly onProgress?: ((done: { readonly bytes: number; readonly total: number }) => void) | undefined
}

export type BadRowCause = 'partial' | 'nul' | 'utf8' | 'garbage' | 'glued' | 'nonstandard' | 'too-long'

export interface BadRow {
  readonly offset: number
  readonly length: number
  readonly cause: BadRowCause
}

export interface RepairReport {
  readonly action: 'none' | 'terminated' | 'quarantined' | 'truncated' | 'isolated'
  /** Reason why the tail was not clean. */
  readonly cause: null | 'unterminated' | 'partial' | 'nul' | 'utf8' | 'garbage' | 'glued'
  readonly sizeBefore: number
  readonly size: number
  /** Offset of the torn bytes. */
  readonly offset: number | null
  readonly tornBytes: number
  readonly sidecar: string | null
  /** Bad rows before the tail. A repair never changes them. (`verify` other than 'tail' finds them all.) */
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
const POLICIES = tableOf<TailPolicy>({
  quarantine: 'quarantine',
  truncate: 'truncate',
  isolate: 'isolate',
  strict: 'strict',
  report: 'report',
})
const VERIFY_KEYS = tableOf({ since: true })
/** Offsets that the search for bad rows starts at; null for no search. */
const SEARCHES = tableOf<number | null>({ tail: null, all: 0 })

/** Makes a JSONL file safe to append to. Never removes a row that JSON.parse accepts; completes a row that only lacks its newline. Idempotent. A missing or empty file is clean. */
export async function repair(path: string | URL, options: RepairOptions = {}): Promise<RepairReport> {
  const name = readPath(path)
  const { input, onProgress, signal } = readRepairConfig(options)
  const start = (stopping: AbortSignal | undefined, progress?: TaskProgress): Promise<RepairOutcome | Failure> =>
    run((stop) => repairFile(name, input, progress, stop), { lane: 'files', signal: stopping })
  const notify = ({ bytes, total }: Done): void => onProgress?.({ bytes, total })
  const outcome = await (onProgress === undefined ? start(signal) : watched(notify, signal, start))
  return reportOf(unwrap(outcome))
}

interface RepairConfig {
  readonly input: RepairInput
  readonly onProgress: Listener | undefined
  readonly signal: AbortSignal | undefined
}

function readRepairConfig(given: RepairOptions): RepairConfig {
  const options = copyOptions(given, KEYS)
  const policy = choose('options.policy', options.policy, POLICIES, 'quarantine')
  const from = readSearch(options.verify)
  const durability = readDurability(options.durability, 'full')
  const locks = readBoolean('options.lock', options.lock, true)
  const onProgress = readListener('options.onProgress', options.onProgress)
  const input = withoutPrototype({ policy, durability, locks, ...(from !== null && { verifyFrom: from }) })
  return { input, onProgress, signal: readSignal(options.signal) }
}

function readSearch(verify: RepairOptions['verify']): number | null {
  if (typeof verify !== 'object' || verify === null) return choose('options.verify', verify, SEARCHES, null)
  const { since } = copyOptions(verify, VERIFY_KEYS, 'options.verify')
  const offset = readInteger('options.verify.since', since, 0, Number.MAX_SAFE_INTEGER)
  if (offset === undefined) throw invalidType('options.verify.since', 'of type number', since)
  return offset
}

export function reportOf(outcome: RepairOutcome): RepairReport {
  const { action, cause, sizeBefore, size, offset, tornBytes, sidecar, ...bad } = withoutPrototype(outcome)
  return {
    action,
    cause: cause ?? null,
    sizeBefore,
    size,
    offset: offset ?? null,
    tornBytes,
    sidecar: sidecar ?? null,
    badRows: badRowsOf(bad),
  }
}

type BadColumns = Pick<RepairOutcome, 'badOffsets' | 'badLengths' | 'badCauses'>

function badRowsOf({ badOffsets, badLengths, badCauses }: BadColumns): BadRow[] {
  return badOffsets.map((offset, row) => {
    return { offset, length: badLengths[row] ?? 0, cause: badCauses[row] ?? 'garbage' }
  })
}
