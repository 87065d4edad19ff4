/** Batches of encoded items, for clients that send. */

import type { Bytes } from '../bytes.ts'
import { invalidType } from '../errors.ts'
import { DEFAULT_FORM, readRowForm, ROW_KEYS, type EncodeOptions, type Form } from '../forms.ts'
import { isArray, leastOf } from '../intrinsics.ts'
import { checkKeys, MAX_DELAY_MS, readInteger, readListener, tableOf } from '../options.ts'
import { Press } from '../press.ts'
import { Queue } from '../queue.ts'
import { envelopeOf, type Envelope } from './batch/batch.ts'
import { Cutter, type Limits } from './batch/cutter.ts'
import { Ledger, type Flushed, type OnDrop, type Refusal } from './batch/ledger.ts'
import { Page } from './batch/page.ts'
import { Sender, type Delivery, type Retry } from './batch/sender.ts'
import { Timers } from './batch/timers.ts'

/** Batches of encoded items, for clients that send, and flush before they exit. */
export interface Batcher<T> extends AsyncDisposable {
  /**
   * Captures the item now. False if it was refused at once (closed, full, or its capture threw: 'unencodable') and reported to `onDrop`; what only encoding finds out is reported later.
   * Every item refused counts in `dropped`. Never throws: what `onDrop` throws is a warning of the process, the first time.
   */
  add(item: T): boolean
  /**
   * Sends what was added before, without waiting for `maxDelayMs`. Counts are of this flush. Always settles; it rejects only with what
   * `onProgress` throws, and the items are then sent nevertheless. As long as it waits the process stays alive, else nothing here keeps it so.
   */
  flush(options?: {
    readonly timeoutMs?: number | undefined
    readonly onProgress?: ((left: number) => void) | undefined
  }): Promise<{ readonly sent: number; readonly dropped: number; readonly pending: number }>
  /** Counts of items since creation; `sent` and `dropped` together with those queued make up all that were added. */
  stats(): {
    readonly queuedItems: number
    readonly queuedBytes: number
    readonly sent: number
    readonly dropped: number
    readonly retries: number
  }
  /** Takes no more items, and flushes. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Items are captured as they are added, encoded once, off-thread, and joined to bodies of at most `maxBatchBytes`, in the order
 * in which they were added. No timer keeps the process alive: a client flushes before it exits.
 */
export function createBatcher<T>(options: {
  /** Sends one body, which is nobody else's: each attempt gets its own. A rejection, or no answer within `sendTimeoutMs` (then `signal` is aborted), is retried as `retry` says. Attempts count from 1. */
  readonly send: (
    body: Bytes,
    info: { readonly items: number; readonly attempt: number; readonly signal: AbortSignal },
  ) => Promise<unknown>
  /** Text around the items, which are joined by ",". @default ["[", "]"] */
  readonly envelope?: readonly [open: string, close: string] | undefined
  /** An item larger than this goes alone. @default 10 MiB */
  readonly maxBatchBytes?: number | undefined
  /** An item larger than this is dropped as 'too-large'. @default 64 MiB */
  readonly maxItemBytes?: number | undefined
  /** @default 1 000 */
  readonly maxBatchItems?: number | undefined
  /** @default 200 */
  readonly maxDelayMs?: number | undefined
  /** Captured and encoded bytes held; above it `add` refuses. @default 256 MiB */
  readonly maxQueuedBytes?: number | undefined
  /** Bodies on their way at once, those that wait for their next attempt included. @default 4 */
  readonly concurrency?: number | undefined
  /** @default 30 000 */
  readonly sendTimeoutMs?: number | undefined
  /** Exponential backoff with full jitter. `attempts` counts the first one; a `when` that throws says no. @default { attempts: 3, baseMs: 500, maxMs: 30 000 } */
  readonly retry?:
    | {
        readonly attempts: number
        readonly baseMs: number
        readonly maxMs: number
        readonly when?: ((error: unknown) => boolean) | undefined
      }
    | undefined
  readonly encode?: Omit<EncodeOptions, 'signal' | 'space' | 'newline'> | undefined
  readonly onDrop?:
    | ((drop: {
        readonly reason: 'full' | 'closed' | 'too-large' | 'unencodable' | 'rejected'
        readonly items: number
        readonly error?: unknown
      }) => void)
    | undefined
}): Batcher<T> {
  return new OwnBatcher(readRules(options))
}

/** What is printed at once by one task: little enough that several can work on what is added in a row. */
const PAGE_SIZE = 1024 * 1024

class OwnBatcher<T> implements Batcher<T> {
  readonly #rules: Rules
  readonly #press = new Press()
  readonly #timers = new Timers()
  readonly #ledger: Ledger
  readonly #cutter: Cutter
  /** Those that are not cut yet, in order. */
  readonly #pages = new Queue<Page>()
  #pageCount = 0
  /** The last of them, where it takes items. */
  #open: Page | undefined
  /** Stops the timer that makes what is there due. */
  #stopTimer: (() => void) | undefined
  #isClosed = false

  constructor(rules: Rules) {
    this.#rules = rules
    this.#ledger = new Ledger(rules.onDrop)
    const sender = new Sender(rules.delivery, this.#ledger, this.#timers)
    this.#cutter = new Cutter(rules.limits, rules.envelope, this.#ledger, (batch) => sender.push(batch))
  }

  add(item: T): boolean {
    const ledger = this.#ledger
    ledger.added += 1
    if (this.#isClosed) return ledger.refuse({ reason: 'closed' })
    if (this.#rules.maxQueuedBytes <= ledger.bytes) return ledger.refuse({ reason: 'full' })
    const refusal = this.#capture(item)
    if (refusal !== undefined) return ledger.refuse(refusal)
    this.#stopTimer ??= this.#timers.start(this.#rules.maxDelayMs, () => this.#hurry())
    return true
  }

  async flush(options: Parameters<Batcher<T>['flush']>[0] = {}): Promise<Flushed> {
    checkKeys(options, FLUSH_KEYS)
    const timeoutMs = readInteger('options.timeoutMs', options.timeoutMs, 0, MAX_DELAY_MS)
    const onProgress = readListener('options.onProgress', options.onProgress)
    const flush = this.#ledger.waitFor(this.#pageCount, onProgress)
    this.#timers.hold()
    const stop = timeoutMs === undefined ? undefined : this.#timers.start(timeoutMs, () => flush.end())
    try {
      this.#hurry()
      return await flush.ended
    } finally {
      stop?.()
      this.#timers.release()
    }
  }

  stats(): ReturnType<Batcher<T>['stats']> {
    const { queued, bytes, sent, dropped, retries } = this.#ledger
    return { queuedItems: queued, queuedBytes: bytes, sent, dropped, retries }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await this.flush()
  }

  /** Why it is refused, if it is. */
  #capture(item: T): Refusal | undefined {
    let page: Page | undefined
    try {
      page = this.#openPage()
      return page.add(item, this.#rules.maxQueuedBytes) ? undefined : { reason: 'full', page: page.number }
    } catch (error) {
      return { reason: 'unencodable', page: page?.number, error }
    } finally {
      if (page !== undefined) this.#closeIfFull(page)
    }
  }

  /** A page that no item is being captured on: code of an item may have called. */
  #openPage(): Page {
    if (this.#open?.isBusy === true) this.#close(this.#open)
    if (this.#open !== undefined) return this.#open
    const sheet = this.#press.open(this.#rules.form)
    this.#pageCount += 1
    const page = new Page(this.#pageCount, sheet, this.#ledger)
    this.#pages.push(page)
    this.#open = page
    return page
  }

  /** After an item: where it closed meanwhile, it was too early to print it. */
  #closeIfFull(page: Page): void {
    const { maxBatchBytes, maxBatchItems } = this.#rules.limits
    const isFull = maxBatchItems <= page.length || leastOf(PAGE_SIZE, maxBatchBytes) <= page.size
    if (page.isClosed || isFull) this.#close(page)
  }

  #close(page: Page): void {
    page.isClosed = true
    if (page === this.#open) this.#open = undefined
    if (page.isBusy) return
    if (page.printAtOnce()) this.#cut()
    else void page.print().then(() => this.#cut())
  }

  #cut(): void {
    for (let page = this.#pages.first; page?.isPrinted === true; page = this.#pages.first) {
      this.#pages.remove(page)
      this.#cutter.take(page)
    }
  }

  /** What is there is sent without waiting for more. */
  #hurry(): void {
    this.#stopTimer?.()
    this.#stopTimer = undefined
    const { last } = this.#pages
    if (last === undefined) this.#cutter.end()
    else last.isDue = true
    if (this.#open !== undefined) this.#close(this.#open)
  }
}

const KEYS = tableOf({
  send: true,
  envelope: true,
  maxBatchBytes: true,
  maxItemBytes: true,
  maxBatchItems: true,
  maxDelayMs: true,
  maxQueuedBytes: true,
  concurrency: true,
  sendTimeoutMs: true,
  retry: true,
  encode: true,
  onDrop: true,
})
const FLUSH_KEYS = tableOf({ timeoutMs: true, onProgress: true })
const RETRY_KEYS = tableOf({ attempts: true, baseMs: true, maxMs: true, when: true })

const MIB = 2 ** 20
const MOST = Number.MAX_SAFE_INTEGER

interface Rules {
  readonly form: Form
  readonly limits: Limits
  readonly envelope: Envelope
  readonly delivery: Delivery
  readonly maxDelayMs: number
  readonly maxQueuedBytes: number
  readonly onDrop: OnDrop
}

type Options = Parameters<typeof createBatcher>[0]

function readRules(options: Options): Rules {
  checkKeys(options, KEYS)
  return {
    form: readEncode(options.encode),
    limits: {
      maxBatchBytes: readInteger('options.maxBatchBytes', options.maxBatchBytes, 1, MOST) ?? 10 * MIB,
      maxItemBytes: readInteger('options.maxItemBytes', options.maxItemBytes, 1, MOST) ?? 64 * MIB,
      maxBatchItems: readInteger('options.maxBatchItems', options.maxBatchItems, 1, MOST) ?? 1000,
    },
    envelope: readEnvelope(options.envelope),
    delivery: readDelivery(options),
    maxDelayMs: readInteger('options.maxDelayMs', options.maxDelayMs, 0, MAX_DELAY_MS) ?? 200,
    maxQueuedBytes: readInteger('options.maxQueuedBytes', options.maxQueuedBytes, 1, MOST) ?? 256 * MIB,
    onDrop: readListener('options.onDrop', options.onDrop),
  }
}

function readDelivery({ send, concurrency, sendTimeoutMs, retry }: Options): Delivery {
  if (typeof send !== 'function') throw invalidType('options.send', 'of type function', send)
  return {
    send,
    concurrency: readInteger('options.concurrency', concurrency, 1, MOST) ?? 4,
    sendTimeoutMs: readInteger('options.sendTimeoutMs', sendTimeoutMs, 1, MAX_DELAY_MS) ?? 30_000,
    retry: readRetry(retry),
  }
}

const DEFAULT_RETRY: Retry = { attempts: 3, baseMs: 500, maxMs: 30_000, when: undefined }

function readRetry(retry: Options['retry']): Retry {
  if (retry === undefined) return DEFAULT_RETRY
  checkKeys(retry, RETRY_KEYS, 'options.retry')
  const { attempts, baseMs, maxMs, when } = retry
  return {
    attempts: readInteger('options.retry.attempts', attempts, 1, MOST) ?? DEFAULT_RETRY.attempts,
    baseMs: readInteger('options.retry.baseMs', baseMs, 0, MAX_DELAY_MS) ?? DEFAULT_RETRY.baseMs,
    maxMs: readInteger('options.retry.maxMs', maxMs, 0, MAX_DELAY_MS) ?? DEFAULT_RETRY.maxMs,
    when: readWhen(when),
  }
}

function readWhen(when: Retry['when']): Retry['when'] {
  if (when === undefined || typeof when === 'function') return when
  throw invalidType('options.retry.when', 'of type function', when)
}

function readEnvelope(envelope: unknown): Envelope {
  if (envelope === undefined) return envelopeOf('[', ']')
  if (!isArray(envelope)) throw invalidType('options.envelope', 'an array of two strings', envelope)
  const [open, close] = envelope
  if (typeof open === 'string' && typeof close === 'string' && envelope.length === 2) return envelopeOf(open, close)
  throw invalidType('options.envelope', 'an array of two strings', envelope)
}

function readEncode(encode: Options['encode']): Form {
  if (encode === undefined) return DEFAULT_FORM
  checkKeys(encode, ROW_KEYS, 'options.encode')
  return readRowForm(encode)
}
