/** Sends batches, so many at once, each until it arrives or is given up. */

import type { Bytes } from '../../bytes.ts'
import { leastOf, lengthOf, random } from '../../intrinsics.ts'
import { Queue } from '../../queue.ts'
import type { Batch } from './batch.ts'
import type { Ledger } from './ledger.ts'
import type { Timers } from './timers.ts'

export type Send = (
  body: Bytes,
  info: { readonly items: number; readonly attempt: number; readonly signal: AbortSignal },
) => Promise<unknown>

export interface Retry {
  readonly attempts: number
  readonly baseMs: number
  readonly maxMs: number
  readonly when?: ((error: unknown) => boolean) | undefined
}

export interface Delivery {
  readonly send: Send
  readonly concurrency: number
  readonly sendTimeoutMs: number
  readonly retry: Retry
}

export class Sender {
  readonly #rules: Delivery
  readonly #ledger: Ledger
  readonly #timers: Timers
  readonly #waiting = new Queue<Batch>()
  #active = 0

  constructor(rules: Delivery, ledger: Ledger, timers: Timers) {
    this.#rules = rules
    this.#ledger = ledger
    this.#timers = timers
  }

  push(batch: Batch): void {
    this.#waiting.push(batch)
    this.#start()
  }

  #start(): void {
    for (let batch = this.#waiting.first; batch !== undefined; batch = this.#waiting.first) {
      if (this.#active === this.#rules.concurrency) return
      this.#waiting.remove(batch)
      this.#active += 1
      void this.#deliver(batch)
    }
  }

  /** Never rejects. One that waits for its next attempt keeps its place: a server that is down is not asked by others meanwhile. */
  async #deliver(batch: Batch): Promise<void> {
    const failure = await this.#tryAll(batch)
    if (failure !== undefined) this.#ledger.report({ reason: 'rejected', items: batch.items, error: failure.error })
    for (const { page, items } of batch.pieces) {
      page.settle(items)
      this.#ledger.settle(failure === undefined ? 'sent' : 'dropped', items, page.number)
    }
    this.#active -= 1
    this.#start()
  }

  /** Why none of its attempts succeeded, if none did. */
  async #tryAll(batch: Batch): Promise<{ readonly error: unknown } | undefined> {
    const { attempts, baseMs, maxMs } = this.#rules.retry
    for (let attempt = 1; ; attempt += 1) {
      try {
        // oxlint-disable-next-line no-await-in-loop
        await this.#try(batch, attempt)
        return undefined
      } catch (error) {
        if (attempts <= attempt || !this.#isWorthwhile(error)) return { error }
      }
      this.#ledger.retries += 1
      // oxlint-disable-next-line no-await-in-loop
      await this.#timers.wait(random() * leastOf(maxMs, baseMs * 2 ** (attempt - 1)))
    }
  }

  #isWorthwhile(error: unknown): boolean {
    const { when } = this.#rules.retry
    try {
      return when === undefined || when(error)
    } catch {
      // One that cannot say is not asked again.
      return false
    }
  }

  async #try(batch: Batch, attempt: number): Promise<void> {
    const body = await batch.body()
    const size = lengthOf(body)
    this.#ledger.bytes += size
    try {
      await this.#send(body, batch.items, attempt)
    } finally {
      this.#ledger.bytes -= size
    }
  }

  /** What comes after it has settled is ignored. */
  async #send(body: Bytes, items: number, attempt: number): Promise<void> {
    const { send, sendTimeoutMs } = this.#rules
    const controller = new AbortController()
    let stop: (() => void) | undefined
    try {
      await new Promise((resolve, reject) => {
        stop = this.#timers.start(sendTimeoutMs, () => {
          const error = new DOMException(`no answer within ${sendTimeoutMs} ms`, 'TimeoutError')
          reject(error)
          controller.abort(error)
        })
        // Not `resolve(promise)`: a promise that waits for another can no longer be rejected.
        Promise.resolve(send(body, { items, attempt, signal: controller.signal })).then(resolve, reject)
      })
    } finally {
      stop?.()
    }
  }
}
