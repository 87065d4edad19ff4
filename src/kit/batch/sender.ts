/** Sends batches with retries, a bounded number at once. Runs on the JS thread; the batcher calls it. */

import type { Bytes } from '../../runtime/bytes.ts'
import { leastOf, lengthOf, random } from '../../runtime/intrinsics.ts'
import { Queue } from '../../runtime/queue.ts'
import type { Batch } from './batch.ts'
import type { Ledger } from './ledger.ts'
import type { Timers } from './timers.ts'

export type Send = (
  body: Bytes,
  info: { readonly items: number; readonly attempt: number; readonly signal: AbortSignal },
) => Promise<unknown>

/** Exponential backoff with full jitter. */
export interface RetryConfig {
  readonly attempts: number
  readonly baseMs: number
  readonly maxMs: number
  readonly when?: ((error: unknown) => boolean) | undefined
}

export interface SenderConfig {
  readonly send: Send
  readonly concurrency: number
  readonly sendTimeoutMs: number
  readonly retry: RetryConfig
}

export class Sender {
  readonly #config: SenderConfig
  readonly #ledger: Ledger
  readonly #timers: Timers
  readonly #waiting = new Queue<Batch>()
  #active = 0

  constructor(config: SenderConfig, ledger: Ledger, timers: Timers) {
    this.#config = config
    this.#ledger = ledger
    this.#timers = timers
  }

  push(batch: Batch): void {
    this.#waiting.push(batch)
    this.#start()
  }

  #start(): void {
    for (let batch = this.#waiting.first; batch !== undefined; batch = this.#waiting.first) {
      if (this.#active === this.#config.concurrency) return
      this.#waiting.remove(batch)
      this.#active += 1
      void this.#deliver(batch)
    }
  }

  /** Sends one batch. Never rejects. A batch that waits for its next attempt still counts as active, so that a server that is down gets no others. */
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

  /** Attempts to send until an attempt succeeds or none is left. Returns the error of the last attempt, if none succeeded. */
  async #tryAll(batch: Batch): Promise<{ readonly error: unknown } | undefined> {
    const { attempts } = this.#config.retry
    for (let attempt = 1; ; attempt += 1) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- attempts come one after the other
        await this.#try(batch, attempt)
        return undefined
      } catch (error) {
        if (attempts <= attempt || !this.#isRetried(error)) return { error }
      }
      this.#ledger.retries += 1
      // oxlint-disable-next-line no-await-in-loop -- the next attempt waits
      await this.#timers.wait(backoffMs(this.#config.retry, attempt))
    }
  }

  #isRetried(error: unknown): boolean {
    const { when } = this.#config.retry
    try {
      return when === undefined || when(error)
    } catch {
      // A `when` that throws means no.
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

  /** Calls `send`. Settles with its promise, or rejects at the timeout; a later result is ignored. */
  async #send(body: Bytes, items: number, attempt: number): Promise<void> {
    const { send, sendTimeoutMs } = this.#config
    const controller = new AbortController()
    let stop: (() => void) | undefined
    try {
      await new Promise((resolve, reject) => {
        stop = this.#timers.start(sendTimeoutMs, () => {
          const error = new DOMException(`no answer within ${sendTimeoutMs} ms`, 'TimeoutError')
          reject(error)
          controller.abort(error)
        })
        // A promise that was resolved with another promise could no longer be rejected by the timeout.
        Promise.resolve(send(body, { items, attempt, signal: controller.signal })).then(resolve, reject)
      })
    } finally {
      stop?.()
    }
  }
}

/** Returns a random delay of at most `baseMs` doubled for each attempt after the first, and at most `maxMs`. */
function backoffMs({ baseMs, maxMs }: RetryConfig, attempt: number): number {
  return random() * leastOf(maxMs, baseMs * 2 ** (attempt - 1))
}
