/** The body of a response, as the caller consumes it, on the JS thread. `client.ts` makes it. */

import { TextDecoder } from 'node:util'
import { onAbort } from '../runtime/abort.ts'
import { allocate, type Bytes } from '../runtime/bytes.ts'
import { OffloopError } from '../runtime/errors.ts'
import { lengthOf, partOf } from '../runtime/intrinsics.ts'
import { copyInput, unwrap, type InputBytes } from '../runtime/native.ts'
import { copyOptions, readSignal, tableOf } from '../runtime/options.ts'
import { run } from '../runtime/pool.ts'
import { releaseView } from '../runtime/results.ts'
import { BODY_KEYS, BODY_SPLIT_KEYS, type ParseOptions, type SplitOptions } from '../parse/config.ts'
import { parseInput, planParse, planSplit, splitInput, type InputPlan, type SplitResult } from '../parse/parse.ts'
import { eventsOf, type EventChunks, type EventsOptions, type ServerEvent } from '../parse/events.ts'
import type { Chunk } from '../runtime/stream.ts'
import type { Receiver } from './receiver.ts'

/** Options of `parse` that a response's body has. */
export type BodyParseOptions = Omit<ParseOptions, 'transfer' | 'maxBytes'>

/**
 * The body of a response. It may be consumed once. A body that is neither consumed nor discarded is discarded when it is
 * collected. `content-encoding` gzip, deflate, br and zstd are undone off the JS thread. Each method rejects with the
 * reason of the request's signal when that aborts.
 */
export interface ResponseBody {
  /** Parses the body like `parse`, once it is whole. */
  parse<T = unknown>(options?: BodyParseOptions): Promise<T>
  /** Splits the body like `split`, once it is whole. */
  split(options: Omit<SplitOptions, 'transfer' | 'maxBytes'>): Promise<SplitResult>
  /** Yields events like `parseEvents`, while the body arrives. Leaving the loop ends the response. */
  events<T = unknown>(options?: EventsOptions): AsyncIterable<ServerEvent<T>>
  /** Returns the bytes of the body. A task copies them to the result. */
  bytes(): Promise<Bytes>
  /** Returns the text of the body, as `text` of fetch does: without a byte order mark, and with U+FFFD for invalid bytes. Decoding runs on the JS thread. */
  text(): Promise<string>
  /** Ends the body. Unless it has arrived whole, its connection is closed. */
  discard(): Promise<void>
}

const NO_OPTIONS: BodyParseOptions = tableOf({})

/** Discards the bodies that nobody consumes. */
const registry = new FinalizationRegistry<Receiver>((receiver) => receiver.discard())

export class ReceivedBody implements ResponseBody {
  readonly #receiver: Receiver
  readonly #signal: AbortSignal | undefined
  #isUsed = false

  constructor(receiver: Receiver, signal: AbortSignal | undefined) {
    this.#receiver = receiver
    this.#signal = signal
    registry.register(this, receiver, this)
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller names the type of the body, as with JSON.parse
  async parse<T = unknown>(options: BodyParseOptions = NO_OPTIONS): Promise<T> {
    const own = copyOptions(options, BODY_KEYS)
    const value = await this.parsePlanned(planParse(own), own.signal)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller names the type
    return value as T
  }

  async split(options: Omit<SplitOptions, 'transfer' | 'maxBytes'>): Promise<SplitResult> {
    const own = copyOptions(options, BODY_SPLIT_KEYS)
    const plan = planSplit(own)
    return await this.#consume(own.signal, (source, signal) => splitInput(source, plan, signal))
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller names the type of the data, as with JSON.parse
  events<T = unknown>(options?: EventsOptions): AsyncIterable<ServerEvent<T>> {
    return eventsOf<T>(options, (signal) => {
      this.#use()
      return new ReceivedChunks(this.#receiver, signal)
    })
  }

  async bytes(): Promise<Bytes> {
    return await this.#consume(undefined, copied)
  }

  async text(): Promise<string> {
    return await this.#consume(undefined, async (source, signal) => textOf(await copied(source, signal)))
  }

  async discard(): Promise<void> {
    if (this.#isUsed) return
    this.#use()
    this.#receiver.discard()
  }

  /** Parses with options that were read before. */
  async parsePlanned(plan: InputPlan<string>, signal?: AbortSignal): Promise<unknown> {
    return await this.#consume(signal, (source, both) => parseInput(source, plan, both))
  }

  /** Returns the text of the first bytes, and ends the body. */
  async textOfFirst(limit: number): Promise<string> {
    return await this.#consume(undefined, async (source, signal) => textOf(await copied(source, signal), limit), limit)
  }

  /** Waits for the body and uses it. Both signals stop either. */
  async #consume<T>(
    other: AbortSignal | undefined,
    use: (source: InputBytes, signal: AbortSignal | undefined) => Promise<T>,
    limit?: number,
  ): Promise<T> {
    this.#use()
    const abort = new AbortController()
    const forgets = [this.#signal, other].flatMap((signal) => {
      if (signal?.aborted === true) abort.abort(signal.reason)
      return signal === undefined ? [] : [onAbort(signal, () => abort.abort(signal.reason))]
    })
    const signal = forgets.length === 0 ? undefined : abort.signal
    try {
      return await this.#useWhole(signal, use, limit)
    } finally {
      for (const forget of forgets) forget()
    }
  }

  async #useWhole<T>(
    signal: AbortSignal | undefined,
    use: (source: InputBytes, signal: AbortSignal | undefined) => Promise<T>,
    limit: number | undefined,
  ): Promise<T> {
    const forget = signal === undefined ? undefined : onAbort(signal, () => this.#receiver.fail(signal.reason))
    if (signal?.aborted === true) this.#receiver.fail(signal.reason)
    try {
      const source = await this.#receiver.waitForBody(limit)
      if (signal?.aborted === true) source.clear()
      readSignal(signal)
      return await use(source, signal)
    } finally {
      forget?.()
    }
  }

  #use(): void {
    if (this.#isUsed) throw new OffloopError('ERR_OFFLOOP_CLOSED', 'the body was consumed already')
    this.#isUsed = true
    registry.unregister(this)
  }
}

/** Chunks of a body that is read as it arrives. */
class ReceivedChunks implements EventChunks {
  isAtEnd = false
  readonly #receiver: Receiver
  readonly #forget: (() => void) | undefined

  constructor(receiver: Receiver, signal: AbortSignal | undefined) {
    this.#receiver = receiver
    if (signal !== undefined) this.#forget = onAbort(signal, () => receiver.fail(signal.reason))
  }

  async next(): Promise<Chunk> {
    const value = await this.#receiver.nextChunk()
    return { done: value === undefined, value }
  }

  cancel(): void {
    this.#forget?.()
    this.#receiver.discard()
  }
}

/** Copies a body to a result, in a task. */
async function copied(source: InputBytes, signal: AbortSignal | undefined): Promise<Bytes> {
  try {
    const out = allocate(source.length)
    if (source.length !== 0) unwrap(await run((stop) => copyInput(source, out, stop), { signal }))
    return out
  } catch (error) {
    source.clear()
    throw error
  }
}

/** Decodes a text and gives the memory of its bytes back. With a `limit`, a character that it cuts is left out. */
function textOf(bytes: Bytes, limit?: number): string {
  try {
    const isCut = limit !== undefined && limit <= lengthOf(bytes)
    return new TextDecoder().decode(isCut ? partOf(bytes, 0, limit) : bytes, { stream: isCut })
  } catch (cause) {
    const message = `a text of ${lengthOf(bytes)} bytes is longer than a string can be`
    throw new OffloopError('ERR_OFFLOOP_TOO_LARGE', message, { cause })
  } finally {
    // Whoever has replaced the decoder may have kept a view.
    releaseView(bytes)
  }
}
