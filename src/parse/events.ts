/**
 * `parseEvents`: reads server-sent events of a stream, on the JS thread. The addon frames them and checks small ones, which
 * are parsed many at a time. Tasks take large ones apart, and those with values to lift. `src/index.ts` exports it, and
 * `src/http` reads the bodies of responses with it.
 */

import { checkBytes, checkSize } from '../runtime/bytes.ts'
import { invalidType } from '../runtime/errors.ts'
import {
  addTo,
  bufferOf,
  charCodeAt,
  indexInString,
  isArray,
  isArrayBuffer,
  isUtf8,
  lengthOf,
  parseJson,
  sliceString,
  stringIncludes,
  toUtf8,
} from '../runtime/intrinsics.ts'
import { errorOf, EventStream, InputBytes, isFailure } from '../runtime/native.ts'
import { copyOptions, deferError, readLimit, tableOf, withoutPrototype } from '../runtime/options.ts'
import { isStream, StreamReader, type Chunk } from '../runtime/stream.ts'
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
    return new StreamReader(body, signal)
  })
}

/** Chunks of a stream of events. */
export interface EventChunks {
  /** Returns the next chunk: a Uint8Array, or what was gathered of it. */
  next(): Promise<Chunk>
  /** Whether the last chunk was read, which the reader notes. */
  isAtEnd: boolean
  /** Ends the stream. A second call does nothing. */
  cancel(reason?: unknown): void
}

/** Returns the events of chunks, which `open` opens for the first event. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller names the type of the data
export function eventsOf<T>(
  options: EventsOptions | undefined,
  open: (signal: AbortSignal | undefined) => EventChunks,
): AsyncIterable<ServerEvent<T>> {
  const readPlan = deferError(() => readEventsPlan(options))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller names the type of the data
  return { [Symbol.asyncIterator]: () => new EventIterator(readPlan, open) as AsyncIterator<ServerEvent<T>> }
}

/** Resolved options of `parseEvents`. */
interface EventsPlan {
  readonly parse: InputPlan<string>
  readonly done: string | null
  readonly maxBytes: number
  readonly maxEventBytes: number
}

/** The next step, as the addon returns it: see `EventStream.next`. */
type Step = ReturnType<EventStream['next']>

const DATA = 'data: '
/** Character codes of the start of data, and of the end of a line. */
const DATA_START = 100
const LINE_FEED = 10
/** Most bytes of a chunk of small events that is read without the addon. */
const MOST_PLAIN = 32 * 1024

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
    const result = this.#waiting === 1 ? this.#read() : this.#readAfter(this.#last)
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
    return await this.#read()
  }

  async #read(): Promise<IteratorResult<ParsedEvent, undefined>> {
    try {
      if (this.#isOver) return OVER
      this.#source ??= this.#open()
      for (;;) {
        const event = this.#take()
        if (event !== undefined) return { done: false, value: event }
        // oxlint-disable-next-line no-await-in-loop -- events come one after the other
        const events = await this.#source.next()
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
    } finally {
      this.#waiting -= 1
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
  /** Whether the next event needs another chunk. */
  #needsChunk = true
  /** Whether the next event begins with the next chunk, and has `#id` if it names none. */
  #isClean = true
  /** Bytes that the addon was not given. */
  #skipped = 0
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
    const { signal } = this.#plan.parse.config
    for (;;) {
      signal?.throwIfAborted()
      let step: Step | readonly ParsedEvent[]
      if (this.#needsChunk) {
        // oxlint-disable-next-line no-await-in-loop -- a stream gives one chunk after the other
        const { done, value } = await this.#chunks.next()
        if (done === true) return this.#endChunks()
        step = this.#push(value)
        const turn = yieldToLoop()
        // oxlint-disable-next-line no-await-in-loop -- the chunks that have arrived may be many
        if (turn !== undefined) await turn
      } else step = this.#stream.next()
      if (typeof step === 'object' && isArray(step)) return step
      this.#needsChunk = step === null
      this.#isClean = false
      if (typeof step === 'string') return this.#readRun(step)
      if (step === true) return undefined
      if (isFailure(step)) throw errorOf(step)
      if (!(step instanceof InputBytes)) continue
      // oxlint-disable-next-line no-await-in-loop -- events come one after the other
      const event = await parseEvent(step, this.#plan.parse)
      if (event === undefined) return undefined
      if (event !== null) return [event]
    }
  }

  #endChunks(): undefined {
    this.#chunks.isAtEnd = true
  }

  #push(chunk: unknown): Step | readonly ParsedEvent[] {
    if (chunk instanceof InputBytes) {
      this.#count(chunk.length)
      return this.#stream.pushAll(chunk)
    }
    const bytes = checkBytes('a chunk of body', chunk)
    this.#count(lengthOf(bytes))
    const events = this.#isClean ? this.#readPlain(bytes) : undefined
    if (events !== undefined) {
      this.#skipped += lengthOf(bytes)
      return events
    }
    const step = this.#stream.push(bytes, this.#skipped)
    this.#skipped = 0
    return step
  }

  /**
   * Reads a chunk of whole events of one line of data each, which is how most servers send small ones. A call of the addon
   * takes longer. Returns undefined for other chunks, and for data that is not JSON: the addon finds the place.
   */
  #readPlain(bytes: Uint8Array): ParsedEvent[] | undefined {
    const { parse, done, maxEventBytes } = this.#plan
    const { pointers, longestString } = parse.config
    const length = lengthOf(bytes)
    const isPlain = bytes[0] === DATA_START && bytes[length - 1] === LINE_FEED && bytes[length - 2] === LINE_FEED
    if (!isPlain || MOST_PLAIN < length || maxEventBytes < length || !isArrayBuffer(bufferOf(bytes))) return undefined
    if (pointers.length !== 0 || longestString !== Infinity || !isUtf8(bytes)) return undefined
    const text = toUtf8(bytes)
    if (stringIncludes(text, '\r')) return undefined
    let events: ParsedEvent[] | undefined
    for (let at = 0; at < text.length;) {
      const end = indexInString(text, '\n', at)
      const data = sliceString(text, at + DATA.length, end)
      const isWhole = sliceString(text, at, at + DATA.length) === DATA && charCodeAt(text, end + 1) === LINE_FEED
      if (!isWhole || data === done) return undefined
      try {
        const event = { event: 'message', id: this.#id, data: parseJson(data) }
        // Most chunks have one.
        if (events === undefined) events = [event]
        else addTo(events, event)
      } catch {
        // SyntaxError: the data is not JSON.
        return undefined
      }
      at = end + 2
    }
    return events
  }

  #count(size: number): void {
    this.#received += size
    checkSize('body', this.#received, this.#plan.maxBytes)
  }

  /** Reads the JSON of small events: see `EventRun` in `crates/body/src/events.rs`. */
  #readRun(json: string): ParsedEvent[] {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon wrote it
    const [data, heads, end] = parseJson(json) as readonly [unknown[], (number | string)[], number]
    this.#needsChunk = end !== 0
    this.#isClean = end === 2
    let head = 0
    for (let index = 0; index < data.length; index += 1) {
      if (heads[head] === index) {
        this.#name = String(heads[head + 1])
        this.#id = String(heads[head + 2])
        head += 3
      }
      data[index] = { event: this.#name, id: this.#id, data: data[index] }
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each element was replaced
    return data as ParsedEvent[]
  }
}
