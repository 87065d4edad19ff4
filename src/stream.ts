/** Streams of either kind, read so that an abort ends them at once. */

import { onAbort } from './signal.ts'

export function isStream(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
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
  const aborted = signal === undefined ? undefined : new Aborted(signal)
  let isAtEnd = false
  try {
    for (;;) {
      // One chunk after the other is what a stream is.
      // oxlint-disable-next-line no-await-in-loop
      const { done, value } = await (aborted === undefined ? reader.next() : aborted.race(reader.next()))
      isAtEnd = done === true
      if (isAtEnd) return
      take(value)
    }
  } catch (error) {
    if (!isAtEnd) reader.cancel(error)
    throw error
  } finally {
    aborted?.forget()
  }
}

interface Reader {
  next(): Promise<{ readonly done?: boolean | undefined; readonly value?: unknown }>
  cancel(reason: unknown): void
}

function open(stream: AsyncIterable<unknown>): Reader {
  if (stream instanceof ReadableStream) return openWeb(stream)
  const iterator = stream[Symbol.asyncIterator]()
  return {
    next: () => iterator.next(),
    cancel: () => {
      // A Node stream's iterator would first wait for the chunk under way.
      if ('destroy' in stream && typeof stream.destroy === 'function') stream.destroy()
      else ignoreRejection(iterator.return?.())
    },
  }
}

/** Not by its iterator, which cannot cancel while a chunk is under way. */
function openWeb(stream: ReadableStream<unknown>): Reader {
  const reader = stream.getReader()
  return {
    next: () => reader.read(),
    cancel: (reason) => ignoreRejection(reader.cancel(reason)),
  }
}

/** The error that ended the stream is on its way to the caller already. */
function ignoreRejection(promise: Promise<unknown> | undefined): void {
  promise?.catch(() => undefined)
}

class Aborted {
  readonly #promise: Promise<never>
  readonly forget: () => void

  constructor(signal: AbortSignal) {
    let forget = (): void => undefined
    this.#promise = new Promise((_resolve, reject) => {
      forget = onAbort(signal, () => reject(signal.reason))
    })
    this.forget = forget
    ignoreRejection(this.#promise)
  }

  race<T>(work: Promise<T>): Promise<T> {
    ignoreRejection(work)
    return Promise.race([work, this.#promise])
  }
}
