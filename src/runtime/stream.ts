/**
 * Reads web and Node streams on the JS thread, so that an abort ends them at once. Inputs of bytes and of rows use it.
 */

import { finished, Readable } from 'node:stream'
import { onAbort } from './abort.ts'
import { isNothing } from './options.ts'

export function isStream(value: unknown): value is AsyncIterable<unknown> {
  if (typeof value !== 'object' || value === null) return false
  return typeof Reflect.get(value, Symbol.asyncIterator) === 'function'
}

/**
 * Calls `take` with each chunk. An abort rejects with the signal's reason without waiting for the chunk under way;
 * that, and what `take` throws, destroys the stream. Where `take` gives a promise, the stream waits for it.
 */
export async function readStream(
  stream: AsyncIterable<unknown>,
  signal: AbortSignal | undefined,
  take: (chunk: unknown) => Promise<unknown> | undefined,
): Promise<void> {
  if (stream instanceof Readable) {
    await readNode(stream, signal, take)
    return
  }
  const reader = new StreamReader(stream, signal)
  try {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- a stream gives one chunk after the other
      const { done, value } = await reader.next()
      reader.isAtEnd = done === true
      if (reader.isAtEnd) return
      const taken = take(value)
      // oxlint-disable-next-line no-await-in-loop -- a stream gives one chunk after the other
      if (taken !== undefined) await reader.wait(taken)
    }
  } catch (error) {
    reader.cancel(error)
    throw error
  } finally {
    reader.cancel()
  }
}

/** Reads a stream chunk by chunk, until its end, an abort, or `cancel`. */
export class StreamReader {
  readonly #reader: ChunkReader
  readonly #abortable: Abortable | undefined
  /** Whether the last chunk was read, which the caller notes: then nothing is cancelled. */
  isAtEnd = false
  #isOver = false

  constructor(stream: AsyncIterable<unknown>, signal: AbortSignal | undefined) {
    this.#reader = open(stream)
    this.#abortable = signal === undefined ? undefined : new Abortable(signal)
  }

  next(): Promise<Chunk> {
    return this.wait(this.#reader.next())
  }

  /** Waits until the signal aborts. */
  wait<T>(work: Promise<T>): Promise<T> {
    return this.#abortable === undefined ? work : this.#abortable.wait(work)
  }

  /** Ends the reading; cancels the stream if it is not at its end. */
  cancel(reason?: unknown): void {
    if (this.#isOver) return
    this.#isOver = true
    if (!this.isAtEnd) ignoreFailure(() => this.#reader.cancel(reason))
    this.#abortable?.forget()
    ignoreFailure(() => this.#reader.release())
  }
}

/** Cancels a stream of which nothing was read. */
export function cancelStream(stream: AsyncIterable<unknown>, reason?: unknown): void {
  ignoreFailure(() => (stream instanceof Readable ? stream.destroy() : open(stream).cancel(reason)))
}

/** Reads a Node stream by its events: a promise for each chunk would cost more than to copy it. */
async function readNode(
  stream: Readable,
  signal: AbortSignal | undefined,
  take: (chunk: unknown) => Promise<unknown> | undefined,
): Promise<void> {
  let stop: (reason: unknown) => void = () => undefined
  const forget = signal === undefined ? undefined : onAbort(signal, () => stop(signal.reason))
  try {
    await new Promise<void>((resolve, reject) => {
      stop = (reason) => {
        reject(reason)
        stream.off('data', add)
        ignoreFailure(() => stream.destroy())
      }
      const add = (chunk: unknown): void => {
        try {
          const taken = take(chunk)
          if (taken === undefined) return
          stream.pause()
          taken.then(() => stream.resume(), stop)
        } catch (error) {
          stop(error)
        }
      }
      finished(stream, { writable: false }, (error) => {
        stream.off('data', add)
        if (isNothing(error)) resolve()
        else reject(error)
      })
      stream.on('data', add)
    })
  } finally {
    forget?.()
  }
}

/** A chunk of a stream, or its end. */
export interface Chunk {
  readonly done?: boolean | undefined
  readonly value?: unknown
}

interface ChunkReader {
  next(): Promise<Chunk>
  cancel(reason: unknown): unknown
  release(): void
}

function open(stream: AsyncIterable<unknown>): ChunkReader {
  if (stream instanceof ReadableStream) return openWeb(stream)
  const iterator = stream[Symbol.asyncIterator]()
  return {
    next: async () => iterator.next(),
    // An error like that of Node's streams. Their iterator would first wait for the chunk under way.
    cancel: () =>
      'destroy' in stream && typeof stream.destroy === 'function' ? stream.destroy() : iterator.return?.(),
    release: () => undefined,
  }
}

/** Reads a web stream by its reader. Its iterator cannot cancel while a chunk is under way. */
function openWeb(stream: ReadableStream<unknown>): ChunkReader {
  const reader = stream.getReader()
  return {
    next: () => reader.read(),
    cancel: (reason) => reader.cancel(reason),
    release: () => reader.releaseLock(),
  }
}

/** Ignores a failure in the last steps of a stream whose outcome is known already. */
function ignoreFailure(step: () => unknown): void {
  void attempt(step).catch(() => undefined)
}

/** Calls the function at once. An error becomes a rejection. */
async function attempt(step: () => unknown): Promise<void> {
  await step()
}

/**
 * Waits for promises until the signal aborts. Each wait has a promise of its own: a shared one would keep every chunk
 * alive.
 */
class Abortable {
  readonly #signal: AbortSignal
  readonly forget: () => void
  #reject: ((reason: unknown) => void) | undefined

  constructor(signal: AbortSignal) {
    this.#signal = signal
    this.forget = onAbort(signal, () => this.#reject?.(signal.reason))
  }

  wait<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#reject = reject
      work.then(resolve, reject)
      if (this.#signal.aborted) reject(this.#signal.reason)
    })
  }
}
