/**
 * `parseEvents`: reads server-sent events of a stream, on the JS thread. The addon frames them and checks small ones, which
 * are parsed many at a time. Tasks take large ones apart, and those with values to lift. `src/index.ts` exports it, and
 * `src/http` reads the bodies of responses with it.
 */

import { checkBytes, checkSize } from '../runtime/bytes.ts'
import { invalidType } from '../runtime/errors.ts'
import { addTo, lengthOf, parseJson } from '../runtime/intrinsics.ts'
import { check, errorOf, EventStream, InputBytes, isFailure } from '../runtime/native.ts'
import { copyOptions, readLimit, tableOf, withoutPrototype } from '../runtime/options.ts'
import { isStream, StreamReader } from '../runtime/stream.ts'
import { yieldToLoop } from '../runtime/yield.ts'
import { EVENT_KEYS, type ParseOptions } from './config.ts'
import { parseEvent, planParse, type InputPlan, type ParsedEvent } from './parse.ts'

export interface EventsOptions extends Omit<ParseOptions, 'transfer'> {
  /** Data of the event that ends the iteration. @default '[DONE]' */
  readonly done?: string | null | undefined
  /** Most bytes of one event; beyond it the iteration throws ERR_OFFLOOP_TOO_LARGE. @default 64 MiB */
  readonly maxEventBytes?: number | undefined
}
export interface ServerEvent<T> {
  readonly event: string
  readonly id: string
  readonly data: T
}

/**
 * Server-sent events (WHATWG HTML, "event stream") of a body, framed in bytes as they arrive; time linear in the bytes, however they are cut.
 * `data` is parsed as JSON, with lifts as in `parse`. Data that is not JSON throws ERR_OFFLOOP_JSON. Leaving the loop cancels the stream.
 * An error's `offset` is a byte of the stream. It never throws: a wrong argument rejects the first `next()`.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller names the type of the data, as with JSON.parse
export function parseEvents<T = unknown>(
  body: AsyncIterable<Uint8Array>,
  options?: EventsOptions,
): AsyncIterable<ServerEvent<T>> {
  return eventsOf<T>(options, (signal) => {
    if (!isStream(body)) throw invalidType('body', 'an async iterable of Uint8Arrays', body)
    return new BodyChunks(body, signal)
  })
}

/** Chunks of a stream of events. */
export interface EventChunks {
  /** Returns the next chunk, as bytes or as what was gathered of it; undefined at the end. */
  next(): Promise<Uint8Array | InputBytes | undefined>
  /** Ends the stream. A second call does nothing. */
  cancel(reason?: unknown): void
}

/** Returns the events of chunks, which `open` opens for the first event. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller names the type of the data
export function eventsOf<T>(
  options: EventsOptions | undefined,
  open: (signal: AbortSignal | undefined) => EventChunks,
): AsyncIterable<ServerEvent<T>> {
  const readPlan = attempt(() => readEventsPlan(options))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller names the type of the data
  return { [Symbol.asyncIterator]: () => new EventIterator(readPlan, open) as AsyncIterator<ServerEvent<T>> }
}

/** Calls a function now. Returns a function that returns its result, or throws its error. */
function attempt<T>(call: () => T): () => T {
  try {
    const result = call()
    return () => result
  } catch (error) {
    return () => {
      throw error
    }
  }
}

/** Resolved options of `parseEvents`. */
interface EventsPlan {
  readonly parse: InputPlan<string>
  readonly done: string | null
  readonly maxBytes: number
  readonly maxEventBytes: number
}

const MAX_EVENT_BYTES = 64 * 1024 * 1024
const NO_OPTIONS: EventsOptions = tableOf({})

function readEventsPlan(options: EventsOptions = NO_OPTIONS): EventsPlan {
  const { done = '[DONE]', maxEventBytes = MAX_EVENT_BYTES, maxBytes, ...others } = copyOptions(options, EVENT_KEYS)
  if (done !== null && typeof done !== 'string') throw invalidType('options.done', 'of type string or null', done)
  return {
    parse: planParse(withoutPrototype(others)),
    done,
    maxBytes: readLimit('options.maxBytes', maxBytes, 0),
    maxEventBytes: readLimit('options.maxEventBytes', maxEventBytes, 0),
  }
}

/** Chunks of a stream that the caller gave. */
class BodyChunks implements EventChunks {
  readonly #reader: StreamReader

  constructor(body: AsyncIterable<unknown>, signal: AbortSignal | undefined) {
    this.#reader = new StreamReader(body, signal)
  }

  async next(): Promise<Uint8Array | undefined> {
    const { done, value } = await this.#reader.next()
    return done === true ? undefined : checkBytes('a chunk of body', value)
  }

  cancel(reason?: unknown): void {
    this.#reader.cancel(reason)
  }
}

const OVER: IteratorReturnResult<undefined> = { done: true, value: undefined }

/** Iterates over the events of one stream. */
class EventIterator implements AsyncIterator<ParsedEvent, undefined> {
  readonly #open: () => EventSource
  #source: EventSource | undefined
  #isOver = false
  /** Events that are ready, and the index of the next one. */
  #ready: readonly ParsedEvent[] = []
  #at = 0
  /** Calls of `next` that wait, and what the last one returned. */
  #waiting = 0
  #last: Promise<unknown> | undefined

  constructor(readPlan: () => EventsPlan, open: (signal: AbortSignal | undefined) => EventChunks) {
    this.#open = () => {
      const plan = readPlan()
      return new EventSource(plan, open(plan.parse.config.signal))
    }
  }

  next(): Promise<IteratorResult<ParsedEvent, undefined>> {
    const event = this.#waiting === 0 ? this.#take() : undefined
    if (event !== undefined) return Promise.resolve({ done: false, value: event })
    this.#waiting += 1
    const result = this.#readAfter(this.#last)
    this.#last = result
    return result
  }

  return(): Promise<IteratorReturnResult<undefined>> {
    this.#end()
    return Promise.resolve(OVER)
  }

  #take(): ParsedEvent | undefined {
    if (this.#ready.length <= this.#at || this.#source?.isAborted === true) return undefined
    const event = this.#ready[this.#at]
    this.#at += 1
    return event
  }

  async #readAfter(before: Promise<unknown> | undefined): Promise<IteratorResult<ParsedEvent, undefined>> {
    try {
      await before
    } catch {
      // The error of the stream: the caller of that `next` has it.
    }
    try {
      return await this.#read()
    } finally {
      this.#waiting -= 1
    }
  }

  async #read(): Promise<IteratorResult<ParsedEvent, undefined>> {
    if (this.#isOver) return OVER
    try {
      this.#source ??= this.#open()
      const source = this.#source
      for (;;) {
        const event = this.#take()
        if (event !== undefined) return { done: false, value: event }
        // oxlint-disable-next-line no-await-in-loop -- events come one after the other
        const events = await source.next()
        // The caller may have left meanwhile.
        if (events === undefined || this.#isOver) break
        this.#ready = events
        this.#at = 0
      }
      this.#end()
      return OVER
    } catch (error) {
      this.#end(error)
      throw error
    }
  }

  #end(reason?: unknown): void {
    this.#isOver = true
    this.#ready = []
    this.#source?.cancel(reason)
  }
}

/** Events as they are ready. */
class EventSource {
  readonly #plan: EventsPlan
  readonly #chunks: EventChunks
  readonly #stream: EventStream
  #received = 0
  /** Name and id of the last event of a run. */
  #name = ''
  #id = ''

  constructor(plan: EventsPlan, chunks: EventChunks) {
    this.#plan = plan
    this.#chunks = chunks
    this.#stream = new EventStream(plan.parse.lifts, plan.done, plan.maxEventBytes)
  }

  get isAborted(): boolean {
    return this.#plan.parse.config.signal?.aborted === true
  }

  cancel(reason?: unknown): void {
    this.#chunks.cancel(reason)
  }

  /** Returns the next events, one at least; undefined at the end. */
  async next(): Promise<readonly ParsedEvent[] | undefined> {
    const { parse } = this.#plan
    const { signal } = parse.config
    for (;;) {
      signal?.throwIfAborted()
      const step = this.#stream.next()
      if (typeof step === 'string') return this.#readRun(step)
      if (step === true) return undefined
      if (step instanceof InputBytes) {
        // oxlint-disable-next-line no-await-in-loop -- events come one after the other
        const event = await parseEvent(step, parse)
        if (event === undefined) return undefined
        if (event !== null) return [event]
      } else if (isFailure(step)) throw errorOf(step)
      // oxlint-disable-next-line no-await-in-loop -- a stream gives one chunk after the other
      else if (!(await this.#readChunk())) return undefined
    }
  }

  /** Reads the next chunk. Returns false at the end of the stream. */
  async #readChunk(): Promise<boolean> {
    const chunk = await this.#chunks.next()
    if (chunk === undefined) return false
    const isGathered = chunk instanceof InputBytes
    this.#received += isGathered ? chunk.length : lengthOf(chunk)
    checkSize('body', this.#received, this.#plan.maxBytes)
    check(isGathered ? this.#stream.pushAll(chunk) : this.#stream.push(chunk))
    await yieldToLoop()
    return true
  }

  /** Reads the JSON of small events: see `EventRun` in `crates/body/src/events.rs`. */
  #readRun(json: string): ParsedEvent[] {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon wrote it
    const [data, heads] = parseJson(json) as readonly [unknown[], (number | string)[]]
    const events: ParsedEvent[] = []
    let head = 0
    for (let index = 0; index < data.length; index += 1) {
      if (heads[head] === index) {
        this.#name = String(heads[head + 1])
        this.#id = String(heads[head + 2])
        head += 3
      }
      addTo(events, { event: this.#name, id: this.#id, data: data[index] })
    }
    return events
  }
}
