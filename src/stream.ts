/** Streams of either kind, read so that an abort ends them at once. */

import { onAbort } from './signal.ts'

export function isStream(value: unknown): value is AsyncIterable<unknown> {
  if (typeof value !== 'object' || value === null) return false
  return typeof Reflect.get(value, Symbol.asyncIterator) === 'function'
}

/**
 * Calls `take` with each chunk. An abort rejects with the signal's reason without waiting for the chunk under way;
 * that, and what `take` throws, destroys the stream.
 */
export async function readStream(
  stream: AsyncIterable<unknown>,
  signal: AbortSignal | undefined,
  take: (chunk: unknown) => void,
): Promise<void> {
  const reader = open(stream)
  const abortable = signal === undefined ? undefined : new Abortable(signal)
  let isAtEnd = false
  try {
    for (;;) {
      // One chunk after the other is what a stream is.
      // oxlint-disable-next-line no-await-in-loop
      const { done, value } = await (abortable === undefined ? reader.next() : abortable.wait(reader.next()))
      isAtEnd = done === true
      if (isAtEnd) return
      take(value)
    }
  } catch (error) {
    if (!isAtEnd) ignoreFailure(() => reader.cancel(error))
    throw error
  } finally {
    abortable?.forget()
    ignoreFailure(() => reader.release())
  }
}

interface Reader {
  next(): Promise<{ readonly done?: boolean | undefined; readonly value?: unknown }>
  cancel(reason: unknown): unknown
  release(): void
}

function open(stream: AsyncIterable<unknown>): Reader {
  if (stream instanceof ReadableStream) return openWeb(stream)
  const iterator = stream[Symbol.asyncIterator]()
  return {
    next: async () => iterator.next(),
    // A Node stream's iterator would first wait for the chunk under way.
    cancel: () =>
      'destroy' in stream && typeof stream.destroy === 'function' ? stream.destroy() : iterator.return?.(),
    release: () => undefined,
  }
}

/** Not by its iterator, which cannot cancel while a chunk is under way. */
function openWeb(stream: ReadableStream<unknown>): Reader {
  const reader = stream.getReader()
  return {
    next: () => reader.read(),
    cancel: (reason) => reader.cancel(reason),
    release: () => reader.releaseLock(),
  }
}

/** For the last steps of a stream whose outcome is known already, and on its way to the caller. */
function ignoreFailure(step: () => unknown): void {
  void attempt(step).catch(() => undefined)
}

/** At once; what it throws becomes a rejection. */
async function attempt(step: () => unknown): Promise<void> {
  await step()
}

/** Waits that end when the signal aborts. Each has a promise of its own: a shared one would keep every chunk alive. */
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
