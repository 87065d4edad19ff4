/**
 * Parses the rows of a batch with lifts. Runs on the JS thread; `read.ts` calls it. Rows above 32 KiB are parsed by tasks.
 *
 * A row that JSON.parse refuses, but a repair keeps, comes as JSON in which strings that begin with a mark stand for NaN
 * and the infinities.
 */

import { compile, type LiftKind, type ParseConfig } from '../parse/config.ts'
import { liftAll, readPatterns, type LiftPattern } from '../parse/lift.ts'
import { parsePlanned, type InputPlan } from '../parse/parse.ts'
import type { Bytes } from '../runtime/bytes.ts'
import { OffloopError } from '../runtime/errors.ts'
import { addTo, isView, keysOf } from '../runtime/intrinsics.ts'
import { yieldToLoop } from '../runtime/yield.ts'
import type { RowWithValue } from './read.ts'

/** The bytes of a row as JSON. */
export interface JsonRow {
  readonly offset: number
  readonly length: number
  readonly bytes: Bytes
  /** Beginning of the strings that stand for numbers; undefined for a row that JSON.parse accepts. */
  readonly mark: string | undefined
}

/** Error that ends an iteration, and the offset of its row. */
export interface RowFailure {
  readonly offset: number
  readonly error: OffloopError
}

export interface ParsedRows {
  readonly rows: readonly RowWithValue<unknown>[]
  /** The first row that could not be parsed. No row behind it was tried. */
  readonly failure: RowFailure | undefined
}

/** Parses rows in their order. Rejects if the caller aborts; memory of rows may be taken. */
export async function parseRows(rows: readonly JsonRow[], plan: InputPlan<string>, path: string): Promise<ParsedRows> {
  const { signal } = plan.config
  const parsed: RowWithValue<unknown>[] = []
  for (const row of rows) {
    const { offset, length } = row
    try {
      // oxlint-disable-next-line no-await-in-loop -- rows that are parsed at once must not block the event loop together
      await yieldToLoop()
      signal?.throwIfAborted()
      // oxlint-disable-next-line no-await-in-loop -- one row after the other keeps memory bounded
      addTo(parsed, { offset, length, value: await parseRow(row, plan) })
    } catch (error) {
      if (!(error instanceof OffloopError) || signal?.aborted === true) throw error
      return { rows: parsed, failure: { offset, error: placed(error, row, path) } }
    }
  }
  return { rows: parsed, failure: undefined }
}

/** Returns the error with its place in the file. The offset in a row that was rewritten means nothing: its first byte stands for it. */
function placed(
  { code, message, pointer, offset, turn, cause }: OffloopError,
  row: JsonRow,
  path: string,
): OffloopError {
  const at = row.offset + (row.mark === undefined ? (offset ?? 0) : 0)
  const text = `the row at byte ${row.offset}: ${message}: '${path}'`
  return new OffloopError(code, text, { path, pointer, offset: at, turn, cause })
}

function parseRow({ bytes, mark }: JsonRow, plan: InputPlan<string>): Promise<unknown> {
  return mark === undefined ? parsePlanned(bytes, plan) : parseMarked(bytes, mark, plan)
}

/** Parses a row with marks. It may be parsed twice, so its memory is not taken. */
async function parseMarked(bytes: Bytes, mark: string, plan: InputPlan<string>): Promise<unknown> {
  const { keepsMismatches, kinds, longestString } = plan.config
  const isRaw = kinds.some(({ form }) => form === 'raw')
  if (isRaw && !keepsMismatches) throw new OffloopError('ERR_OFFLOOP_LIFT', NO_RAW)
  const marked = changed(plan, {
    transfer: false,
    // Marks must not be dropped.
    longestString: Math.max(longestString, mark.length + '"-Infinity"'.length),
    ...(isRaw && { pointers: [], kinds: [] }),
  })
  const patterns = numberPatterns(marked.config)
  try {
    const value = numbered(await parsePlanned(bytes, marked), mark)
    if (keepsMismatches) liftAll(value, patterns.map(optional))
    return value
  } catch (error) {
    const isMismatch = error instanceof OffloopError && error.code === 'ERR_OFFLOOP_LIFT'
    if (!isMismatch || patterns.length === 0) throw error
    const value = numbered(await parsePlanned(bytes, changed(marked, withoutNumbers(marked.config))), mark)
    if (liftAll(value, patterns)) return value
    throw error
  }
}

const NO_RAW = "'raw' lifts nothing in a row that JSON.parse refuses"

function changed(plan: InputPlan<string>, changes: Partial<ParseConfig>): InputPlan<string> {
  const config = { ...plan.config, ...changes }
  return { config, lifts: compile(config, plan.form), form: plan.form }
}

/** Returns patterns of the arrays that become typed arrays. There are none if one pointer may lead into the value of another. */
function numberPatterns({ pointers, kinds }: ParseConfig): readonly LiftPattern[] {
  const numbers = kinds.map((): LiftKind => ({ form: 'numbers', element: 'float64', hints: null }))
  if (readPatterns(pointers, numbers) === undefined) return []
  const isNumbers = (_: unknown, index: number): boolean => kinds[index]?.form === 'numbers'
  return readPatterns(pointers.filter(isNumbers), kinds.filter(isNumbers)) ?? []
}

function withoutNumbers({ pointers, kinds }: ParseConfig): Pick<ParseConfig, 'pointers' | 'kinds'> {
  const isOther = (_: unknown, index: number): boolean => kinds[index]?.form !== 'numbers'
  return { pointers: pointers.filter(isOther), kinds: kinds.filter(isOther) }
}

function optional(pattern: LiftPattern): LiftPattern {
  return { ...pattern, isOptional: true }
}

/** Replaces strings that begin with `mark` by the numbers behind it, at any depth. Returns the value. */
export function numbered(value: unknown, mark: string): unknown {
  const root = { value }
  const left: object[] = [root]
  for (let container = left.pop(); container !== undefined; container = left.pop()) {
    for (const key of keysOf(container)) {
      const item: unknown = Reflect.get(container, key)
      if (typeof item === 'object' && item !== null && !isView(item)) left.push(item)
      else if (typeof item === 'string' && item.startsWith(mark)) {
        Object.defineProperty(container, key, {
          value: Number(item.slice(mark.length)),
          configurable: true,
          enumerable: true,
          writable: true,
        })
      }
    }
  }
  return root.value
}
