/** Saving whole files, against what the encoders make of the same values. */

import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { decode } from '@msgpack/msgpack'
import test from 'ava'
import { encode, encodeLines, encodeMsgpack, saveFile, type SaveOptions } from '../src/index.ts'
import { runScenario } from './fixtures/child.ts'
import { makeFile } from './fixtures/folder.ts'

const VALUE = { text: 'é"\n', numbers: [1, 2.5, -0], deep: { a: [{}, [], null] } }

/** Of a file that is not there, alone in its folder. */
function newPath(): string {
  const folder = join(dirname(makeFile('')), 'saved')
  mkdirSync(folder)
  return join(folder, 'file')
}

function namesBeside(path: string): string[] {
  return readdirSync(dirname(path))
}

test('a value is saved as the JSON that encode makes', async (t) => {
  const path = newPath()
  for (const options of [{}, { space: 2, newline: true }, { sortKeys: true }, { space: '\t', sortKeys: true }]) {
    const expected = await encode(VALUE, options)
    t.deepEqual(await saveFile(path, VALUE, { encode: options }), { bytes: expected.length })
    t.deepEqual(readFileSync(path), expected)
  }
  t.deepEqual(namesBeside(path), ['file'])
})

test('a file of exactly maxBytes is saved, and one of a byte more is refused', async (t) => {
  const path = newPath()
  const rows = Array.from({ length: 3000 }, (_, row) => ({ row, text: `é ${row}`.repeat(700) }))
  for (const [value, format, size] of [
    [VALUE, 'json', (await encode(VALUE)).length],
    [rows, 'json', (await encode(rows)).length],
    [rows, 'jsonl', (await encodeLines(rows)).length],
  ] as const) {
    const expected = await saveFile(path, value, { format, encode: { maxBytes: size } })
    t.is(expected.bytes, size)
    const saved = readFileSync(path)
    await t.throwsAsync(saveFile(path, value, { format, encode: { maxBytes: size - 1 } }), {
      code: 'ERR_OFFLOOP_TOO_LARGE',
    })
    t.true(readFileSync(path).equals(saved))
    t.deepEqual(namesBeside(path), ['file'])
  }
})

test('rows that never end are refused beyond maxBytes', async (t) => {
  const path = newPath()
  function* endless(): Generator {
    for (;;) yield { text: 'x'.repeat(10_000) }
  }
  for (const rows of [endless(), Readable.from(endless())]) {
    await t.throwsAsync(saveFile(path, rows, { format: 'jsonl', encode: { maxBytes: 1e7 } }), {
      code: 'ERR_OFFLOOP_TOO_LARGE',
    })
  }
  t.deepEqual(namesBeside(path), [])
})

test('a value is saved as the MessagePack that encodeMsgpack makes', async (t) => {
  const path = pathToFileURL(newPath())
  const batch = { ids: new Uint16Array([1, 2]), mask: Buffer.from([1]), map: new Map([[1, 2n]]), text: 'é' }
  const expected = await encodeMsgpack(batch)
  t.deepEqual(await saveFile(path, batch, { format: 'msgpack' }), { bytes: expected.length })
  t.deepEqual(readFileSync(path), expected)
  t.like(decode(readFileSync(path)), { ids: [1, 2], text: 'é' })
})

test('rows of iterables of both kinds are saved as the lines that encodeLines makes', async (t) => {
  const path = newPath()
  const rows = Array.from({ length: 3000 }, (_, row) => ({ row, text: 'x'.repeat(5000) }))
  async function* later(): AsyncGenerator {
    for (const row of rows) {
      if (row.row % 100 === 0) await nextTurn()
      yield row
    }
  }
  const expected = await encodeLines(rows)
  for (const given of [rows, new Set(rows), later(), Readable.from(rows)]) {
    t.deepEqual(await saveFile(path, given, { format: 'jsonl' }), { bytes: expected.length })
    t.true(readFileSync(path).equals(expected))
  }
  t.deepEqual(await saveFile(path, [], { format: 'jsonl' }), { bytes: 0 })
  t.is(readFileSync(path, 'utf8'), '')
  await saveFile(path, [{ b: 1n, a: 2 }], { format: 'jsonl', encode: { sortKeys: true, bigint: 'string' } })
  t.is(readFileSync(path, 'utf8'), '{"a":2,"b":"1"}\n')
})

test('bytes are saved as they are when the call is made', async (t) => {
  const path = newPath()
  for (const size of [0, 1, 70_000, 10_000_000]) {
    const bytes = Buffer.alloc(size, 'abc')
    const saved = saveFile(path, bytes.subarray(0, size), { format: 'bytes' })
    bytes.fill(0)
    t.deepEqual(await saved, { bytes: size })
    t.true(readFileSync(path).equals(Buffer.alloc(size, 'abc')))
  }
})

test('a value is saved as it is when the call is made', async (t) => {
  const path = newPath()
  const value = { a: 1, rows: [1] }
  const saved = saveFile(path, value)
  value.a = 2
  await saved
  t.is(readFileSync(path, 'utf8'), '{"a":1,"rows":[1]}')
  const lines = saveFile(path, value.rows, { format: 'jsonl' })
  value.rows.push(2)
  await lines
  t.is(readFileSync(path, 'utf8'), '1\n')
})

test('every durability saves', async (t) => {
  const path = newPath()
  for (const durability of ['none', 'data', 'full'] as const) {
    await saveFile(path, durability, { durability })
    t.is(readFileSync(path, 'utf8'), `"${durability}"`)
  }
})

test('a new file has the mode asked for, one that is replaced keeps its own', async (t) => {
  const path = newPath()
  await saveFile(path, 1, { mode: 0o600 })
  t.is(statSync(path).mode & 0o777, 0o600)
  chmodSync(path, 0o646)
  await saveFile(path, 2)
  t.is(statSync(path).mode & 0o777, 0o646)
  await saveFile(path, 2, { mode: 0o640 })
  t.is(statSync(path).mode & 0o777, 0o640)
})

test('a link stays, and what it leads to is replaced', async (t) => {
  const path = newPath()
  symlinkSync('file', `${path}.link`)
  await saveFile(`${path}.link`, 1)
  t.is(readFileSync(path, 'utf8'), '1')
  t.deepEqual(namesBeside(path).toSorted(), ['file', 'file.link'])
})

function* badRows(): Generator {
  for (let row = 0; row < 2000; row += 1) yield 'x'.repeat(5000)
  yield 1n
}

async function* failing(): AsyncGenerator {
  yield* Array.from({ length: 2000 }, () => 'x'.repeat(5000))
  throw new Error('no more')
}

for (const [what, value, options, expected] of [
  ['a value without JSON', undefined, {}, { code: 'ERR_INVALID_ARG_VALUE' }],
  ['a bigint', { a: 1n }, {}, { message: /BigInt/ }],
  ['a bad row behind ten megabytes of good ones', badRows(), { format: 'jsonl' }, { message: /BigInt/ }],
  ['an iterator that throws', failing(), { format: 'jsonl' }, { message: 'no more' }],
  ['rows that are none', 7, { format: 'jsonl' }, { code: 'ERR_INVALID_ARG_TYPE', message: /"value" argument/ }],
  ['bytes that are none', 'text', { format: 'bytes' }, { code: 'ERR_INVALID_ARG_TYPE' }],
  ['an unknown option', 1, { fmt: 'json' }, { code: 'ERR_INVALID_ARG_VALUE' }],
  ['an unknown format', 1, { format: 'cbor' }, { code: 'ERR_INVALID_ARG_VALUE' }],
  ['an unknown durability', 1, { durability: 'disk' }, { code: 'ERR_INVALID_ARG_VALUE' }],
  ['a mode out of range', 1, { mode: -1 }, { code: 'ERR_OUT_OF_RANGE' }],
  ['a signal that is none', 1, { signal: {} }, { code: 'ERR_INVALID_ARG_TYPE' }],
  ['white space in rows', [1], { format: 'jsonl', encode: { space: 1 } }, { code: 'ERR_INVALID_ARG_VALUE' }],
  ['JSON options of MessagePack', 1, { format: 'msgpack', encode: {} }, { code: 'ERR_INVALID_ARG_VALUE' }],
  ['JSON options of bytes', Buffer.from(''), { format: 'bytes', encode: {} }, { code: 'ERR_INVALID_ARG_VALUE' }],
  ['a signal of encode', 1, { encode: { signal: undefined } }, { code: 'ERR_INVALID_ARG_VALUE' }],
] as const) {
  test(`${what} rejects, and leaves the old file and no other`, async (t) => {
    const path = newPath()
    writeFileSync(path, 'old')
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers without types may pass it
    await t.throwsAsync(saveFile(path, value, options as never), expected)
    t.is(readFileSync(path, 'utf8'), 'old')
    t.deepEqual(namesBeside(path), ['file'])
  })
}

test('a place that nothing can be saved in is refused with Node’s own error', async (t) => {
  const path = newPath()
  await t.throwsAsync(saveFile(join(path, 'in', 'none'), 1), { code: 'ENOENT' })
  await t.throwsAsync(saveFile(dirname(path), 1), { code: 'EISDIR' })
  await t.throwsAsync(saveFile('/dev/null', 1), { code: 'ESPIPE' })
  t.true(statSync('/dev/null').isCharacterDevice())
  await t.throwsAsync(saveFile('a\0b', 1), { code: 'ERR_INVALID_ARG_VALUE' })
  t.deepEqual(namesBeside(path), [])
})

test('a name as long as names can be is saved to', async (t) => {
  const path = join(dirname(newPath()), 'x'.repeat(255))
  await saveFile(path, 1)
  t.is(readFileSync(path, 'utf8'), '1')
})

test('an aborted signal ends it with its reason, and nothing is left', async (t) => {
  const path = newPath()
  const reason = new Error('enough')
  t.is(await t.throwsAsync(saveFile(path, 1, { signal: AbortSignal.abort(reason) })), reason)
  const controller = new AbortController()
  async function* rows(): AsyncGenerator {
    for (let row = 0; ; row += 1) {
      // Several megabytes are written by then.
      if (row === 100) controller.abort(reason)
      yield 'x'.repeat(100_000)
    }
  }
  const options: SaveOptions = { format: 'jsonl', signal: controller.signal }
  t.is(await t.throwsAsync(saveFile(path, rows(), options)), reason)
  t.deepEqual(namesBeside(path), [])
})

test('an abort at any moment leaves the old file, or the new one whole', async (t) => {
  const path = newPath()
  const value = 'x'.repeat(1_000_000)
  for (let turns = 0; turns < 40; turns += 1) {
    writeFileSync(path, 'old')
    const controller = new AbortController()
    const outcome = saveFile(path, value, { signal: controller.signal, durability: 'none' }).then(
      () => true,
      () => false,
    )
    for (let turn = 0; turn < turns; turn += 1) await nextTurn()
    controller.abort()
    const isSaved = await outcome
    t.is(readFileSync(path, 'utf8'), isSaved ? JSON.stringify(value) : 'old')
    t.deepEqual(namesBeside(path), ['file'])
  }
})

test('saved at the same time, one file follows the other', async (t) => {
  const path = newPath()
  const values = Array.from({ length: 20 }, (_, index) => String(index).repeat(100_000))
  await Promise.all(values.map((value) => saveFile(path, value, { durability: 'none' })))
  const text = readFileSync(path, 'utf8')
  t.true(values.includes(JSON.parse(text)))
  t.deepEqual(namesBeside(path), ['file'])
})

test('a stream is not read far ahead of the disk', async (t) => {
  const ended = await runScenario('save', 'bounded', { OFFLOOP_FILE: newPath() })
  t.is(ended.stdout, 'played\n', ended.stderr)
})

test('a file that nobody waits for is saved before the process ends', async (t) => {
  const path = newPath()
  const ended = await runScenario('save', 'unawaited', { OFFLOOP_FILE: path })
  t.is(ended.stdout, 'played\n', ended.stderr)
  t.is(readFileSync(path, 'utf8'), '1\n2\n')
  t.false(existsSync(`${path}.tmp`))
})
