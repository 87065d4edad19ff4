/**
 * Rows that are captured one after the other on the JS thread, and printed together by a task. Logs, saved files and
 * batchers use it.
 */

import type { CaptureContext } from '../capture/context.ts'
import { takePlaces } from '../capture/places.ts'
import { captureValue } from '../capture/root.ts'
import { expectedOf } from '../capture/segment.ts'
import type { TapeMark } from '../capture/streams.ts'
import { invalidType } from '../runtime/errors.ts'
import { addTo, isArray, propertyOf } from '../runtime/intrinsics.ts'
import type { Lexicon, TapeParts } from '../runtime/native.ts'
import { yieldToLoop } from '../runtime/yield.ts'
import { readStream } from '../runtime/stream.ts'

/**
 * Takes the bytes of the rows of one call. Rows of an array may share bytes, so they are taken when all are captured.
 * Other rows are taken one by one: the code that makes the next one may use the memory again.
 */
export class RowTransfer {
  /** Whether each row is taken when it is captured. */
  takesEach = true
  readonly #tapes: CaptureContext[] = []

  add(tape: CaptureContext): void {
    if (this.takesEach) takePlaces([tape])
    else if (this.#tapes[this.#tapes.length - 1] !== tape) addTo(this.#tapes, tape)
  }

  end(): void {
    takePlaces(this.#tapes)
  }
}

export class RowBuffer {
  readonly lexicon: Lexicon
  /** Bits of `Layout`. */
  readonly layout: number
  /** Number of rows. */
  length = 0
  /** Estimated bytes of the rows. */
  size = 0
  /** Whether a row is under capture. Its code may add more rows. */
  isBusy = false
  readonly #tape: CaptureContext
  /** Position of the tape before the last row. */
  #last: TapeMark | undefined
  readonly #release: () => void

  /** Makes an empty buffer. `release` is called when no task reads the tape any more. */
  constructor(tape: CaptureContext, layout: number, release: () => void) {
    this.lexicon = tape.vocabulary.lexicon
    this.layout = layout
    this.#tape = tape
    this.#release = release
  }

  /** Captures a row. A row that throws leaves nothing behind, and nothing of it is taken. */
  add(row: unknown, index?: number, transfer?: RowTransfer): void {
    const tape = this.#tape
    const mark = tape.mark()
    tape.transfer = transfer !== undefined
    this.isBusy = true
    try {
      captureRow(tape, row, index)
      transfer?.add(tape)
      this.length += 1
      this.size = tape.usualSize
      this.#last = mark
    } catch (error) {
      tape.goBack(mark)
      throw error
    } finally {
      this.isBusy = false
    }
  }

  /** Removes the row that was added last. Returns false if its position is not known any more. */
  undo(): boolean {
    if (this.#last === undefined) return false
    this.#tape.goBack(this.#last)
    this.#last = undefined
    this.length -= 1
    this.size = this.#tape.usualSize
    return true
  }

  /** Whether printing takes less time than a task costs the JS thread. */
  get isCheap(): boolean {
    return this.#tape.isCheap
  }

  /** Hands the rows over to one task. */
  finish(): TapeParts {
    return this.#tape.finish()
  }

  /** Bytes that the rows have at least. */
  get leastSize(): number {
    return this.#tape.leastSize
  }

  /** Bytes for which a task makes room. */
  get expectedSize(): number {
    return expectedOf(this.size)
  }

  release(): void {
    this.#release()
  }
}

export function captureRow(tape: CaptureContext, row: unknown, index?: number): void {
  if (!captureValue(tape, row)) throw noJson(index === undefined ? 'the row' : `row ${index}`)
  tape.row()
}

export function noJson(what: string): TypeError {
  const error = new TypeError(`${what} has no JSON: JSON.stringify makes it undefined`)
  return Object.assign(error, { code: 'ERR_INVALID_ARG_VALUE' })
}

/**
 * Calls `take` for each row: for all rows of an iterable before it returns, for those of a stream as they arrive. A
 * stream waits for the promise that `take` returns, and yields to the event loop every few milliseconds. Returns a
 * promise for a stream alone. An error of `take` ends the stream.
 */
export function forEachRow(
  name: string,
  rows: unknown,
  { signal, transfer }: ForEachOptions,
  take: (row: unknown) => Promise<unknown> | undefined,
): Promise<void> | undefined {
  if (isArray(rows)) {
    if (transfer !== undefined) transfer.takesEach = false
    for (let index = 0; index < rows.length; index += 1) void take(rows[index])
    // Code of a row may have aborted the call, which then takes nothing.
    signal?.throwIfAborted()
    transfer?.end()
  } else if (isIterable(rows)) for (const row of rows) void take(row)
  else if (isAsyncIterable(rows)) return readStream(rows, signal, (row) => take(row) ?? yieldToLoop())
  else throw invalidType(name, 'an iterable or an async iterable', rows)
  return undefined
}

export interface ForEachOptions {
  readonly signal: AbortSignal | undefined
  /** Takes the bytes of rows, if given. */
  readonly transfer: RowTransfer | undefined
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return hasMethod(value, Symbol.iterator)
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return hasMethod(value, Symbol.asyncIterator)
}

function hasMethod(value: unknown, name: symbol): boolean {
  if (value === null || value === undefined) return false
  return typeof propertyOf(Object(value), name) === 'function'
}
