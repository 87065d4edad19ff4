/** Reads the rows of JSONL files: tasks read and check a batch at a time; JavaScript gets what is wanted of them. */

import { allocate, type Bytes } from '../bytes.ts'
import { invalidType, invalidValue, OffloopError } from '../errors.ts'
import { compile } from '../capture/compile.ts'
import { isArray, keysOf, parseJson, partOf, stringifyJson } from '../intrinsics.ts'
import { copyRows, nextRows, RowsReader, unwrap } from '../native.ts'
import { checkKeys, readInteger, readListener, readSignal, tableOf, type Cancellable } from '../options.ts'
import { run } from '../pool.ts'
import { readPath } from './path.ts'
import type { BadRow, BadRowCause } from './repair.ts'

/** `length` excludes the newline. */
export interface Row {
  readonly offset: number
  readonly length: number
}
export interface RowWithBytes extends Row {
  readonly bytes: Bytes
}
export interface RowWithValue<T> extends Row {
  readonly value: T
}
/** A value that is absent is undefined. Picked NaN and infinities (nonstandard rows) arrive as numbers. */
export interface RowWithFields<P extends string> extends Row {
  readonly fields: { readonly [K in P]: unknown }
}

export interface ReadOptions extends Cancellable {
  /** Start here: 0, or the end of an earlier row. */
  readonly from?: number | undefined
  /** Only the last n good rows, oldest first, reading only the end of the file. */
  readonly last?: number | undefined
  /** A row is bad, as a whole, if repair would not keep it; blank rows are skipped and never bad. @default 'skip' (and counted in onProgress) */
  readonly onBadRow?: 'skip' | 'throw' | ((bad: BadRow) => void) | undefined
  readonly onProgress?:
    | ((done: {
        readonly bytes: number
        readonly total: number
        readonly rows: number
        readonly badRows: number
      }) => void)
    | undefined
}

type AnyOptions = ReadOptions & { readonly fields?: readonly string[]; readonly as?: 'value' }
type AnyRow = RowWithBytes | RowWithValue<unknown> | RowWithFields<string>

const KEYS = tableOf({
  from: true,
  last: true,
  onBadRow: true,
  onProgress: true,
  fields: true,
  as: true,
  signal: true,
})

/**
 * How much is read at once. Of fields little comes back, so that batches are large; values are parsed on the thread, which
 * long batches would hold.
 */
const BLOCKS = { fields: 16 * 1024 * 1024, bytes: 512 * 1024, value: 256 * 1024 }

/**
 * Batches of rows. Memory stays bounded by the batch, whatever the file's size; breaking out of the loop closes the file. It never throws; a wrong argument rejects the first `next()`.
 * `fields`: values taken out by JSON Pointer, off-thread, the rest of the row never becoming JS. `as: 'value'`: parsed rows.
 */
export function readJsonl<const P extends string>(
  path: string | URL,
  options: ReadOptions & { readonly fields: readonly P[] },
): AsyncIterable<readonly RowWithFields<P>[]>
export function readJsonl<T = unknown>(
  path: string | URL,
  options: ReadOptions & { readonly as: 'value' },
): AsyncIterable<readonly RowWithValue<T>[]>
export function readJsonl(path: string | URL, options?: ReadOptions): AsyncIterable<readonly RowWithBytes[]>
export function readJsonl(path: string | URL, options: AnyOptions = {}): AsyncIterable<readonly AnyRow[]> {
  const rules = attempt(() => readRules(path, options))
  return { [Symbol.asyncIterator]: () => batches(rules) }
}

/** What a call gave, or threw: it is thrown later. */
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

interface Rules {
  readonly path: string
  readonly from: number
  readonly last: number | undefined
  readonly kind: keyof typeof BLOCKS
  readonly fields: readonly string[]
  /** Of the columns of offsets, lengths, and values. */
  readonly build: (...columns: readonly unknown[]) => readonly RowWithFields<string>[]
  readonly onBadRow: 'skip' | 'throw' | ((bad: BadRow) => void)
  readonly onProgress: ReadOptions['onProgress']
  readonly signal: AbortSignal | undefined
}

function readRules(path: unknown, options: AnyOptions): Rules {
  const name = readPath(path)
  checkKeys(options, KEYS)
  const { from, last, onBadRow = 'skip', onProgress, fields, as, signal } = options
  if (as !== undefined && as !== 'value') throw invalidValue('options.as', "must be 'value'", as)
  if (as !== undefined && fields !== undefined) throw invalidValue('options.as', 'goes without fields', as)
  if (typeof onBadRow !== 'function' && onBadRow !== 'skip' && onBadRow !== 'throw') {
    throw invalidValue('options.onBadRow', "must be 'skip', 'throw' or a function", onBadRow)
  }
  const known = fields === undefined ? [''] : readFields(fields)
  return {
    path: name,
    from: readInteger('options.from', from, 0, Number.MAX_SAFE_INTEGER) ?? 0,
    last: readInteger('options.last', last, 0, Number.MAX_SAFE_INTEGER),
    kind: fields === undefined ? (as ?? 'bytes') : 'fields',
    fields: known,
    build: compileRows(known),
    onBadRow,
    onProgress: readListener('options.onProgress', onProgress),
    signal: readSignal(signal),
  }
}

function readFields(fields: unknown): string[] {
  if (!isArray(fields)) throw invalidType('options.fields', 'an instance of Array', fields)
  return fields.map((field, index) => {
    if (typeof field === 'string') return field
    throw invalidType(`options.fields[${index}]`, 'of type string', field)
  })
}

function open({ path, from, last, kind, fields }: Rules): RowsReader {
  const wanted = kind === 'bytes' ? undefined : [...fields]
  const reader = new RowsReader(path, from, last, wanted, BLOCKS[kind])
  const { wrongPointer } = reader
  if (wrongPointer === null) return reader
  const { index, reason } = wrongPointer
  throw invalidValue(`options.fields[${index}]`, `is no JSON Pointer: it ${reason}`, fields[index])
}

async function* batches(given: () => Rules): AsyncGenerator<readonly AnyRow[], void, undefined> {
  const rules = given()
  const { signal, onBadRow, onProgress } = rules
  const reader = open(rules)
  const counts = { rows: 0, badRows: 0 }
  try {
    for (;;) {
      // One batch after the other is what keeps memory bounded.
      // oxlint-disable-next-line no-await-in-loop
      const text = unwrap(await run((stop) => nextRows(reader, stop), { lane: 'files', signal }))
      if (text === '') return
      const batch = readBatch(text)
      // oxlint-disable-next-line no-await-in-loop
      const rows = await rowsOf(batch, rules, reader)
      const [first] = batch.bad
      const isOver = onBadRow === 'throw' && first !== undefined
      // What stands before the row that ends it is told.
      const told = isOver ? rows.filter(({ offset }) => offset < first.offset) : rows
      if (typeof onBadRow === 'function') for (const bad of batch.bad) onBadRow(bad)
      counts.rows += told.length
      counts.badRows += batch.bad.length
      onProgress?.({ bytes: batch.at, total: batch.size, ...counts })
      if (told.length !== 0) yield told
      if (isOver) throw corrupt(rules.path, first)
    }
  } finally {
    reader.close()
  }
}

function corrupt(path: string, { offset, cause }: BadRow): OffloopError {
  const message = `the row at byte ${offset} is bad (${cause}): '${path}'`
  return new OffloopError('ERR_OFFLOOP_CORRUPT', message, { path, offset })
}

interface Batch {
  /** Offsets, lengths, and then the values of each field; or the memory of each row, and where it begins there. */
  readonly columns: readonly (readonly unknown[])[]
  readonly bad: BadRow[]
  readonly sizes: number[]
  readonly at: number
  readonly size: number
}

function readBatch(text: string): Batch {
  // What the addon wrote.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const [columns, absent, marks, told, sizes, at, size] = parseJson(text) as [
    unknown[][],
    number[],
    (number | string)[],
    (number | BadRowCause)[],
    number[],
    number,
    number,
  ]
  for (let index = 0; index < marks.length; index += 2) {
    const [row, mark] = [Number(marks[index]), String(marks[index + 1])]
    for (const values of columns.slice(FIELDS)) values[row] = numbered(values[row], mark)
  }
  for (let index = 0; index < absent.length; index += 2) {
    const values = columns[FIELDS + (absent[index + 1] ?? 0)]
    if (values !== undefined) values[absent[index] ?? 0] = undefined
  }
  const bad: BadRow[] = []
  for (let index = 0; index < told.length; index += 3) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const [offset, length, cause] = told.slice(index, index + 3) as [number, number, BadRowCause]
    bad.push({ offset, length, cause })
  }
  return { columns, bad, sizes, at, size }
}

/** Where the columns of fields begin. */
const FIELDS = 2

async function rowsOf({ columns, sizes }: Batch, rules: Rules, reader: RowsReader): Promise<readonly AnyRow[]> {
  const { kind, signal } = rules
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const [offsets = [], lengths = []] = columns as readonly (readonly number[])[]
  if (kind === 'bytes') {
    const memories = sizes.map(allocate)
    unwrap(await run((stop) => copyRows(reader, memories, stop), { lane: 'files', signal, first: true }))
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const [indexes = [], starts = []] = columns.slice(FIELDS) as readonly (readonly number[])[]
    return offsets.map((offset, row): RowWithBytes => {
      const [length = 0, start = 0] = [lengths[row], starts[row]]
      return { offset, length, bytes: partOf(memories[indexes[row] ?? 0] ?? allocate(0), start, start + length) }
    })
  }
  const values = columns.slice(FIELDS)
  if (kind === 'value') {
    return offsets.map((offset, row) => ({ offset, length: lengths[row] ?? 0, value: values[0]?.[row] }))
  }
  return rules.build(offsets, lengths, values)
}

/** Makes rows of columns: a function that knows the keys takes a tenth of the time of one that is given them. */
function compileRows(fields: readonly string[]): Rules['build'] {
  const entries = fields.map((field, index) => `${stringifyJson(field)}: values[${index}][row]`)
  const row = `({ offset, length: lengths[row], fields: { ${entries.join(', ')} } })`
  return compile(['offsets', 'lengths', 'values'], `return offsets.map((offset, row) => ${row})`)
}

/** With numbers in the places of the strings that stand for them. */
function numbered(value: unknown, mark: string): unknown {
  const root = { value }
  const left: object[] = [root]
  for (let container = left.pop(); container !== undefined; container = left.pop()) {
    for (const key of keysOf(container)) {
      const item: unknown = Reflect.get(container, key)
      if (typeof item === 'object' && item !== null) left.push(item)
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
