/** Reads the rows of JSONL files. Tasks read and check one batch at a time; the JS thread gets only the values that are asked for. */

import { allocate, type Bytes } from '../runtime/bytes.ts'
import { invalidType, invalidValue, OffloopError } from '../runtime/errors.ts'
import { compile } from '../capture/compile.ts'
import { addTo, isArray, parseJson, partOf, stringifyJson } from '../runtime/intrinsics.ts'
import { copyRows, nextRows, RowsReader, unwrap } from '../runtime/native.ts'
import {
  copyOptions,
  deferError,
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
import type { ParseOptions } from '../parse/config.ts'
import { planParse, type InputPlan } from '../parse/parse.ts'
import { numbered, parseRows, type JsonRow, type RowFailure } from './parse-rows.ts'
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

type LiftOptions = Pick<ParseOptions, 'lift' | 'onMismatch' | 'dropStringsOver'>
type AnyOptions = ReadOptions &
  LiftOptions & {
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
  lift: true,
  onMismatch: true,
  dropStringsOver: true,
  signal: true,
})

/**
 * Bytes of one batch. Fields return little, so their batches are large. Values are parsed on the JS thread, so their batches are small:
 * a large one would block the event loop. Rows as JSON become values with lifts.
 */
const BATCH_BYTES = { fields: 16 * 1024 * 1024, bytes: 512 * 1024, json: 256 * 1024, value: 256 * 1024 }

/**
 * Batches of rows of a file. Memory stays bounded by the batch, whatever the size; leaving the loop closes the file.
 * It never throws: a wrong argument rejects the first `next()`.
 * A batch may be reused: with `reuse: true` its bytes are valid until the next batch is asked for, and V8 allocates nothing for them.
 * `fields`: values picked by JSON Pointer, off the JS thread; the rest of the row never becomes JS.
 *
 * `as: 'value'`: parsed rows, with lifts as in `parse`. With lifts, rows above 32 KiB are parsed off the JS thread, one after the other.
 * A value that cannot be lifted rejects, after the rows before it. The error has `path`, `pointer`, and `offset` in the file.
 *
 * Lifts in a row that JSON.parse refuses (NaN, infinities, bytes that are not UTF-8): NaN and infinities are a mismatch in a value to
 * lift. Arrays that become typed arrays may have them, if no pointer has `**` or `~` or may lead into the value of another.
 * `'raw'` rejects; with `onMismatch: 'keep'` it keeps the row from being lifted at all. `dropStringsOver` spares strings of about
 * 20 bytes. The `offset` of an error is that of the row.
 */
export function readJsonl<const P extends string>(
  path: string | URL,
  options: ReadOptions & { readonly fields: readonly P[] },
): AsyncIterable<readonly RowWithFields<P>[]>
export function readJsonl<T = unknown>(
  path: string | URL,
  options: ReadOptions & { readonly as: 'value' } & Pick<ParseOptions, 'lift' | 'onMismatch' | 'dropStringsOver'>,
): AsyncIterable<readonly RowWithValue<T>[]>
export function readJsonl(
  path: string | URL,
  options?: ReadOptions & { readonly reuse?: boolean | undefined },
): AsyncIterable<readonly RowWithBytes[]>
export function readJsonl(path: string | URL, options: AnyOptions = {}): AsyncIterable<readonly AnyRow[]> {
  const readConfig = deferError(() => readReadConfig(path, options))
  return { [Symbol.asyncIterator]: () => batches(readConfig) }
}

interface ReadConfig {
  readonly path: string
  readonly from: number
  readonly last: number | undefined
  readonly longestRow: number
  readonly kind: keyof typeof BATCH_BYTES
  readonly fields: readonly string[]
  /** Lifts of rows as JSON. */
  readonly plan: InputPlan<string> | undefined
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
  const { from, last, maxRowBytes, onBadRow = 'skip', onProgress, fields, as, reuse } = own
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
  const plan = readPlan(own)
  return {
    path: name,
    from: readInteger('options.from', from, 0, Number.MAX_SAFE_INTEGER) ?? 0,
    last: readInteger('options.last', last, 0, Number.MAX_SAFE_INTEGER),
    longestRow: readLimit('options.maxRowBytes', maxRowBytes, 0),
    kind: kindOf(own, plan),
    fields: pointers,
    plan,
    reuses,
    build: compileRows(pointers),
    onBadRow,
    onProgress: readListener('options.onProgress', onProgress),
    signal: readSignal(own.signal),
  }
}

/** Resolves the lifts. Returns undefined if nothing is lifted or dropped. */
function readPlan({ as, lift, onMismatch, dropStringsOver }: AnyOptions): InputPlan<string> | undefined {
  const options = { lift, onMismatch, dropStringsOver }
  const entries = Object.entries(options).filter(([, value]) => value !== undefined)
  for (const [name, value] of entries) {
    if (as === undefined) throw invalidValue(`options.${name}`, "goes with as: 'value'", value)
  }
  if (entries.length === 0) return undefined
  const plan = planParse(options)
  const { pointers, longestString } = plan.config
  return pointers.length === 0 && longestString === Infinity ? undefined : plan
}

function kindOf({ fields, as }: AnyOptions, plan: InputPlan<string> | undefined): ReadConfig['kind'] {
  if (fields !== undefined) return 'fields'
  return plan === undefined ? (as ?? 'bytes') : 'json'
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
      isJson: kind === 'json',
      ...(last !== undefined && { last }),
      ...((kind === 'fields' || kind === 'value') && { fields: [...fields] }),
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
      const { rows, memories, failure: rowFailure } = await rowsOf(batch, config, reader)
      const failure = rowFailure ?? badRowFailure(batch, config)
      // Good rows before the failure are yielded first.
      const end = failure?.offset ?? Infinity
      const good = failure === undefined ? rows : rows.filter(({ offset }) => offset < end)
      const known = failure === undefined ? batch.bad : batch.bad.filter(({ offset }) => offset <= end)
      if (typeof onBadRow === 'function') for (const bad of known) onBadRow(bad)
      counts.rows += good.length
      counts.badRows += known.length
      onProgress?.({ bytes: batch.at, total: batch.size, ...counts })
      try {
        if (good.length !== 0) yield good
      } finally {
        if (config.reuses) for (const memory of memories) releaseView(memory)
      }
      if (failure !== undefined) throw failure.error
    }
  } finally {
    reader.close()
  }
}

/** Returns the error of the first bad row, if bad rows are refused. */
function badRowFailure({ bad: [first] }: RowBatch, { path, onBadRow }: ReadConfig): RowFailure | undefined {
  if (onBadRow !== 'throw' || first === undefined) return undefined
  const { offset, cause } = first
  const message = `the row at byte ${offset} is bad (${cause}): '${path}'`
  return { offset, error: new OffloopError('ERR_OFFLOOP_CORRUPT', message, { path, offset }) }
}

/** Batch as `BatchWriter::finish` in `crates/jsonl/src/batch_writer.rs` writes it, read. */
interface RowBatch {
  /**
   * Columns: offsets, lengths, then either the values of each field, or two columns for bytes: the index of the memory that a row
   * is in, and where it begins there. JSON has one more: the bytes of the row there.
   */
  readonly columns: readonly (readonly unknown[])[]
  /** Marks by the index of the row. */
  readonly marks: ReadonlyMap<number, string>
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
  const markOf = new Map<number, string>()
  for (let index = 0; index < marks.length; index += 2) {
    const [row, mark] = [Number(marks[index]), String(marks[index + 1])]
    markOf.set(row, mark)
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
  return { columns, marks: markOf, bad, sizes, at, size }
}

/** Index of the first column behind offsets and lengths. */
const FIELDS = 2

interface BatchRows {
  readonly rows: readonly AnyRow[]
  /** Memories that the rows are in. */
  readonly memories: readonly Bytes[]
  /** Failure of a row; undefined if all were parsed. */
  readonly failure: RowFailure | undefined
}

async function rowsOf(batch: RowBatch, config: ReadConfig, reader: RowsReader): Promise<BatchRows> {
  const { kind, build, plan } = config
  if (plan !== undefined) return await parsedRows(batch, { ...config, plan }, reader)
  if (kind === 'bytes') return { ...(await copiedRows(batch, config, reader)), failure: undefined }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon writes numbers to these columns
  const [offsets = [], lengths = []] = batch.columns as readonly (readonly number[])[]
  const values = batch.columns.slice(FIELDS)
  if (kind === 'fields') return { rows: build(offsets, lengths, values), memories: [], failure: undefined }
  const rows = offsets.map((offset, row) => ({ offset, length: lengths[row] ?? 0, value: values[0]?.[row] }))
  return { rows, memories: [], failure: undefined }
}

async function copiedRows(
  { columns, sizes }: RowBatch,
  { signal }: ReadConfig,
  reader: RowsReader,
): Promise<{ readonly rows: readonly RowWithBytes[]; readonly memories: readonly Bytes[] }> {
  const memories: Bytes[] = []
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon writes numbers to these columns
  const numbers = columns as readonly (readonly number[])[]
  const [offsets = [], lengths = [], indexes = [], starts = [], own = lengths] = numbers
  if (offsets.length === 0) return { rows: [], memories }
  for (let index = 0; index < sizes.length; index += 1) addTo(memories, allocate(sizes[index] ?? 0))
  unwrap(await run((stop) => copyRows(reader, memories, stop), { lane: 'files', signal, first: true }))
  const rows = offsets.map((offset, row): RowWithBytes => {
    const start = starts[row] ?? 0
    const bytes = partOf(memories[indexes[row] ?? 0] ?? allocate(0), start, start + (own[row] ?? 0))
    return { offset, length: lengths[row] ?? 0, bytes }
  })
  return { rows, memories }
}

/** Parses the rows before the first that ends the iteration. Their bytes are given back. */
async function parsedRows(
  batch: RowBatch,
  config: ReadConfig & { readonly plan: InputPlan<string> },
  reader: RowsReader,
): Promise<BatchRows> {
  const { path, signal } = config
  // The memory of a row is the reader's own, so it may be taken.
  const plan = { ...config.plan, config: { ...config.plan.config, transfer: true, signal } }
  const { rows, memories } = await copiedRows(batch, config, reader)
  const end = badRowFailure(batch, config)?.offset ?? Infinity
  const jsonRow = ({ offset, length, bytes }: RowWithBytes, index: number): JsonRow => {
    return { offset, length, bytes, mark: batch.marks.get(index) }
  }
  try {
    const before = rows.map(jsonRow).filter(({ offset }) => offset < end)
    return { ...(await parseRows(before, plan, path)), memories: [] }
  } finally {
    for (const memory of memories) releaseView(memory)
  }
}

/** Compiles a function that makes rows from columns. With the keys in its code it takes a tenth of the time of a loop over keys. */
function compileRows(fields: readonly string[]): ReadConfig['build'] {
  const entries = fields.map((field, index) => `${stringifyJson(field)}: values[${index}][row]`)
  const row = `({ offset, length: lengths[row], fields: { ${entries.join(', ')} } })`
  return compile(['offsets', 'lengths', 'values'], `return offsets.map((offset, row) => ${row})`)
}
