/** Reads the rows of JSONL files. Tasks read and check one batch at a time; the JS thread gets only the values that are asked for. */

import { allocate, type Bytes } from '../runtime/bytes.ts'
import { invalidType, invalidValue, OffloopError } from '../runtime/errors.ts'
import { compile } from '../capture/compile.ts'
import { addTo, isArray, keysOf, parseJson, partOf, stringifyJson } from '../runtime/intrinsics.ts'
import { copyRows, nextRows, RowsReader, unwrap } from '../runtime/native.ts'
import {
  copyOptions,
  readBoolean,
  readInteger,
  readLimit,
  readListener,
  readSignal,
  tableOf,
  withoutPrototype,
  type Cancellable,
} from '../runtime/options.ts'
import { run } from '../runtime/pool.ts'
import { releaseView } from '../runtime/results.ts'
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
/** Picked values of a row. An absent value is undefined. NaN and infinities of nonstandard rows arrive as numbers. */
export interface RowWithFields<P extends string> extends Row {
  readonly fields: { readonly [K in P]: unknown }
}

export interface ReadOptions extends Cancellable {
  /** Start here: 0, or the end of an earlier row. */
  readonly from?: number | undefined
  /** Only the last n good rows, oldest first, reading only the end of the file. */
  readonly last?: number | undefined
  /**
   * Longer rows are bad rows ('too-long'), whatever is in them, and are never in memory as a whole. A block of the file, of up to
   * 512 KiB, is in memory with all of its rows. Objects on one line are one row here. @default Infinity
   */
  readonly maxRowBytes?: number | undefined
  /** A row is bad, as a whole, if repair would not keep it. Blank rows are skipped and never bad. @default 'skip' (counted in onProgress) */
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

type AnyOptions = ReadOptions & {
  readonly fields?: readonly string[]
  readonly as?: 'value'
  readonly reuse?: boolean | undefined
}
type AnyRow = RowWithBytes | RowWithValue<unknown> | RowWithFields<string>

const KEYS = tableOf({
  from: true,
  last: true,
  maxRowBytes: true,
  onBadRow: true,
  onProgress: true,
  fields: true,
  as: true,
  reuse: true,
  signal: true,
})

/**
 * Bytes of one batch. Fields return little, so their batches are large. Values are parsed on the JS thread, so their batches are small:
 * a large one would block the event loop.
 */
const BATCH_BYTES = { fields: 16 * 1024 * 1024, bytes: 512 * 1024, value: 256 * 1024 }

/**
 * Batches of rows of a file. Memory stays bounded by the batch, whatever the size; leaving the loop closes the file.
 * It never throws: a wrong argument rejects the first `next()`.
 * A batch may be reused: with `reuse: true` its bytes are valid until the next batch is asked for, and V8 allocates nothing for them.
 * `fields`: values picked by JSON Pointer, off the JS thread; the rest of the row never becomes JS. `as: 'value'`: parsed rows.
 */
export function readJsonl<const P extends string>(
  path: string | URL,
  options: ReadOptions & { readonly fields: readonly P[] },
): AsyncIterable<readonly RowWithFields<P>[]>
export function readJsonl<T = unknown>(
  path: string | URL,
  options: ReadOptions & { readonly as: 'value' },
): AsyncIterable<readonly RowWithValue<T>[]>
export function readJsonl(
  path: string | URL,
  options?: ReadOptions & { readonly reuse?: boolean | undefined },
): AsyncIterable<readonly RowWithBytes[]>
export function readJsonl(path: string | URL, options: AnyOptions = {}): AsyncIterable<readonly AnyRow[]> {
  const readConfig = attempt(() => readReadConfig(path, options))
  return { [Symbol.asyncIterator]: () => batches(readConfig) }
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

interface ReadConfig {
  readonly path: string
  readonly from: number
  readonly last: number | undefined
  readonly longestRow: number
  readonly kind: keyof typeof BATCH_BYTES
  readonly fields: readonly string[]
  /** Whether the memory of a batch is used again for later ones. */
  readonly reuses: boolean
  /** Makes rows from the columns of offsets, lengths and values. */
  readonly build: (...columns: readonly unknown[]) => readonly RowWithFields<string>[]
  readonly onBadRow: 'skip' | 'throw' | ((bad: BadRow) => void)
  readonly onProgress: ReadOptions['onProgress']
  readonly signal: AbortSignal | undefined
}

function readReadConfig(path: unknown, options: AnyOptions): ReadConfig {
  const name = readPath(path)
  const own = copyOptions(options, KEYS)
  const { from, last, maxRowBytes, onBadRow = 'skip', onProgress, fields, as, reuse, signal } = own
  if (as !== undefined && as !== 'value') throw invalidValue('options.as', "must be 'value'", as)
  if (as !== undefined && fields !== undefined) throw invalidValue('options.as', 'goes without fields', as)
  if (typeof onBadRow !== 'function' && onBadRow !== 'skip' && onBadRow !== 'throw') {
    throw invalidValue('options.onBadRow', "must be 'skip', 'throw' or a function", onBadRow)
  }
  const reuses = readBoolean('options.reuse', reuse, false)
  if (reuses && (as !== undefined || fields !== undefined)) {
    throw invalidValue('options.reuse', 'is for rows as bytes, without fields and as', reuse)
  }
  const pointers = fields === undefined ? [''] : readFields(fields)
  return {
    path: name,
    from: readInteger('options.from', from, 0, Number.MAX_SAFE_INTEGER) ?? 0,
    last: readInteger('options.last', last, 0, Number.MAX_SAFE_INTEGER),
    longestRow: readLimit('options.maxRowBytes', maxRowBytes, 0),
    kind: fields === undefined ? (as ?? 'bytes') : 'fields',
    fields: pointers,
    reuses,
    build: compileRows(pointers),
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

function open({ path, from, last, longestRow, kind, fields }: ReadConfig): RowsReader {
  const reader = new RowsReader(
    withoutPrototype({
      path,
      from,
      batchSize: BATCH_BYTES[kind],
      longestRow,
      ...(last !== undefined && { last }),
      ...(kind !== 'bytes' && { fields: [...fields] }),
    }),
  )
  const { wrongPointer } = reader
  if (wrongPointer === null) return reader
  const { index, reason } = wrongPointer
  throw invalidValue(`options.fields[${index}]`, `is no JSON Pointer: it ${reason}`, fields[index])
}

async function* batches(readConfig: () => ReadConfig): AsyncGenerator<readonly AnyRow[], void, undefined> {
  const config = readConfig()
  const { signal, onBadRow, onProgress } = config
  const reader = open(config)
  const counts = { rows: 0, badRows: 0 }
  try {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- one batch after the other keeps memory bounded
      const text = unwrap(await run((stop) => nextRows(reader, stop), { lane: 'files', signal }))
      if (text === '') return
      const batch = readBatch(text)
      // oxlint-disable-next-line no-await-in-loop -- the batch must be copied before the next one is read
      const { rows, memories } = await rowsOf(batch, config, reader)
      const [first] = batch.bad
      const isOver = onBadRow === 'throw' && first !== undefined
      // Good rows before the bad row are yielded first.
      const good = isOver ? rows.filter(({ offset }) => offset < first.offset) : rows
      if (typeof onBadRow === 'function') for (const bad of batch.bad) onBadRow(bad)
      counts.rows += good.length
      counts.badRows += batch.bad.length
      onProgress?.({ bytes: batch.at, total: batch.size, ...counts })
      try {
        if (good.length !== 0) yield good
      } finally {
        if (config.reuses) for (const memory of memories) releaseView(memory)
      }
      if (isOver) throw corrupt(config.path, first)
    }
  } finally {
    reader.close()
  }
}

function corrupt(path: string, { offset, cause }: BadRow): OffloopError {
  const message = `the row at byte ${offset} is bad (${cause}): '${path}'`
  return new OffloopError('ERR_OFFLOOP_CORRUPT', message, { path, offset })
}

/** Batch as `BatchWriter::finish` in `crates/jsonl/src/batch_writer.rs` writes it, read. */
interface RowBatch {
  /**
   * Columns: offsets, lengths, then either the values of each field, or two columns for bytes: the index of the memory that a row
   * is in, and where it begins there.
   */
  readonly columns: readonly (readonly unknown[])[]
  readonly bad: BadRow[]
  readonly sizes: number[]
  readonly at: number
  readonly size: number
}

function readBatch(text: string): RowBatch {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon wrote the text
  const [columns, absent, marks, flaws, sizes, at, size] = parseJson(text) as [
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
  for (let index = 0; index < flaws.length; index += 3) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon writes three items for each bad row
    const [offset, length, cause] = flaws.slice(index, index + 3) as [number, number, BadRowCause]
    bad.push({ offset, length, cause })
  }
  return { columns, bad, sizes, at, size }
}

/** Index of the first column behind offsets and lengths. */
const FIELDS = 2

async function rowsOf(
  { columns, sizes }: RowBatch,
  config: ReadConfig,
  reader: RowsReader,
): Promise<{ readonly rows: readonly AnyRow[]; readonly memories: readonly Bytes[] }> {
  const { kind, signal } = config
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon writes numbers to these columns
  const [offsets = [], lengths = []] = columns as readonly (readonly number[])[]
  if (kind === 'bytes') {
    const memories: Bytes[] = []
    for (let index = 0; index < sizes.length; index += 1) addTo(memories, allocate(sizes[index] ?? 0))
    unwrap(await run((stop) => copyRows(reader, memories, stop), { lane: 'files', signal, first: true }))
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon writes numbers to these columns
    const [indexes = [], starts = []] = columns.slice(FIELDS) as readonly (readonly number[])[]
    const rows = offsets.map((offset, row): RowWithBytes => {
      const [length = 0, start = 0] = [lengths[row], starts[row]]
      return { offset, length, bytes: partOf(memories[indexes[row] ?? 0] ?? allocate(0), start, start + length) }
    })
    return { rows, memories }
  }
  const values = columns.slice(FIELDS)
  if (kind === 'value') {
    const rows = offsets.map((offset, row) => ({ offset, length: lengths[row] ?? 0, value: values[0]?.[row] }))
    return { rows, memories: [] }
  }
  return { rows: config.build(offsets, lengths, values), memories: [] }
}

/** Compiles a function that makes rows from columns. With the keys in its code it takes a tenth of the time of a loop over keys. */
function compileRows(fields: readonly string[]): ReadConfig['build'] {
  const entries = fields.map((field, index) => `${stringifyJson(field)}: values[${index}][row]`)
  const row = `({ offset, length: lengths[row], fields: { ${entries.join(', ')} } })`
  return compile(['offsets', 'lengths', 'values'], `return offsets.map((offset, row) => ${row})`)
}

/** Replaces strings that begin with `mark` by the numbers behind it, at any depth. Returns the value. */
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
