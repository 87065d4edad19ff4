/** Reading JSONL files, against a reader that splits the whole file and knows no batches. */

import { appendFileSync, closeSync, openSync, readdirSync, truncateSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import test from 'ava'
import { readJsonl, type BadRow, type ReadOptions, type RowWithBytes } from '../src/index.ts'
import { Random, randomValue } from './fixtures/values.ts'
import { isFull } from './fixtures/extent.ts'
import { filesIn, makeFolder } from './fixtures/folder.ts'
import { checkMemory } from './fixtures/results.ts'

const folder = makeFolder()
const { fileOf } = filesIn(folder)

async function all<T>(batches: AsyncIterable<readonly T[]>): Promise<T[]> {
  const rows: T[] = []
  for await (const batch of batches) for (const row of batch) rows.push(row)
  return rows
}

async function texts(path: string, options?: ReadOptions): Promise<string[]> {
  return (await all(readJsonl(path, options))).map(({ bytes }) => bytes.toString())
}

async function errorOf(batches: AsyncIterable<unknown>): Promise<unknown> {
  try {
    for await (const _ of batches);
    return 'no error'
  } catch (error) {
    return error
  }
}

/** The value at a pointer, as a walk finds it. */
function at(value: unknown, pointer: string): unknown {
  let found = value
  for (const segment of pointer.split('/').slice(1)) {
    const key = segment.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return undefined
    if (Array.isArray(found) && !/^(?:0|[1-9]\d*)$/.test(key)) return undefined
    found = Reflect.get(found, key)
  }
  return found
}

const POINTERS = ['', '/a', '/a/b', '/a/0', '/b/1/a', '/~1', '/~0', '/', '/data', '/x'] as const

function randomRow(random: Random): string {
  const build = (depth: number): unknown => {
    if (depth === 0 || random.once(4)) return random.once(3) ? randomValue(random) : random.int(1000)
    if (random.once(2)) return random.list(random.int(4), () => build(depth - 1))
    return Object.fromEntries(
      random.list(random.int(5), () => [random.pick(['a', 'b', '/', '~', '', 'data', 'é', '"']), build(depth - 1)]),
    )
  }
  try {
    return JSON.stringify(build(4)) ?? 'null'
  } catch {
    // Bigints and circles have no JSON.
    return '{"a":1}'
  }
}

test('rows, values and fields of random files, and where they stand', async (t) => {
  const random = new Random(5)
  for (let round = 0; round < 60; round += 1) {
    const rows = random.list(random.int(400), () => randomRow(random))
    const path = fileOf(rows.map((row) => `${row}\n`).join(random.pick(['', '', '\n', ' \r\n'])))
    const bytes = await all(readJsonl(path))
    t.deepEqual(
      bytes.map((row) => row.bytes.toString()),
      rows,
    )
    const whole = Buffer.concat(bytes.map((row) => row.bytes))
    t.is(
      whole.length,
      bytes.reduce((sum, { length }) => sum + length, 0),
    )
    const values = await all(readJsonl(path, { as: 'value' }))
    t.deepEqual(
      values.map(({ value }) => value),
      rows.map((row): unknown => JSON.parse(row)),
    )
    const picked = await all(readJsonl(pathToFileURL(path), { fields: POINTERS }))
    for (const [index, { fields }] of picked.entries()) {
      const value: unknown = JSON.parse(rows[index] ?? '')
      for (const pointer of POINTERS) t.deepEqual(fields[pointer], at(value, pointer), pointer)
    }
    t.is(picked.length, rows.length)
    const places = (list: readonly { offset: number; length: number }[]): unknown =>
      list.map(({ offset, length }) => [offset, length])
    t.deepEqual(places(values), places(bytes))
    t.deepEqual(places(picked), places(bytes))
    const last = random.int(20)
    t.deepEqual(await texts(path, { last }), last === 0 ? [] : rows.slice(-last))
    const after = random.pick([...bytes, { offset: 0, length: 0 }])
    const rest = await texts(path, { from: after.offset + after.length })
    t.deepEqual(rest, rows.slice(rows.length - rest.length))
    t.is(rest.length, after.length === 0 ? rows.length : bytes.filter(({ offset }) => after.offset < offset).length)
  }
})

test('bad rows are skipped and counted, handed over, or thrown', async (t) => {
  const path = fileOf('{"a":1}\n{"a":\nxyz\n\n  \n{"a":2}\n\0\0\n{"a":3')
  t.deepEqual(await texts(path), ['{"a":1}', '{"a":2}'])
  const bad: BadRow[] = []
  await texts(path, { onBadRow: (row) => bad.push(row) })
  t.deepEqual(bad, [
    { offset: 8, length: 5, cause: 'partial' },
    { offset: 14, length: 3, cause: 'garbage' },
    { offset: 30, length: 2, cause: 'nul' },
    { offset: 33, length: 6, cause: 'partial' },
  ])
  const seen: unknown[] = []
  await texts(path, { onProgress: (done) => seen.push(done) })
  t.deepEqual(seen.at(-1), { bytes: 39, total: 39, rows: 2, badRows: 4 })
  const before: RowWithBytes[] = []
  const reading = async (): Promise<void> => {
    for await (const rows of readJsonl(path, { onBadRow: 'throw' })) before.push(...rows)
  }
  await t.throwsAsync(reading, { code: 'ERR_OFFLOOP_CORRUPT' })
  t.is(before.length, 1)
  t.like(await errorOf(readJsonl(path, { onBadRow: 'throw' })), { path, offset: 8 })
  const mine = new Error('mine')
  const throwing = (): never => {
    throw mine
  }
  t.is(await errorOf(readJsonl(path, { onBadRow: throwing })), mine)
  t.is(await errorOf(readJsonl(path, { onProgress: throwing })), mine)
})

test('glued rows are a row for each record; a BOM is none of a row; only "\\n" separates', async (t) => {
  const glued = fileOf('\u{feff}{"a":1}{"a":2} [3]\n{"b":"\u{2028}\u{85}"}\r\n"x"\n')
  const rows = await all(readJsonl(glued, { as: 'value' }))
  t.deepEqual(
    rows.map(({ value }) => value),
    [{ a: 1 }, { a: 2 }, [3], { b: '\u{2028}\u{85}' }, 'x'],
  )
  t.deepEqual(
    rows.slice(0, 3).map(({ offset, length }) => [offset, length]),
    [
      [3, 7],
      [10, 7],
      [18, 3],
    ],
  )
  t.deepEqual(await texts(glued, { last: 4 }), ['{"a":2}', '[3]', '{"b":"\u{2028}\u{85}"}\r', '"x"'])
  t.deepEqual(await texts(glued, { from: 10, last: 9 }), ['{"a":2}', '[3]', '{"b":"\u{2028}\u{85}"}\r', '"x"'])
})

test('numbers that JSON has not arrive as numbers, wherever they stand', async (t) => {
  const path = fileOf('{"a":NaN,"b":[Infinity,{"c":-Infinity}],"d":"NaN","number:":"number:1"}\nNaN\n{"a":"\\ud800"}\n')
  const expected = { a: NaN, b: [Infinity, { c: -Infinity }], d: 'NaN', 'number:': 'number:1' }
  const values = await all(readJsonl(path, { as: 'value' }))
  t.deepEqual(
    values.map(({ value }) => value),
    [expected, NaN, { a: '\ud800' }],
  )
  const [first] = await all(readJsonl(path, { fields: ['/a', '/b/1', '/d', '/x'] }))
  t.deepEqual<unknown, unknown>(first?.fields, { '/a': NaN, '/b/1': { c: -Infinity }, '/d': 'NaN', '/x': undefined })
})

test('a string that looks like such a number stays a string, however it is written', async (t) => {
  for (const text of ['number:NaN', '#number:1', '$number:x', '##number:', `${'#'.repeat(40_000)}number:`]) {
    const escaped = Buffer.from(text.slice(-20))
      .toString('hex')
      .replaceAll(/../g, String.raw`\u00$&`)
    const path = fileOf(`[NaN,"${text}","${escaped}"]\n`)
    const [row] = await all(readJsonl(path, { as: 'value' }))
    t.deepEqual(row?.value, [NaN, text, text.slice(-20)])
  }
})

test('bytes that are no UTF-8 are kept as bytes, and read as U+FFFD', async (t) => {
  const path = fileOf(Buffer.from('{"a":"\xff"}\n', 'latin1'))
  const [row] = await all(readJsonl(path))
  t.deepEqual([...(row?.bytes ?? [])], [...Buffer.from('{"a":"\xff"}', 'latin1')])
  t.deepEqual((await all(readJsonl(path, { as: 'value' })))[0]?.value, { a: '\u{fffd}' })
})

test('keys that are special in JavaScript are fields like others', async (t) => {
  const path = fileOf('{"__proto__":{"x":1},"constructor":2}\n')
  const [row] = await all(readJsonl(path, { fields: ['/__proto__/x', '/constructor', '/toString'] }))
  t.deepEqual<unknown, unknown>(row?.fields, { '/__proto__/x': 1, '/constructor': 2, '/toString': undefined })
})

test('no file, an empty one, one of blanks', async (t) => {
  t.like(await errorOf(readJsonl(join(folder, 'none'))), {
    code: 'ENOENT',
    syscall: 'open',
    path: join(folder, 'none'),
  })
  t.like(await errorOf(readJsonl(folder)), { code: 'EISDIR' })
  t.deepEqual(await texts(fileOf('')), [])
  t.deepEqual(await texts(fileOf('\n \n\r\n')), [])
  t.deepEqual(await texts(fileOf('12')), [])
  t.deepEqual(await texts(fileOf('12\n"a"')), ['12', '"a"'])
})

test('a row longer than any batch', async (t) => {
  const long = JSON.stringify({ a: 'x'.repeat(9_000_000), id: 7 })
  const path = fileOf(`{"id":1}\n${long}\n{"id":2}\n`)
  const rows = await all(readJsonl(path))
  t.deepEqual(
    rows.map(({ length }) => length),
    [8, long.length, 8],
  )
  checkMemory(t, rows[1]?.bytes ?? Buffer.alloc(0))
  t.true(rows[1]?.bytes.equals(Buffer.from(long)))
  t.deepEqual(
    (await all(readJsonl(path, { fields: ['/id'] }))).map(({ fields }) => fields['/id']),
    [1, 7, 2],
  )
  t.deepEqual(
    (await all(readJsonl(path, { last: 2, fields: ['/id'] }))).map(({ fields }) => fields['/id']),
    [7, 2],
  )
})

test('a file that grows is read to the size it had; one that shrinks ends cleanly', async (t) => {
  const row = `${JSON.stringify({ a: 'x'.repeat(1000) })}\n`
  const path = fileOf(row.repeat(4000))
  let count = 0
  for await (const rows of readJsonl(path)) {
    if (count === 0) appendFileSync(path, row.repeat(100))
    count += rows.length
  }
  t.is(count, 4000)
  count = 0
  for await (const rows of readJsonl(path)) {
    if (count === 0) truncateSync(path, row.length * 2500 + 7)
    count += rows.length
  }
  t.is(count, 2500)
})

const descriptors = process.platform === 'linux' ? test.serial : test.skip

descriptors('the file is closed at the end, after a break, an error, and an abort', async (t) => {
  const path = fileOf('{"a":1}\n'.repeat(600_000))
  const open = (): number => readdirSync('/proc/self/fd').length
  const before = open()
  for await (const rows of readJsonl(path)) {
    t.true(before < open())
    t.true(0 < rows.length)
    break
  }
  t.is(open(), before)
  await all(readJsonl(path, { fields: ['/a'] }))
  t.is(open(), before)
  const reason = new Error('enough')
  const controller = new AbortController()
  const reading = async (): Promise<void> => {
    for await (const _ of readJsonl(path, { signal: controller.signal })) controller.abort(reason)
  }
  t.is(await t.throwsAsync(reading), reason)
  t.is(open(), before)
})

test('it never throws: wrong arguments reject the first next()', async (t) => {
  const check = async (options: unknown, code: string, path: unknown = 'x'): Promise<void> => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers without types may pass it
    const batches = readJsonl(path as string, options as ReadOptions)
    t.like(await errorOf(batches), { code })
  }
  await check({}, 'ERR_INVALID_ARG_TYPE', 5)
  await check({}, 'ERR_INVALID_ARG_VALUE', 'a\0b')
  await check(5, 'ERR_INVALID_ARG_TYPE')
  await check({ other: 1 }, 'ERR_INVALID_ARG_VALUE')
  await check({ from: -1 }, 'ERR_OUT_OF_RANGE')
  await check({ last: 1.5 }, 'ERR_OUT_OF_RANGE')
  await check({ onBadRow: 'keep' }, 'ERR_INVALID_ARG_VALUE')
  await check({ onProgress: 5 }, 'ERR_INVALID_ARG_TYPE')
  await check({ fields: '/a' }, 'ERR_INVALID_ARG_TYPE')
  await check({ fields: [5] }, 'ERR_INVALID_ARG_TYPE')
  await check({ fields: ['a'] }, 'ERR_INVALID_ARG_VALUE')
  await check({ fields: ['/~2'] }, 'ERR_INVALID_ARG_VALUE')
  await check({ as: 'text' }, 'ERR_INVALID_ARG_VALUE')
  await check({ as: 'value', fields: ['/a'] }, 'ERR_INVALID_ARG_VALUE')
  await check({ signal: {} }, 'ERR_INVALID_ARG_TYPE')
  const aborted = new Error('before')
  t.is(await errorOf(readJsonl('x', { signal: AbortSignal.abort(aborted) })), aborted)
})

test('rows of 64 KiB and more can be transferred; smaller ones share', async (t) => {
  const path = fileOf(`"${'a'.repeat(70_000)}"\n"b"\n"${'c'.repeat(80_000)}"\n"d"\n`)
  const rows = await all(readJsonl(path))
  const [first, second, third, fourth] = rows.map(({ bytes }) => bytes.buffer)
  t.not(first, third)
  t.is(second, fourth)
  t.is(first?.byteLength, 80 * 1024)
})

if (isFull) {
  test('a row longer than a string can be is told to be, where it is asked for as a value', async (t) => {
    const path = fileOf('{"a":1}\n["')
    const mebibyte = Buffer.alloc(2 ** 20, 'x')
    const file = openSync(path, 'a')
    for (let count = 0; count < 512; count += 1) writeSync(file, mebibyte)
    writeSync(file, '"]\n')
    closeSync(file)
    const error = await errorOf(readJsonl(path, { as: 'value', from: 8 }))
    truncateSync(path, 0)
    t.like(error, { code: 'ERR_OFFLOOP_TOO_LARGE', offset: 8, path })
  })
}
