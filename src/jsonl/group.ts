/** Group of rows that share one write and one sync. Lives on the JS thread, is written by a task; logs use it. */

import { errorOf, isFailure, writeGroup, writeGroupSync } from '../runtime/native.ts'
import type { Failure, GroupReport, LogFile, WriteGroupInput } from '../runtime/native.ts'
import { withoutPrototype } from '../runtime/options.ts'
import { run } from '../runtime/pool.ts'
import type { Queued } from '../runtime/queue.ts'
import type { RowBuffer } from '../encode/row-buffer.ts'

/** Gets the result of one row. */
export interface RowWaiter {
  written(offset: number, length: number): void
  failed(error: unknown): void
}

/** Result of writing a group. */
export interface GroupOutcome {
  /** Offset of the first row. */
  readonly offset: number
  /** Number of rows that are in the file, at the durability of the log. */
  readonly rows: number
  readonly bytes: number
  /** System calls since the file was opened. */
  readonly calls: { readonly writes: number; readonly syncs: number } | undefined
  /** Why the other rows are not in the file. */
  readonly error: unknown
  /** The file was not touched: later groups can be written. */
  readonly isUntouched: boolean
}

export class RowGroup implements Queued<RowGroup> {
  before: RowGroup | undefined
  after: RowGroup | undefined
  readonly rowBuffer: RowBuffer
  readonly waiters: RowWaiter[] = []
  /** Sync what durability 'none' leaves unsynced. */
  flushes = false
  /** The task that writes the group has been launched. */
  isLaunched = false
  isSettled = false
  /** Called when the group is settled, with the error if some rows were not written. */
  readonly #followers: ((error: unknown) => void)[] = []
  #capture: GroupCapture | undefined

  constructor(rowBuffer: RowBuffer) {
    this.rowBuffer = rowBuffer
  }

  /** The group has no rows, and nobody waits for it. */
  get isIdle(): boolean {
    return this.waiters.length === 0 && !this.flushes && this.#followers.length === 0
  }

  /** Settles with the group; rejects if some rows were not written. */
  async follow(): Promise<void> {
    if (this.isSettled) return
    await new Promise<void>((resolve, reject) => {
      this.#followers.push((error) => (error === undefined ? resolve() : reject(error)))
    })
  }

  /** Writes the group in a task. The task and `LogFile.finish` race for it: the winner writes, the task reports. */
  async write(file: LogFile): Promise<GroupOutcome> {
    try {
      const { input } = this.#captured()
      const launch = (): Promise<GroupReport | Failure> => {
        this.isLaunched = true
        return writeGroup(file, { ...input, flushes: this.flushes })
      }
      return outcomeOf(await run(launch, { lane: 'files' }))
    } catch (error) {
      return { ...NOTHING_WRITTEN, error }
    }
  }

  /** Writes the group on the JS thread. */
  writeNow(file: LogFile): GroupOutcome {
    try {
      const { input } = this.#captured()
      return outcomeOf(writeGroupSync(file, { ...input, flushes: this.flushes }))
    } catch (error) {
      // There is no memory for the bytes of a row.
      return { ...NOTHING_WRITTEN, error }
    }
  }

  #captured(): GroupCapture {
    if (this.#capture !== undefined) return this.#capture
    const tape = this.rowBuffer.finish()
    const { lexicon, layout, expectedSize: size } = this.rowBuffer
    const ends = new Float64Array(this.waiters.length)
    this.#capture = { input: { tape, lexicon, layout, size, ends: new Uint8Array(ends.buffer) }, ends }
    return this.#capture
  }

  settle({ offset, rows, error }: GroupOutcome): void {
    this.isSettled = true
    this.rowBuffer.release()
    const ends = this.#capture?.ends
    let start = 0
    for (const [index, waiter] of this.waiters.entries()) {
      const end = index < rows ? ends?.[index] : undefined
      if (end === undefined) {
        waiter.failed(error)
        continue
      }
      waiter.written(offset + start, end - start - 1)
      start = end
    }
    for (const follow of this.#followers) follow(error)
  }
}

interface GroupCapture {
  readonly input: Omit<WriteGroupInput, 'flushes'>
  /** End of each row, relative to the start of the first row. The writer fills it. */
  readonly ends: Float64Array
}

export const NOTHING_WRITTEN: GroupOutcome = {
  offset: 0,
  rows: 0,
  bytes: 0,
  calls: undefined,
  error: undefined,
  isUntouched: false,
}

function outcomeOf(report: GroupReport | Failure): GroupOutcome {
  if (isFailure(report)) return { ...NOTHING_WRITTEN, error: errorOf(report) }
  const { offset, rows, bytes, writes, syncs, failure, isUntouched } = withoutPrototype(report)
  const error = failure === undefined ? undefined : errorOf(failure)
  return { offset, rows, bytes, calls: { writes, syncs }, error, isUntouched }
}
