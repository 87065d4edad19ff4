/** Batcher: captures items on the JS thread, prints and joins them in tasks, sends the bodies. `offloop/kit` exports it. */

import type { Bytes } from '../runtime/bytes.ts'
import { invalidType } from '../runtime/errors.ts'
import { DEFAULT_CONFIG, readRowConfig, type EncodeConfig } from '../encode/config.ts'
import { ROW_KEYS } from '../encode/option-keys.ts'
import type { EncodeOptions } from '../encode/options.ts'
import { isArray, leastOf } from '../runtime/intrinsics.ts'
import { copyOptions, MAX_DELAY_MS, readInteger, readListener, tableOf } from '../runtime/options.ts'
import { EncoderCore } from '../encode/encoder.ts'
import { Queue } from '../runtime/queue.ts'
import { envelopeOf, type Envelope } from './batch/batch.ts'
import { Cutter, type CutterConfig } from './batch/cutter.ts'
import { Ledger, type BatcherFlushCounts, type OnDrop, type Refusal } from './batch/ledger.ts'
import { Page } from './batch/page.ts'
import { Sender, type RetryConfig, type SenderConfig } from './batch/sender.ts'
import { Timers } from './batch/timers.ts'

/** Batches of encoded items, for programs that send, and flush before they exit. */
export interface Batcher<T> extends AsyncDisposable {
  /**
   * Captures the item now. Returns false if it was refused at once (closed, full, or capturing it threw: 'unencodable'); `onDrop` is called.
   * Failures found while encoding are reported later. Every refused item counts in `dropped`. Never throws: the first error that `onDrop`
   * throws becomes a process warning.
   */
  add(item: T): boolean
  /**
   * Sends what was added before, without waiting for `maxDelayMs`. The counts are of this flush. Always settles. Rejects only with what
   * `onProgress` throws; the items are sent all the same. A pending flush keeps the process alive.
   */
  flush(options?: {
    readonly timeoutMs?: number | undefined
    readonly onProgress?: ((left: number) => void) | undefined
  }): Promise<{ readonly sent: number; readonly dropped: number; readonly pending: number }>
  /** Counts of items since creation. `sent`, `dropped` and queued items add up to all that were added. */
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
 * Creates a batcher. Items are captured as they are added, encoded once, off the JS thread, and joined to bodies of at most
 * `maxBatchBytes`, in the order in which they were added. No timer keeps the process alive: a program flushes before it exits.
 */
export function createBatcher<T>(options: {
  /**
   * Sends one body. A rejection, or no answer within `sendTimeoutMs` (then `signal` is aborted), is retried as `retry` says. `attempt` counts
   * from 1. Each attempt gets a body of its own, which belongs to `send`: it may keep it, or `release` it once it has been written.
   */
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
  /** Bodies being sent at once, including those that wait for their next attempt. @default 4 */
  readonly concurrency?: number | undefined
  /** @default 30 000 */
  readonly sendTimeoutMs?: number | undefined
  /** Exponential backoff with full jitter. `attempts` counts the first one; a `when` that throws means no. @default { attempts: 3, baseMs: 500, maxMs: 30 000 } */
  readonly retry?:
    | {
        readonly attempts: number
        readonly baseMs: number
        readonly maxMs: number
        readonly when?: ((error: unknown) => boolean) | undefined
      }
    | undefined
  readonly encode?: Omit<EncodeOptions, 'signal' | 'space' | 'newline' | 'maxBytes'> | undefined
  readonly onDrop?:
    | ((drop: {
        readonly reason: 'full' | 'closed' | 'too-large' | 'unencodable' | 'rejected'
        readonly items: number
        readonly error?: unknown
      }) => void)
    | undefined
}): Batcher<T> {
  return new PageBatcher(readBatcherConfig(options))
}

/** Bytes of a page, which one task prints: small enough for several tasks to print items that are added in a row. */
const PAGE_SIZE = 1024 * 1024

class PageBatcher<T> implements Batcher<T> {
  readonly #config: BatcherConfig
  readonly #core = new EncoderCore()
  readonly #timers = new Timers()
  readonly #ledger: Ledger
  readonly #cutter: Cutter
  /** Pages that are not cut yet, in order. */
  readonly #pages = new Queue<Page>()
  #pageCount = 0
  /** The last page, if it takes items. */
  #open: Page | undefined
  /** Cancels the timer that sends queued items. */
  #stopTimer: (() => void) | undefined
  #isClosed = false

  constructor(config: BatcherConfig) {
    this.#config = config
    this.#ledger = new Ledger(config.onDrop)
    const sender = new Sender(config.sender, this.#ledger, this.#timers)
    this.#cutter = new Cutter(config.cutter, config.envelope, this.#ledger, (batch) => sender.push(batch))
  }

  add(item: T): boolean {
    const ledger = this.#ledger
    ledger.added += 1
    if (this.#isClosed) return ledger.refuse({ reason: 'closed' })
    if (this.#config.maxQueuedBytes <= ledger.bytes) return ledger.refuse({ reason: 'full' })
    const refusal = this.#capture(item)
    if (refusal !== undefined) return ledger.refuse(refusal)
    this.#stopTimer ??= this.#timers.start(this.#config.maxDelayMs, () => this.#hurry())
    return true
  }

  async flush(options: Parameters<Batcher<T>['flush']>[0] = {}): Promise<BatcherFlushCounts> {
    const own = copyOptions(options, FLUSH_KEYS)
    const timeoutMs = readInteger('options.timeoutMs', own.timeoutMs, 0, MAX_DELAY_MS)
    const onProgress = readListener('options.onProgress', own.onProgress)
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

  /** Captures an item. Returns the refusal, if it is refused. */
  #capture(item: T): Refusal | undefined {
    let page: Page | undefined
    try {
      page = this.#openPage()
      return page.add(item, this.#config.maxQueuedBytes) ? undefined : { reason: 'full', page: page.number }
    } catch (error) {
      return { reason: 'unencodable', page: page?.number, error }
    } finally {
      if (page !== undefined) this.#closeIfFull(page)
    }
  }

  /** Returns a page on which no item is being captured: the code of an item may have made this call. */
  #openPage(): Page {
    if (this.#open?.isBusy === true) this.#close(this.#open)
    if (this.#open !== undefined) return this.#open
    const rowBuffer = this.#core.open(this.#config.encode)
    this.#pageCount += 1
    const page = new Page(this.#pageCount, rowBuffer, this.#ledger)
    this.#pages.push(page)
    this.#open = page
    return page
  }

  /** Closes a page after an item. A page that was closed while the item was captured has not been printed. */
  #closeIfFull(page: Page): void {
    const { maxBatchBytes, maxBatchItems } = this.#config.cutter
    const isFull = maxBatchItems <= page.length || leastOf(PAGE_SIZE, maxBatchBytes) <= page.size
    if (page.isClosed || isFull) this.#close(page)
  }

  #close(page: Page): void {
    page.isClosed = true
    if (page === this.#open) this.#open = undefined
    if (page.isBusy) return
    if (page.printNow()) this.#cut()
    else void page.print().then(() => this.#cut())
  }

  #cut(): void {
    for (let page = this.#pages.first; page?.isPrinted === true; page = this.#pages.first) {
      this.#pages.remove(page)
      this.#cutter.take(page)
    }
  }

  /** Sends queued items without waiting for more. */
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

interface BatcherConfig {
  readonly encode: EncodeConfig
  readonly cutter: CutterConfig
  readonly envelope: Envelope
  readonly sender: SenderConfig
  readonly maxDelayMs: number
  readonly maxQueuedBytes: number
  readonly onDrop: OnDrop
}

type Options = Parameters<typeof createBatcher>[0]

function readBatcherConfig(given: Options): BatcherConfig {
  const options = copyOptions(given, KEYS)
  return {
    encode: readEncode(options.encode),
    cutter: {
      maxBatchBytes: readInteger('options.maxBatchBytes', options.maxBatchBytes, 1, MOST) ?? 10 * MIB,
      maxItemBytes: readInteger('options.maxItemBytes', options.maxItemBytes, 1, MOST) ?? 64 * MIB,
      maxBatchItems: readInteger('options.maxBatchItems', options.maxBatchItems, 1, MOST) ?? 1000,
    },
    envelope: readEnvelope(options.envelope),
    sender: readSenderConfig(options),
    maxDelayMs: readInteger('options.maxDelayMs', options.maxDelayMs, 0, MAX_DELAY_MS) ?? 200,
    maxQueuedBytes: readInteger('options.maxQueuedBytes', options.maxQueuedBytes, 1, MOST) ?? 256 * MIB,
    onDrop: readListener('options.onDrop', options.onDrop),
  }
}

function readSenderConfig({ send, concurrency, sendTimeoutMs, retry }: Options): SenderConfig {
  if (typeof send !== 'function') throw invalidType('options.send', 'of type function', send)
  return {
    send,
    concurrency: readInteger('options.concurrency', concurrency, 1, MOST) ?? 4,
    sendTimeoutMs: readInteger('options.sendTimeoutMs', sendTimeoutMs, 1, MAX_DELAY_MS) ?? 30_000,
    retry: readRetry(retry),
  }
}

const DEFAULT_RETRY: RetryConfig = { attempts: 3, baseMs: 500, maxMs: 30_000, when: undefined }

function readRetry(retry: Options['retry']): RetryConfig {
  if (retry === undefined) return DEFAULT_RETRY
  const { attempts, baseMs, maxMs, when } = copyOptions(retry, RETRY_KEYS, 'options.retry')
  return {
    attempts: readInteger('options.retry.attempts', attempts, 1, MOST) ?? DEFAULT_RETRY.attempts,
    baseMs: readInteger('options.retry.baseMs', baseMs, 0, MAX_DELAY_MS) ?? DEFAULT_RETRY.baseMs,
    maxMs: readInteger('options.retry.maxMs', maxMs, 0, MAX_DELAY_MS) ?? DEFAULT_RETRY.maxMs,
    when: readWhen(when),
  }
}

function readWhen(when: RetryConfig['when']): RetryConfig['when'] {
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

function readEncode(encode: Options['encode']): EncodeConfig {
  if (encode === undefined) return DEFAULT_CONFIG
  return readRowConfig(copyOptions(encode, ROW_KEYS, 'options.encode'))
}
