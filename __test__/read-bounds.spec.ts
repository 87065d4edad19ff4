/** `maxRowBytes` of `readJsonl`, against a reader that splits the whole file and looks each row up in a list of known rows. */

import { closeSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs'
import test from 'ava'
import { OffloopError, readJsonl, type BadRow, type BadRowCause, type ReadOptions } from '../src/index.ts'
import { runScenario } from './fixtures/child.ts'
import { isFull } from './fixtures/extent.ts'
import { filesIn, makeFolder } from './fixtures/folder.ts'
import { Random } from './fixtures/values.ts'

const { nextPath, fileOf } = filesIn(makeFolder())

// ───────────────────────────── the naive reader ─────────────────────────────

interface GoodRecord {
  readonly text: string
  readonly value: unknown
}
type Verdict = BadRowCause | readonly GoodRecord[]
/** A row in Latin-1, and what it is with "\n" behind it and without. */
interface KnownRow {
  readonly text: string
  readonly whole: Verdict
  readonly unterminated: Verdict
}

function known(text: string, verdict: Verdict, unterminated = verdict): KnownRow {
  return { text, whole: verdict, unterminated }
}

function good(text: string, value: unknown = JSON.parse(text)): KnownRow {
  return known(text, [{ text, value }])
}

const SMALL: readonly KnownRow[] = [
  good('{"a":1}'),
  good('{"a":[1,"x"]}'),
  good('{"a":1}\r'),
  good(' [2] '),
  good('"x"'),
  good('{"a":NaN}', { a: NaN }),
  good('[-Infinity]', [-Infinity]),
  good('{"a":"\xff"}', { a: '\u{fffd}' }),
  known('12', [{ text: '12', value: 12 }], 'partial'),
  known('', []),
  known('\r', []),
  known('   ', []),
  known('{"a":', 'partial'),
  known('{"a":1}x', 'garbage'),
  known('\0\0\0', 'nul'),
  known('xyz', 'garbage'),
  known('"\xc3', 'partial', 'utf8'),
  known('{"a":1} {"a":2}', [
    { text: '{"a":1}', value: { a: 1 } },
    { text: '{"a":2}', value: { a: 2 } },
  ]),
]

/** Rows of exactly `length` bytes. */
function longRow(random: Random, length: number): KnownRow {
  const fill = (less: number): string => 'x'.repeat(length - less)
  if (length < 12) return good(`"${fill(2)}"`)
  return random.pick([
    () => good(`{"a":"${fill(8)}"}`),
    () => good(`"${fill(3)}"\r`),
    () => good(`[NaN,"${fill(8)}"]`, [NaN, fill(8)]),
    () => known(`{"a":"${fill(6)}`, 'partial'),
    () => known('\0'.repeat(length), 'nul'),
    () => known(' '.repeat(length), []),
  ])()
}

interface NaiveRow {
  readonly offset: number
  readonly length: number
  readonly text: string
  readonly value: unknown
  /** Offset of the line. */
  readonly line: number
}

interface Naive {
  readonly rows: readonly NaiveRow[]
  readonly bad: readonly BadRow[]
}

function readNaively(
  file: string,
  rows: ReadonlyMap<string, KnownRow>,
  { from = 0, last, maxRowBytes = Infinity }: ReadOptions,
): Naive {
  const found: NaiveRow[] = []
  const bad: BadRow[] = []
  let line = from === 0 && file.startsWith('\xef\xbb\xbf') ? 3 : from
  while (line < file.length) {
    const newline = file.indexOf('\n', line)
    const text = file.slice(line, newline === -1 ? undefined : newline)
    const row = rows.get(text)
    if (row === undefined) throw new Error('a row that is not in the list')
    const verdict = newline === -1 ? row.unterminated : row.whole
    if (maxRowBytes < text.length) bad.push({ offset: line, length: text.length, cause: 'too-long' })
    else if (typeof verdict === 'string') bad.push({ offset: line, length: text.length, cause: verdict })
    else {
      for (const record of verdict) {
        const offset = line + text.indexOf(record.text)
        found.push({ offset, length: record.text.length, text: record.text, value: record.value, line })
      }
    }
    line += text.length + 1
  }
  if (last === undefined) return { rows: found, bad }
  const kept = last === 0 ? [] : found.slice(-last)
  const start = found.length < last ? from : (kept[0]?.line ?? Infinity)
  return { rows: kept, bad: bad.filter(({ offset }) => start <= offset) }
}

const BLOCK = 512 * 1024
const BOUNDS = [0, 1, 3, 7, 8, 40, 1000, BLOCK / 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK] as const

interface RandomFile {
  readonly text: string
  readonly rows: ReadonlyMap<string, KnownRow>
  readonly starts: readonly number[]
}

function randomFile(random: Random, bound: number): RandomFile {
  const rows = new Map<string, KnownRow>()
  const lengths = [bound - 1, bound, bound + 1, 2 * bound + 3].filter((length) => 2 <= length)
  let text = random.once(4) ? '\xef\xbb\xbf' : ''
  const starts = [0]
  const count = random.int(bound < 2000 ? 60 : 12)
  for (let row = 0; row < count; row += 1) {
    const picked = random.once(3) && 0 < lengths.length ? longRow(random, random.pick(lengths)) : random.pick(SMALL)
    rows.set(picked.text, picked)
    text += picked.text
    if (row < count - 1 || !random.once(2)) text += '\n'
    starts.push(text.length)
  }
  return { text, rows, starts }
}

// ───────────────────────────── the reader ─────────────────────────────

type Way = 'bytes' | 'reuse' | 'value' | 'fields' | 'lifts'
const WAYS: readonly Way[] = ['bytes', 'reuse', 'value', 'fields', 'lifts']

/** Rows with their content copied: as text for bytes, else the value. */
async function* contents(
  path: string,
  way: Way,
  options: ReadOptions,
): AsyncGenerator<readonly (readonly unknown[])[]> {
  if (way === 'fields') {
    for await (const batch of readJsonl(path, { ...options, fields: ['', '/a'] })) {
      yield batch.map(({ offset, length, fields }) => [offset, length, fields[''], fields['/a']])
    }
    return
  }
  if (way === 'value' || way === 'lifts') {
    // Strings of more than 1 GB become null: there are none, but each row is parsed as with lifts.
    const lifts = way === 'lifts' ? { dropStringsOver: 2 ** 30 } : {}
    for await (const batch of readJsonl(path, { ...options, ...lifts, as: 'value' })) {
      yield batch.map(({ offset, length, value }) => [offset, length, value])
    }
    return
  }
  for await (const batch of readJsonl(path, { ...options, reuse: way === 'reuse' })) {
    yield batch.map(({ offset, length, bytes }) => [offset, length, bytes.toString('latin1')])
  }
}

function contentOf({ offset, length, text, value }: NaiveRow, way: Way): readonly unknown[] {
  if (way === 'bytes' || way === 'reuse') return [offset, length, text]
  if (way !== 'fields') return [offset, length, value]
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return [offset, length, value, isObject ? Reflect.get(value, 'a') : undefined]
}

interface Read {
  readonly rows: readonly (readonly unknown[])[]
  readonly error: unknown
}

async function read(path: string, way: Way, options: ReadOptions): Promise<Read> {
  const rows: (readonly unknown[])[] = []
  try {
    for await (const batch of contents(path, way, options)) rows.push(...batch)
    return { rows, error: undefined }
  } catch (error) {
    return { rows, error }
  }
}

test('random files with rows around the bound, in every way', async (t) => {
  const random = new Random(11)
  for (let round = 0; round < (isFull ? 400 : 72); round += 1) {
    const bound = BOUNDS[round % BOUNDS.length] ?? 0
    const { text, rows, starts } = randomFile(random, bound)
    const path = fileOf(Buffer.from(text, 'latin1'))
    const options = {
      maxRowBytes: random.once(8) ? Infinity : bound,
      ...(random.once(3) && { from: random.pick(starts) }),
      ...(random.once(2) && { last: random.int(6) }),
    }
    const expected = readNaively(text, rows, options)
    const [first] = expected.bad
    for (const way of WAYS) {
      const name = `round ${round}, ${way}, ${JSON.stringify(options)}`
      const wanted = expected.rows.map((row) => contentOf(row, way))
      const bad: BadRow[] = []
      const handed = await read(path, way, { ...options, onBadRow: (row) => bad.push(row) })
      t.deepEqual(handed, { rows: wanted, error: undefined }, name)
      t.deepEqual(bad, expected.bad, name)
      let done: unknown
      const skipped = await read(path, way, { ...options, onProgress: (next) => (done = next) })
      t.deepEqual(skipped.rows, wanted, name)
      const progress = { bytes: text.length, total: text.length, rows: wanted.length, badRows: bad.length }
      if (done !== undefined || 0 < wanted.length + bad.length) t.deepEqual(done, progress, name)
      const refused = await read(path, way, { ...options, onBadRow: 'throw' })
      const before = expected.rows.filter(({ offset }) => offset < (first?.offset ?? Infinity))
      t.deepEqual(
        refused.rows,
        before.map((row) => contentOf(row, way)),
        name,
      )
      if (first === undefined) t.is(refused.error, undefined, name)
      else {
        t.true(refused.error instanceof OffloopError, name)
        t.like(refused.error, { code: 'ERR_OFFLOOP_CORRUPT', path, offset: first.offset }, name)
      }
    }
    rmSync(path)
  }
})

test('a row of exactly the bound is good, one byte more is too long, with and without a newline', async (t) => {
  for (const bound of [9, BLOCK - 1, BLOCK, BLOCK + 1]) {
    for (const [mark, end] of [
      ['', '\n'],
      ['', ''],
      ['\u{feff}', '\n'],
    ]) {
      const row = `"${'x'.repeat(bound - 2)}"`
      const path = fileOf(`${mark}${row}${end}`)
      const offset = Buffer.byteLength(mark ?? '')
      const bad: BadRow[] = []
      const onBadRow = (found: BadRow): number => bad.push(found)
      t.deepEqual((await read(path, 'bytes', { maxRowBytes: bound, onBadRow })).rows, [[offset, bound, row]])
      t.deepEqual(bad, [])
      t.deepEqual((await read(path, 'bytes', { maxRowBytes: bound - 1, onBadRow })).rows, [])
      t.deepEqual(bad, [{ offset, length: bound, cause: 'too-long' }])
      rmSync(path)
    }
  }
})

test('wrong bounds are refused as by Node', async (t) => {
  const check = async (maxRowBytes: unknown, code: string): Promise<void> => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers without types may pass it
    t.like((await read('x', 'bytes', { maxRowBytes } as ReadOptions)).error, { code })
  }
  await check('5', 'ERR_INVALID_ARG_TYPE')
  await check(null, 'ERR_INVALID_ARG_TYPE')
  await check(-1, 'ERR_OUT_OF_RANGE')
  await check(1.5, 'ERR_OUT_OF_RANGE')
  await check(NaN, 'ERR_OUT_OF_RANGE')
  await check(-Infinity, 'ERR_OUT_OF_RANGE')
})

// ───────────────────────────── rows of gigabytes ─────────────────────────────

/** A file with a row of NULs, which takes no space on the disk, between two rows. Returns its path and the length of that row. */
function hugeFile(length: number): string {
  const path = nextPath()
  const file = openSync(path, 'w')
  writeSync(file, '{"a":1}\n')
  ftruncateSync(file, 8 + length)
  writeSync(file, '\n{"a":2}\n', 8 + length)
  closeSync(file)
  return path
}

test('progress goes on while a huge row is skipped, and an abort ends that soon', async (t) => {
  const length = 300 * 1024 * 1024
  const path = hugeFile(length)
  const steps: number[] = []
  const onProgress = ({ bytes }: { readonly bytes: number }): number => steps.push(bytes)
  const { rows } = await read(path, 'bytes', { maxRowBytes: 1000, onProgress })
  t.deepEqual(rows, [
    [0, 7, '{"a":1}'],
    [8 + length + 1, 7, '{"a":2}'],
  ])
  const most = 17 * 1024 * 1024
  t.true(
    steps.every((step, index) => step - (steps[index - 1] ?? 0) <= most),
    steps.join(' '),
  )
  const controller = new AbortController()
  const reason = new Error('enough')
  const seen: number[] = []
  const abort = ({ bytes }: { readonly bytes: number }): void => {
    seen.push(bytes)
    controller.abort(reason)
  }
  const ended = await read(path, 'bytes', { maxRowBytes: 1000, onProgress: abort, signal: controller.signal })
  t.is(ended.error, reason)
  t.is(seen.length, 1)
  rmSync(path)
})

const sparse = process.platform === 'linux' ? test.serial : test.skip

sparse('a row of 2.6 GB costs no memory, forwards and backwards', async (t) => {
  const path = hugeFile(2.6e9)
  try {
    const ended = await runScenario('read', 'huge', { OFFLOOP_PATH: path })
    t.is(ended.code, 0, ended.stderr)
  } finally {
    rmSync(path)
  }
})
