/** What became of the items of a batcher: counts, reports of those that are dropped, and who waits for the rest. */

import { setImmediate } from 'node:timers'
import { inspect } from 'node:util'
import { isError } from '../../intrinsics.ts'

const { queueMicrotask: soon } = globalThis

export interface Drop {
  readonly reason: 'full' | 'closed' | 'too-large' | 'unencodable' | 'rejected'
  readonly items: number
  readonly error?: unknown
}

/** Of an item, which came to a page or did not. */
export interface Refusal extends Omit<Drop, 'items'> {
  readonly page?: number | undefined
}

export type OnDrop = ((drop: Drop) => void) | undefined

export class Ledger {
  /** Items, the refused ones as well. */
  added = 0
  sent = 0
  dropped = 0
  retries = 0
  /** Held: captured items, pages, bodies on their way. */
  bytes = 0
  readonly #reports: Reports
  readonly #flushes = new Set<Flush>()

  constructor(onDrop: OnDrop) {
    this.#reports = new Reports(onDrop)
  }

  get queued(): number {
    return this.added - this.sent - this.dropped
  }

  /** An item is dropped at once, and reported before this returns. False. */
  refuse({ page = Infinity, ...drop }: Refusal): false {
    this.settle('dropped', 1, page)
    this.#reports.tell({ ...drop, items: 1 })
    return false
  }

  /** Items are dropped, of which `settle` is told as well: it is reported when none of our own code is under way. */
  report(drop: Drop): void {
    this.#reports.add(drop)
  }

  /** Items of a page are sent or dropped. */
  settle(how: 'sent' | 'dropped', items: number, page: number): void {
    this[how] += items
    for (const flush of this.#flushes) if (page <= flush.page) flush.count(how, items)
  }

  /** Settles when all items of pages up to that one have. */
  waitFor(page: number, onProgress: ((left: number) => void) | undefined): Flush {
    const flush = new Flush(page, this.queued, onProgress)
    this.#flushes.add(flush)
    void flush.ended.then(
      () => this.#flushes.delete(flush),
      () => this.#flushes.delete(flush),
    )
    return flush
  }
}

export interface Flushed {
  readonly sent: number
  readonly dropped: number
  readonly pending: number
}

/** Waits for items. Whoever is told of it is told when none of our own code is under way. */
export class Flush {
  readonly page: number
  readonly ended: Promise<Flushed>
  #resolve: (flushed: Flushed) => void = () => {}
  #reject: (error: unknown) => void = () => {}
  readonly #onProgress: ((left: number) => void) | undefined
  readonly #counts = { sent: 0, dropped: 0 }
  #left: number
  #isTelling = false

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
    if (this.#isTelling) return
    this.#isTelling = true
    soon(() => this.#tell())
  }

  /** With what is left still pending. */
  end(): void {
    this.#resolve({ ...this.#counts, pending: this.#left })
  }

  #tell(): void {
    this.#isTelling = false
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
 * Tells `onDrop`. What it adds itself and is refused is told in a later turn, so that one that does so each time holds
 * neither the stack nor the loop. What it throws is told as a warning, once.
 */
class Reports {
  readonly #onDrop: OnDrop
  #waiting: Drop[] = []
  #isScheduled = false
  #isTelling = false
  #hasWarned = false

  constructor(onDrop: OnDrop) {
    this.#onDrop = onDrop
  }

  /** At once. */
  tell(drop: Drop): void {
    if (this.#isTelling) this.add(drop)
    else this.#tell(drop)
  }

  add(drop: Drop): void {
    if (this.#onDrop === undefined) return
    this.#waiting.push(drop)
    if (this.#isScheduled) return
    this.#isScheduled = true
    if (!this.#isTelling) soon(() => this.#tellAll())
    else setImmediate(() => this.#tellAll()).unref()
  }

  #tellAll(): void {
    const waiting = this.#waiting
    this.#waiting = []
    this.#isScheduled = false
    for (const drop of waiting) this.#tell(drop)
  }

  #tell(drop: Drop): void {
    this.#isTelling = true
    try {
      this.#onDrop?.(drop)
    } catch (error) {
      if (!this.#hasWarned) soon(() => warn(error))
      this.#hasWarned = true
    }
    this.#isTelling = false
  }
}

function warn(error: unknown): void {
  process.emitWarning(isError(error) ? error : `onDrop of a batcher threw ${inspect(error)}`)
}
