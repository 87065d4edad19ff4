/** Rows captured one after the other, to be printed together by a task that needs their bytes. */

import type { Mark, Tape } from './capture/tape.ts'
import { captureValue } from './capture/walk.ts'
import { invalidType } from './errors.ts'
import { isArray, propertyOf, truncate } from './intrinsics.ts'
import type { Lexicon, TapeParts } from './native.ts'
import { pace } from './pace.ts'
import { readStream } from './stream.ts'

/** Escapes, and numbers longer than most. */
const USUAL_GROWTH = 1.25
const SLACK = 2 * 1024

export class Sheet {
  readonly lexicon: Lexicon
  /** Bits of `Layout`. */
  readonly layout: number
  /** How many rows there are. */
  length = 0
  /** About how many bytes they become. */
  size = 0
  /** A row is being captured: its code may ask for more to be. */
  isBusy = false
  readonly #tape: Tape
  /** Where the tape was before the last row. */
  #last: Mark | undefined
  readonly #release: () => void

  /** `release` is called when no task reads the tape any more. */
  constructor(tape: Tape, layout: number, release: () => void) {
    this.lexicon = tape.vocabulary.lexicon
    this.layout = layout
    this.#tape = tape
    this.#release = release
  }

  /** A row that throws leaves nothing behind. */
  add(row: unknown, index?: number): void {
    const tape = this.#tape
    const mark = tape.mark()
    this.isBusy = true
    try {
      captureRow(tape, row, index)
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

  /** Takes the row back that was added last; false if nothing is known of it any more. */
  undo(): boolean {
    if (this.#last === undefined) return false
    this.#tape.goBack(this.#last)
    this.#last = undefined
    this.length -= 1
    this.size = this.#tape.usualSize
    return true
  }

  /** It takes less time to print it than a task takes of the thread. */
  get isCheap(): boolean {
    return this.#tape.isCheap
  }

  /** For one task. */
  finish(): TapeParts {
    return this.#tape.finish()
  }

  /** Bytes that a task makes room for. */
  get expectedSize(): number {
    return truncate(this.size * USUAL_GROWTH) + SLACK
  }

  release(): void {
    this.#release()
  }
}

export function captureRow(tape: Tape, row: unknown, index?: number): void {
  if (!captureValue(tape, row, tape.vocabulary.rows)) throw noJson(index === undefined ? 'the row' : `row ${index}`)
  tape.row()
}

export function noJson(what: string): TypeError {
  const error = new TypeError(`${what} has no JSON: JSON.stringify makes it undefined`)
  return Object.assign(error, { code: 'ERR_INVALID_ARG_VALUE' })
}

/**
 * Those of an iterable all before this returns; those of a stream as they arrive, where `take` may have it wait, and the loop
 * turns every few milliseconds however fast they come: then this gives what to wait for. What `take` throws ends the stream.
 */
export function forEachRow(
  name: string,
  rows: unknown,
  signal: AbortSignal | undefined,
  take: (row: unknown) => Promise<unknown> | undefined,
): Promise<void> | undefined {
  if (isArray(rows)) for (let index = 0; index < rows.length; index += 1) void take(rows[index])
  else if (isIterable(rows)) for (const row of rows) void take(row)
  else if (isAsyncIterable(rows)) return readStream(rows, signal, (row) => take(row) ?? pace())
  else throw invalidType(name, 'an iterable or an async iterable', rows)
  return undefined
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
