/** Ledger of a batcher: counts of its items, reports of dropped ones, flushes that wait. Lives on the JS thread. */

import { setImmediate } from 'node:timers'
import { warn } from '../warn.ts'

const { queueMicrotask: soon } = globalThis

export interface Drop {
  readonly reason: 'full' | 'closed' | 'too-large' | 'unencodable' | 'rejected'
  readonly items: number
  readonly error?: unknown
}

/** Refusal of one item. `page` is absent if the item reached no page. */
export interface Refusal extends Omit<Drop, 'items'> {
  readonly page?: number | undefined
}

export type OnDrop = ((drop: Drop) => void) | undefined

export class Ledger {
  /** Items added, including refused ones. */
  added = 0
  sent = 0
  dropped = 0
  retries = 0
  /** Bytes held: captured items, pages, bodies being sent. */
  bytes = 0
  readonly #reports: DropReports
  readonly #flushes = new Set<BatcherFlush>()

  constructor(onDrop: OnDrop) {
    this.#reports = new DropReports(onDrop)
  }

  get queued(): number {
    return this.added - this.sent - this.dropped
  }

  /** Counts an item as dropped and reports it before returning false. */
  refuse({ page = Infinity, ...drop }: Refusal): false {
    this.settle('dropped', 1, page)
    this.#reports.reportNow({ ...drop, items: 1 })
    return false
  }

  /** Reports dropped items once no code of the batcher is running. `settle` counts them. */
  report(drop: Drop): void {
    this.#reports.add(drop)
  }

  /** Counts items of a page as sent or dropped, for the batcher and for its flushes. */
  settle(how: 'sent' | 'dropped', items: number, page: number): void {
    this[how] += items
    for (const flush of this.#flushes) if (page <= flush.page) flush.count(how, items)
  }

  /** Starts a flush: it ends when all items of pages up to `page` are sent or dropped. */
  waitFor(page: number, onProgress: ((left: number) => void) | undefined): BatcherFlush {
    const flush = new BatcherFlush(page, this.queued, onProgress)
    this.#flushes.add(flush)
    void flush.ended.then(
      () => this.#flushes.delete(flush),
      () => this.#flushes.delete(flush),
    )
    return flush
  }
}

export interface BatcherFlushCounts {
  readonly sent: number
  readonly dropped: number
  readonly pending: number
}

/** A caller that waits for items. Its listener is called once no code of the batcher is running. */
export class BatcherFlush {
  readonly page: number
  readonly ended: Promise<BatcherFlushCounts>
  #resolve: (counts: BatcherFlushCounts) => void = () => {}
  #reject: (error: unknown) => void = () => {}
  readonly #onProgress: ((left: number) => void) | undefined
  readonly #counts = { sent: 0, dropped: 0 }
  #left: number
  #isNotifying = false

  constructor(page: number, left: number, onProgress: ((left: number) => void) | undefined) {
    this.page = page
    this.#left = left
    this.#onProgress = onProgress
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    if (left === 0) this.end()
  }

  count(how: 'sent' | 'dropped', items: number): void {
    this.#counts[how] += items
    this.#left -= items
    if (this.#isNotifying) return
    this.#isNotifying = true
    soon(() => this.#notify())
  }

  /** Ends the flush. Items that are left count as pending. */
  end(): void {
    this.#resolve({ ...this.#counts, pending: this.#left })
  }

  #notify(): void {
    this.#isNotifying = false
    const left = this.#left
    try {
      this.#onProgress?.(left)
    } catch (error) {
      this.#reject(error)
    }
    if (left === 0) this.end()
  }
}

/**
 * Calls `onDrop`. If `onDrop` adds items that are refused, they are reported in a later turn: an `onDrop` that always adds
 * neither overflows the stack nor blocks the event loop. The first error that it throws becomes a process warning.
 */
class DropReports {
  readonly #onDrop: OnDrop
  #waiting: Drop[] = []
  #isScheduled = false
  #isCalling = false
  #hasWarned = false

  constructor(onDrop: OnDrop) {
    this.#onDrop = onDrop
  }

  /** Reports before returning, unless `onDrop` is running. */
  reportNow(drop: Drop): void {
    if (this.#isCalling) this.add(drop)
    else this.#call(drop)
  }

  add(drop: Drop): void {
    if (this.#onDrop === undefined) return
    this.#waiting.push(drop)
    if (this.#isScheduled) return
    this.#isScheduled = true
    if (!this.#isCalling) soon(() => this.#callAll())
    else setImmediate(() => this.#callAll()).unref()
  }

  #callAll(): void {
    const waiting = this.#waiting
    this.#waiting = []
    this.#isScheduled = false
    for (const drop of waiting) this.#call(drop)
  }

  #call(drop: Drop): void {
    this.#isCalling = true
    try {
      this.#onDrop?.(drop)
    } catch (error) {
      if (!this.#hasWarned) soon(() => warn(error, 'onDrop of a batcher threw '))
      this.#hasWarned = true
    }
    this.#isCalling = false
  }
}
