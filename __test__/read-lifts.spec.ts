/** Lifts of `readJsonl`, against `parse` of the bytes of each row. */

import { rmSync } from 'node:fs'
import test from 'ava'
import {
  OffloopError,
  parse,
  readJsonl,
  stats,
  type BadRow,
  type ParseOptions,
  type ReadOptions,
  type RowWithValue,
} from '../src/index.ts'
import { tuning } from '../src/capture/tuning.ts'
import { parseRows } from '../src/jsonl/parse-rows.ts'
import { planParse } from '../src/parse/parse.ts'
import { isFull } from './fixtures/extent.ts'
import { filesIn, makeFolder } from './fixtures/folder.ts'
import { Random } from './fixtures/values.ts'

const { fileOf } = filesIn(makeFolder())

type Lifts = Pick<ParseOptions, 'lift' | 'onMismatch' | 'dropStringsOver'>

interface Read {
  readonly rows: readonly RowWithValue<unknown>[]
  readonly error: unknown
}

async function read(path: string, options: Lifts & ReadOptions): Promise<Read> {
  const rows: RowWithValue<unknown>[] = []
  try {
    for await (const batch of readJsonl(path, { ...options, as: 'value' })) rows.push(...batch)
    return { rows, error: undefined }
  } catch (error) {
    return { rows, error }
  }
}

async function valuesOf(path: string, options: Lifts & ReadOptions): Promise<unknown[]> {
  const { rows, error } = await read(path, options)
  if (error !== undefined) throw error
  return rows.map(({ value }) => value)
}

const base64 = (size: number): string => Buffer.alloc(size, 7).toString('base64')
const SIZES = [0, 3, 300, 20_000, 25_000, 30_000, 50_000, 70_000, 300_000, 1_500_000] as const

/** A row with a value for each lift; sometimes one that does not fit. */
function randomRow(random: Random): string {
  const size = random.pick(SIZES)
  const wrong = random.once(5)
  return JSON.stringify({
    id: random.int(1000),
    text: random.pick(['', 'é'.repeat(size >> 3), 'x'.repeat(50)]),
    bytes: wrong && random.once(2) ? '!?' : base64(random.once(2) ? size : 10),
    ids: random.list(random.int(size >> 3), () => random.int(1000)),
    scores: wrong ? [1, 'x'] : [0.5, 1, -3.25],
    nested: [[1, 2], [3], []],
    box: { '*': [base64(6)], deep: { bytes: base64(9) }, none: null },
  })
}

const LIFTS: readonly Lifts[] = [
  { lift: { '/bytes': 'base64' } },
  { lift: { '/bytes': 'base64', '/ids': 'int32', '/scores': 'float32' } },
  { lift: { '/ids': 'uint8' } },
  { lift: { '/box/*/bytes': 'base64', '/ids': 'uint16', '/box/none': 'base64' }, onMismatch: 'keep' },
  { lift: { '/**/bytes': 'base64', '/nested': { ragged: 'int32' } } },
  { lift: { '/box': 'raw', '/id': 'raw' } },
  { lift: { '/text': 'drop', '/ids': 'drop' }, onMismatch: 'keep' },
  { lift: { '': 'raw' } },
  { lift: {}, dropStringsOver: 40 },
  { dropStringsOver: 0 },
  { lift: { '/bytes': { base64: 'uint16' }, '/scores': 'float64' }, onMismatch: 'keep', dropStringsOver: 100_000 },
]

async function parsed(
  row: string,
  lifts: Lifts,
): Promise<{ readonly value: unknown } | { readonly error: OffloopError }> {
  try {
    return { value: await parse(Buffer.from(row), lifts) }
  } catch (error) {
    if (error instanceof OffloopError) return { error }
    throw error
  }
}

test('rows of all sizes are what parse makes of their bytes, up to the first that it rejects', async (t) => {
  const random = new Random(23)
  let failed = 0
  for (let round = 0; round < (isFull ? 220 : 44); round += 1) {
    const lifts = LIFTS[round % LIFTS.length] ?? {}
    const rows = random.list(1 + random.int(12), () => randomRow(random))
    const path = fileOf(`${random.once(3) ? '\u{feff}' : ''}${rows.join(random.pick(['\n', '\n', '\n\n']))}\n`)
    const { rows: found, error } = await read(path, lifts)
    const plain = await read(path, {})
    for (const [index, row] of rows.entries()) {
      const name = `round ${round}, row ${index}`
      const expected = await parsed(row, lifts)
      const { offset = 0, length } = plain.rows[index] ?? {}
      if ('error' in expected) {
        failed += 1
        t.is(found.length, index, name)
        t.true(error instanceof OffloopError, name)
        const { code, pointer } = expected.error
        t.like(error, { code, pointer, path, offset: offset + (expected.error.offset ?? NaN) }, name)
        break
      }
      t.deepEqual(found[index], { offset, length: length ?? NaN, value: expected.value }, name)
      if (index === rows.length - 1) t.is(error, undefined, name)
    }
    rmSync(path)
  }
  t.true(5 < failed, 'some rows are rejected')
})

test('the error of a value names its byte of the file, for rows parsed at once and by tasks', async (t) => {
  for (const size of [1, 40_000, 100_000, 700_000]) {
    const filler = 'x'.repeat(size)
    const file = `{"a":"QUJD"}\n\n{"a":"QUI="}\n{"f":"${filler}","a":"QU!D"}\n{"a":"QUJD"}\n`
    const path = fileOf(file)
    const { rows, error } = await read(path, { lift: { '/a': 'base64' } })
    t.deepEqual(
      rows.map(({ value }) => value),
      [{ a: Buffer.from('ABC') }, { a: Buffer.from('AB') }],
    )
    t.true(error instanceof OffloopError)
    const row = Buffer.from(file.split('\n')[3] ?? '')
    const alone = await t.throwsAsync(parse(row, { lift: { '/a': 'base64' } }), { instanceOf: OffloopError })
    const offset = 13 + 1 + 13 + (alone.offset ?? NaN)
    t.like(error, { code: 'ERR_OFFLOOP_LIFT', pointer: '/a', path, offset })
    t.true('QU!D'.includes(file[offset] ?? '\n'))
    const malformed = fileOf(`{"a":"QUJD"}\n{"f":"${filler}","a":{"shape":[1,2,3],"data":"!"}}\n`)
    const experts = await read(malformed, { lift: { '/f': 'drop', '/a': 'experts' }, onMismatch: 'throw' })
    t.like(experts.error, { code: 'ERR_OFFLOOP_EXPERTS', pointer: '/a', path: malformed })
    rmSync(path)
    rmSync(malformed)
  }
})

test('bad rows and values that cannot be lifted: the first of them ends the iteration', async (t) => {
  const lift = { '/a': 'base64' } as const
  const path = fileOf('{"a":"QQ=="}\nxyz\n{"a":5}\n{"a":\n')
  const seen: BadRow[] = []
  const handed = await read(path, { lift, onBadRow: (bad) => seen.push(bad) })
  t.is(handed.rows.length, 1)
  t.like(handed.error, { code: 'ERR_OFFLOOP_LIFT', offset: 17 + 5, pointer: '/a', path })
  t.deepEqual(seen, [{ offset: 13, length: 3, cause: 'garbage' }])
  const done: unknown[] = []
  const refused = await read(path, { lift, onBadRow: 'throw', onProgress: (next) => done.push(next) })
  t.is(refused.rows.length, 1)
  t.like(refused.error, { code: 'ERR_OFFLOOP_CORRUPT', offset: 13, path })
  t.like(done, [{ rows: 1, badRows: 1 }])
  const later = fileOf('{"a":5}\nxyz\n')
  t.like((await read(later, { lift, onBadRow: 'throw' })).error, { code: 'ERR_OFFLOOP_LIFT', offset: 5 })
  t.like(await read(path, { lift, onBadRow: 'throw', maxRowBytes: 11 }), {
    rows: [],
    error: { code: 'ERR_OFFLOOP_CORRUPT', offset: 0 },
  })
  t.deepEqual(await valuesOf(path, { lift, last: 1, onMismatch: 'keep' }), [{ a: 5 }])
})

// ───────────────────────────── rows that JSON.parse refuses ─────────────────────────────

const FILLERS = ['', 'x'.repeat(40_000), 'x'.repeat(100_000)] as const

function nonstandard(filler: string): string {
  return `{"f":"${filler}","nan":NaN,"list":[1,{"c":-Infinity}],"p":[1,NaN,-Infinity],"i":[1,2],"b":"QUJD","s":"number:NaN"}`
}

test('lifts in rows with NaN: everything else is lifted, and numbers arrive as numbers', async (t) => {
  for (const f of FILLERS) {
    const path = fileOf(`${nonstandard(f)}\n`)
    const rest = { f, nan: NaN, list: [1, { c: -Infinity }], s: 'number:NaN' }
    const plain = { p: [1, NaN, -Infinity], i: [1, 2], b: 'QUJD' }
    const b = Buffer.from('ABC')
    const i = Int32Array.of(1, 2)
    const p = Float32Array.of(1, NaN, -Infinity)
    for (const onMismatch of ['throw', 'keep'] as const) {
      const check = async (lift: Lifts['lift'], value: object): Promise<void> => {
        t.deepEqual(await valuesOf(path, { lift, onMismatch }), [{ ...rest, ...plain, ...value }], onMismatch)
      }
      await check({ '/b': 'base64', '/i': 'int32' }, { b, i })
      await check({ '/**/b': 'base64', '/i': { tensor: 'int32' } }, { b, i: { data: i, shape: [2] } })
      await check({ '/p': 'float32' }, { p })
      await check({ '/p': 'float32', '/b': 'base64', '/i': 'int32' }, { p, b, i })
      await check({ '/p': 'float32', '/b': { base64: 'uint8' }, '/f': 'drop' }, { p, b: Uint8Array.from(b), f: null })
      await check({ '/list': 'drop' }, { list: null })
    }
    rmSync(path)
  }
})

test('lifts in rows with NaN: a value that has one is a mismatch, but not in a typed array', async (t) => {
  for (const f of FILLERS) {
    const before = '{"p":[2]}\n'
    const path = fileOf(`${before}${nonstandard(f)}\n`)
    const plain = {
      f,
      nan: NaN,
      list: [1, { c: -Infinity }],
      p: [1, NaN, -Infinity],
      i: [1, 2],
      b: 'QUJD',
      s: 'number:NaN',
    }
    const offset = before.length
    const check = async (lift: Lifts['lift'], pointer: string | undefined, kept: object): Promise<void> => {
      const { rows, error } = await read(path, { lift })
      t.is(rows.length, 1)
      t.true(error instanceof OffloopError)
      t.like(error, { code: 'ERR_OFFLOOP_LIFT', path, offset, pointer })
      const values = await valuesOf(path, { lift, onMismatch: 'keep' })
      t.deepEqual(values[1], { ...plain, ...kept })
    }
    await check({ '/p': 'int32' }, '/p', {})
    await check({ '/**/p': 'float32' }, '/p', {})
    await check({ '/p': { tensor: 'float32' }, '/i': 'int8' }, '/p', { i: Int8Array.of(1, 2) })
    await check({ '/p': 'float32', '/nan': 'base64' }, '/nan', { p: Float32Array.of(1, NaN, -Infinity) })
    await check({ '/b': 'base64', '/i': 'raw' }, undefined, {})
    rmSync(path)
  }
})

test('lifts in rows that are not UTF-8', async (t) => {
  for (const f of FILLERS) {
    const path = fileOf(Buffer.from(`{"f":"${f}","a":"\xff","b":"QUJD","i":[1]}\n`, 'latin1'))
    const values = await valuesOf(path, { lift: { '/b': 'base64', '/i': 'uint8' } })
    t.deepEqual(values, [{ f, a: '\u{fffd}', b: Buffer.from('ABC'), i: Uint8Array.of(1) }])
    rmSync(path)
  }
})

test('dropStringsOver drops strings in rows with NaN, but no numbers', async (t) => {
  const path = fileOf(`{"a":NaN,"b":"${'x'.repeat(100)}","c":-Infinity}\n`)
  for (const dropStringsOver of [0, 12, 50]) {
    t.deepEqual(await valuesOf(path, { dropStringsOver }), [{ a: NaN, b: null, c: -Infinity }])
  }
})

// ───────────────────────────── options and memory ─────────────────────────────

test("lifts go with as: 'value' alone, and wrong ones reject the first next()", async (t) => {
  const check = async (options: unknown, code: string): Promise<void> => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers without types may pass it
    const batches = readJsonl('x', options as ReadOptions)[Symbol.asyncIterator]()
    await t.throwsAsync(async () => await batches.next(), { code }, JSON.stringify(options))
  }
  for (const others of [{}, { fields: ['/a'] }, { reuse: true }]) {
    await check({ ...others, lift: {} }, 'ERR_INVALID_ARG_VALUE')
    await check({ ...others, onMismatch: 'throw' }, 'ERR_INVALID_ARG_VALUE')
    await check({ ...others, dropStringsOver: Infinity }, 'ERR_INVALID_ARG_VALUE')
  }
  await check({ as: 'value', lift: 5 }, 'ERR_INVALID_ARG_TYPE')
  await check({ as: 'value', lift: { '/a': 'other' } }, 'ERR_INVALID_ARG_VALUE')
  await check({ as: 'value', lift: { a: 'base64' } }, 'ERR_INVALID_ARG_VALUE')
  await check({ as: 'value', onMismatch: 'skip' }, 'ERR_INVALID_ARG_VALUE')
  await check({ as: 'value', dropStringsOver: -1 }, 'ERR_OUT_OF_RANGE')
  await check({ as: 'value', dropStringsOver: '1' }, 'ERR_INVALID_ARG_TYPE')
})

test('the lifts are read once, when readJsonl is called', async (t) => {
  const path = fileOf('{"a":"QUJD"}\n')
  const lift: Record<string, 'base64' | 'raw'> = { '/a': 'base64' }
  const batches = readJsonl(path, { as: 'value', lift })
  lift['/a'] = 'raw'
  for await (const [row] of batches) t.deepEqual(row?.value, { a: Buffer.from('ABC') })
  for await (const [row] of batches) t.deepEqual(row?.value, { a: Buffer.from('ABC') })
})

tuning.isRehearsed = false

test.serial('memory of rows goes back, at the end, after a break, an error and an abort', async (t) => {
  const row = `{"f":"${'x'.repeat(200_000)}","a":"QUJD"}\n`
  const small = `{"f":"${'x'.repeat(1000)}","a":"QUJD"}\n`
  const marked = `{"f":"${'x'.repeat(200_000)}","a":"QUJD","n":NaN}\n`
  const path = fileOf(row.repeat(20) + small.repeat(2000) + marked.repeat(20))
  const wrong = fileOf(`${row.repeat(3)}{"f":"${'x'.repeat(200_000)}","a":5}\n`)
  const lift = { '/a': 'base64' } as const
  const rounds = async (): Promise<void> => {
    t.is((await read(path, { lift })).rows.length, 2040)
    for await (const _ of readJsonl(path, { as: 'value', lift })) break
    t.like((await read(wrong, { lift })).error, { code: 'ERR_OFFLOOP_LIFT' })
    const controller = new AbortController()
    const { signal } = controller
    const reason = new Error('enough')
    const { error } = await read(path, { lift, signal, onProgress: () => controller.abort(reason) })
    t.is(error, reason)
  }
  await rounds()
  const { made } = stats().results
  for (let round = 0; round < 5; round += 1) await rounds()
  const { made: later, returned, reused } = stats().results
  t.is(later, made, 'all memory of later rounds is reused')
  t.true(200 <= returned && 200 <= reused, `${returned} came back, ${reused} were reused`)
})

test('many small rows do not block the event loop at a stretch', async (t) => {
  const text = '{"a":"QUJD","b":[1,2,3]}'
  const rows = Array.from({ length: 20_000 }, (_, index) => {
    return { offset: index * 25, length: 24, bytes: Buffer.from(text), mark: undefined }
  })
  let turns = 0
  const count = (): void => {
    turns += 1
    timer = setImmediate(count)
  }
  let timer = setImmediate(count)
  const { rows: found, failure } = await parseRows(rows, planParse({ lift: { '/**/a': 'base64', '/b': 'raw' } }), 'x')
  clearImmediate(timer)
  t.is(failure, undefined)
  t.is(found.length, rows.length)
  t.true(3 < turns, `${turns} turns`)
})
