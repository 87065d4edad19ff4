/** Rows that are written together, and those who wait for them. */

import { errorOf, writeGroup, writeGroupSync } from '../native.ts'
import type { Failure, GroupWritten, LogFile, TapeParts } from '../native.ts'
import { run } from '../pool.ts'
import type { Queued } from '../queue.ts'
import type { Sheet } from '../sheet.ts'

/** Who waits for one row. */
export interface Waiter {
  written(offset: number, length: number): void
  failed(error: unknown): void
}

/** What became of a group. */
export interface Landed {
  readonly offset: number
  /** Of the rows that are in the file, as durably as was asked for. */
  readonly rows: number
  readonly bytes: number
  /** System calls since the file was opened. */
  readonly calls: { readonly writes: number; readonly syncs: number } | undefined
  /** Why the other rows are not. */
  readonly error: unknown
  /** The file was not touched. */
  readonly isUntouched: boolean
}

export class Group implements Queued<Group> {
  before: Group | undefined
  after: Group | undefined
  readonly sheet: Sheet
  readonly waiters: Waiter[] = []
  /** Sync what a durability of 'none' leaves unsynced. */
  flushes = false
  /** The addon has it. */
  isLaunched = false
  isSettled = false
  /** Told when it is settled, and why not all of it was written. */
  readonly #followers: ((error: unknown) => void)[] = []
  #captured: Captured | undefined

  constructor(sheet: Sheet) {
    this.sheet = sheet
  }

  /** There is nothing to be done. */
  get isIdle(): boolean {
    return this.waiters.length === 0 && !this.flushes
  }

  /** Settled when the group is; rejected where some of it was not written. */
  async follow(): Promise<void> {
    if (this.isSettled) return
    await new Promise<void>((resolve, reject) => {
      this.#followers.push((error) => (error === undefined ? resolve() : reject(error)))
    })
  }

  /** In a task. Where `writeNow` was called before that began, it finds nothing to write. */
  async write(file: LogFile): Promise<Landed> {
    const { parts, ends } = this.#capture()
    const { lexicon, layout, expectedSize } = this.sheet
    const memory = new Uint8Array(ends.buffer)
    try {
      const launch = (): Promise<GroupWritten | Failure> => {
        this.isLaunched = true
        return writeGroup(file, parts, lexicon, layout, expectedSize, memory, this.flushes)
      }
      return landedOf(await run(launch, { lane: 'files' }))
    } catch (error) {
      return { ...NOTHING, error }
    }
  }

  /** On this thread. */
  writeNow(file: LogFile): Landed {
    const { parts, ends } = this.#capture()
    const { lexicon, layout, expectedSize } = this.sheet
    const memory = new Uint8Array(ends.buffer)
    return landedOf(writeGroupSync(file, parts, lexicon, layout, expectedSize, memory, this.flushes))
  }

  #capture(): Captured {
    this.#captured ??= { parts: this.sheet.finish(), ends: new Float64Array(this.waiters.length) }
    return this.#captured
  }

  settle({ offset, rows, error }: Landed): void {
    this.isSettled = true
    this.sheet.release()
    const ends = this.#captured?.ends
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
    for (const tell of this.#followers) tell(error)
  }
}

interface Captured {
  readonly parts: TapeParts
  /** Where each row ends: private memory, which a task fills. */
  readonly ends: Float64Array
}

export const NOTHING: Landed = {
  offset: 0,
  rows: 0,
  bytes: 0,
  calls: undefined,
  error: undefined,
  isUntouched: false,
}

function landedOf(outcome: GroupWritten | Failure): Landed {
  if ('code' in outcome) return { ...NOTHING, error: errorOf(outcome) }
  const { offset, rows, bytes, writes, syncs, failure, isUntouched } = outcome
  const error = failure === undefined ? undefined : errorOf(failure)
  return { offset, rows, bytes, calls: { writes, syncs }, error, isUntouched }
}
