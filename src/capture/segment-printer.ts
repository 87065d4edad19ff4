/**
 * Prints full segments of a tape while the capture goes on, so that the tape can write them again. Runs on the JS thread;
 * tasks print. A tape has one from its first full large segment on.
 */

import { onAbort } from '../runtime/abort.ts'
import {
  check,
  printSegments,
  printSegmentsSync,
  Stop,
  unwrap,
  type Lexicon,
  type TapeParts,
} from '../runtime/native.ts'
import { isAborted, run, startWaiting } from '../runtime/pool.ts'
import type { Places } from './places.ts'
import {
  addSegment,
  expectedOf,
  giveIdle,
  usualSizeOf,
  type Sealed,
  type Segment,
  type SegmentRoom,
} from './segment.ts'

/** How segments are printed early. */
export interface EarlyPrint {
  /** Whether the tape is rows of JSON Lines. */
  readonly hasRows: boolean
  /** Whether they are printed on the JS thread, not by tasks. */
  readonly isSync: boolean
}

/** A segment on its way through the queue of the addon. */
interface Entry {
  next: Entry | undefined
  /** Place on the tape. */
  readonly index: number
  readonly sealed: Sealed
  /** Index of its first long string. */
  readonly firstLong: number
  /** Estimated bytes of its JSON. */
  readonly usual: number
  /** Whether the addon copies it: the first segment of a tape belongs to the tape. */
  readonly isCopied: boolean
  isQueued: boolean
}

export class SegmentPrinter {
  /** Estimated bytes of JSON of the streams of all segments. */
  usualSize = 0
  /** Words in all segments. */
  words = 0
  readonly #parts: TapeParts
  readonly #lexicon: Lexicon
  readonly #places: Places
  readonly #early: EarlyPrint

  /** Segments that the tape cannot write again yet, in the order of the tape. */
  #first: Entry | undefined
  #last: Entry | undefined
  #count = 0
  #longs = 0
  #longSize = 0
  /** Estimated bytes of the segments that were printed and left the list. */
  #printedUsual = 0

  /** Tasks that have not reported their end, and those of them that wait for a slot. */
  #tasks = 0
  #waiting = 0
  readonly #stop: Stop = new Stop()
  #isStopped = false
  #failure: { readonly error: unknown } | undefined
  /** Functions that wait for the end of all tasks. */
  #onEnd: (() => void) | undefined

  constructor(parts: TapeParts, lexicon: Lexicon, places: Places, early: EarlyPrint) {
    this.#parts = parts
    this.#lexicon = lexicon
    this.#places = places
    this.#early = early
  }

  /** Adds the next segment of the tape. */
  add(sealed: Sealed, isCopied: boolean): void {
    const { longs, longSize, words } = sealed
    const size = usualSizeOf(sealed)
    const usual = size + longSize - this.#longSize
    const firstLong = this.#longs
    const entry = { next: undefined, index: this.#count, sealed, firstLong, usual, isCopied, isQueued: false }
    if (this.#last === undefined) this.#first = entry
    else this.#last.next = entry
    this.#last = entry
    this.#count += 1
    this.#longs = longs
    this.#longSize = longSize
    this.usualSize += size
    this.words += words
  }

  /** Queues all segments but those with bytes that are taken later. Launches tasks that print them. */
  queueAll(): void {
    if (this.#failure !== undefined) throw this.#failure.error
    for (let entry = this.#first; entry !== undefined; entry = entry.next) {
      if (!entry.isQueued && !this.#places.hasBetween(entry.firstLong, entry.sealed.longs)) this.#queue(entry)
    }
    // A task of ours may have ended, which the event loop does not know yet.
    if (0 < this.#waiting) startWaiting()
  }

  #queue(entry: Entry): void {
    const { index, sealed, firstLong, usual, isCopied } = entry
    const { segment, words, doubles, bytes, rope, runs, longs } = sealed
    // From here on a task may read it.
    entry.isQueued = true
    if (isCopied) check(this.#parts.copySegment(segment.native, words, doubles, bytes, rope, runs))
    else addSegment(this.#parts, sealed)
    const needsTask = unwrap(this.#parts.queueSegment(index, firstLong, longs, expectedOf(usual)))
    if (this.#early.isSync) unwrap(printSegmentsSync(this.#parts, this.#lexicon, this.#early.hasRows))
    else if (needsTask) void this.#print()
  }

  /** Runs a task that prints until the queue is empty. */
  async #print(): Promise<void> {
    this.#tasks += 1
    this.#waiting += 1
    let isWaiting = true
    try {
      const launch = (): ReturnType<typeof printSegments> => {
        isWaiting = false
        this.#waiting -= 1
        return printSegments(this.#parts, this.#lexicon, this.#early.hasRows, this.#stop)
      }
      const outcome = await run(launch, { first: true })
      if (isAborted(outcome)) this.#isStopped = true
      else unwrap(outcome)
    } catch (error) {
      if (isWaiting) this.#waiting -= 1
      this.#failure ??= { error }
      this.#stop.request()
    }
    this.#tasks -= 1
    if (this.#tasks === 0) this.#onEnd?.()
  }

  /** Removes a segment of that room that is printed, for the tape to write it again. */
  takeBack(room: SegmentRoom): Segment | undefined {
    let before: Entry | undefined
    for (let entry = this.#first; entry !== undefined; entry = entry.next) {
      if (!entry.isCopied && entry.sealed.segment.room === room && this.#isPrinted(entry)) {
        this.#remove(entry, before)
        return entry.sealed.segment
      }
      before = entry
    }
    return undefined
  }

  #isPrinted({ isQueued, index }: Entry): boolean {
    return isQueued && this.#parts.isPrinted(index)
  }

  #remove(entry: Entry, before: Entry | undefined): void {
    if (before === undefined) this.#first = entry.next
    else before.next = entry.next
    if (this.#last === entry) this.#last = before
    this.#printedUsual += entry.usual
  }

  /** Printed bytes beyond their estimate. */
  get excess(): number {
    let usual = this.#printedUsual
    for (let entry = this.#first; entry !== undefined; entry = entry.next) {
      if (this.#isPrinted(entry)) usual += entry.usual
    }
    return this.#parts.printedSize - usual
  }

  /**
   * Waits until all segments are printed. Rejects with the error of a task, or at once with the reason of the signal.
   */
  async end(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    if (0 < this.#tasks) await this.#ended(signal)
    if (this.#failure !== undefined) throw this.#failure.error
    // The task found its flag raised.
    if (this.#isStopped) throw signal?.reason
  }

  async #ended(signal: AbortSignal | undefined): Promise<void> {
    let unwatch: (() => void) | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        this.#onEnd = resolve
        if (signal !== undefined) unwatch = onAbort(signal, () => reject(signal.reason))
      })
    } finally {
      unwatch?.()
    }
  }

  /** Stops all tasks. Returns false if there is none; otherwise calls back when the last one has ended. */
  stop(callback: () => void): boolean {
    if (this.#tasks === 0) return false
    this.#stop.request()
    this.#onEnd = callback
    return true
  }

  /** Makes all segments idle. No task reads them any more. */
  release(): void {
    for (let entry = this.#first; entry !== undefined; entry = entry.next) {
      if (!entry.isCopied) giveIdle(entry.sealed.segment)
    }
    this.#first = undefined
    this.#last = undefined
  }
}
