import { createHash } from 'node:crypto'
import test from 'ava'
import { createEncoder, encode, encodeLines, encodeSync } from '../src/index.ts'
import { runScenario } from './fixtures/child.ts'
import { REGRESSIONS } from './fixtures/json-corpus.ts'
import {
  difference,
  expectedLinesOf,
  expectedOf,
  withEncode,
  withEncoderLines,
  withEncoder,
  withEncodeSync,
  type Subject,
} from './fixtures/stringify.ts'
import { HOSTILE_KEYS } from './fixtures/values.ts'
import { noise } from './fixtures/text.ts'
import { isFull, someOf } from './fixtures/extent.ts'

/** The bytes of JSON.stringify. */
function json(value: unknown, space?: string | number): Buffer {
  return Buffer.from(JSON.stringify(value, null, space))
}

function isSame(bytes: Uint8Array, expected: Uint8Array): boolean {
  return Buffer.compare(bytes, expected) === 0
}

for (const { name, before, make } of REGRESSIONS) {
  test(`regression: ${name}`, async (t) => {
    const encoder = createEncoder()
    await before?.(encoder)
    const subject: Subject = { make }
    const expected = expectedOf(subject)
    t.is(difference(expected, withEncoder(subject, encoder)), undefined)
    t.is(difference(expected, withEncodeSync(subject)), undefined)
    t.is(difference(expected, await withEncode(subject)), undefined)
    t.is(difference(expectedLinesOf(subject, 1), await withEncoderLines(subject, 1, encoder)), undefined)
  })
}

// ───────────────────────────── strings ─────────────────────────────

/** Where one way of copying, scanning or joining gives way to another, and one beside it. */
const LENGTHS = [1, 8, 16, 32, 64, 112, 128, 192, 256, 512, 1024, 4096, 16_384, 32_768, 65_536, 131_072, 262_144]
  .flatMap((length) => [length - 1, length, length + 1])
  .concat([0, 3, 100, 300_000])

const FILLINGS: Readonly<Record<string, string>> = {
  ascii: 'abc xyz 123 ',
  latin1: 'né à ÿ ',
  wide: '中文 text ',
  emoji: 'a😀',
  'lone surrogates': 'a\ud800b\udc00',
  escapes: 'line\nline "quoted" \\ ',
  'nothing but quotes': '"',
  'nothing but control characters': '\u0001',
}

const ENDINGS = ['', '"', '\n', 'é', '中', '😀', '\ud83d', '\ude00', '\\']

function* textsOf(filling: string): Generator<string> {
  for (const [index, length] of someOf([...LENGTHS.entries()])) {
    const body = filling.repeat(Math.ceil(length / filling.length)).slice(0, length)
    yield body
    if (20_000 < length) continue
    const ending = ENDINGS[index % ENDINGS.length] ?? ''
    yield body.slice(0, Math.max(0, length - ending.length)) + ending
    yield (ending + body).slice(0, length)
  }
}

for (const [what, filling] of Object.entries(FILLINGS)) {
  test(`texts of every length are written as JSON.stringify writes them: ${what}`, async (t) => {
    const all = [...textsOf(filling)]
    const encoder = createEncoder()
    for (const text of all) t.true(isSame(encoder.encodeSync(text), json(text)), `${text.length}`)
    const short = all.filter((text) => text.length < 2000)
    for (const value of [
      all,
      { nested: short.map((text) => [text, 1, text]), reversed: short.toReversed() },
      Object.fromEntries(all.map((text, index) => [text, index])),
      short.flatMap((text, id) => [
        { id, text, same: 'same' },
        { id, text: text.slice(1), same: 'same' },
      ]),
      short.map((text, id) => ({ [text]: id, text })),
    ]) {
      const expected = json(value)
      t.true(isSame(await encode(value), expected))
      t.true(isSame(encoder.encodeSync(value), expected))
    }
  })
}

test('a character of each kind at every place of a text', (t) => {
  const all: string[] = []
  for (const character of [
    '"',
    '\n',
    '\u001f',
    '\u007f',
    '\u0080',
    'ÿ',
    '\u07ff',
    '\u0800',
    '\uffff',
    '😀',
    '\ud800',
    '\udc00',
  ]) {
    for (let at = 0; at < 70; at += 1) {
      const text = `${'a'.repeat(at)}${character}${'b'.repeat(69 - at)}`
      all.push(text, `${text}中`, text + text + text + text)
    }
  }
  t.true(isSame(encodeSync(all), json(all)))
  t.true(
    isSame(
      encodeSync(Object.fromEntries(all.map((text) => [text, 1]))),
      json(Object.fromEntries(all.map((text) => [text, 1]))),
    ),
  )
})

test('every UTF-16 code unit, alone and in pairs', (t) => {
  const units = Array.from({ length: 65_536 }, (_, code) => String.fromCharCode(code))
  t.true(isSame(encodeSync(units), json(units)))
  const long = units.join('')
  t.true(isSame(encodeSync(long), json(long)))
  t.true(isSame(encodeSync(units.toReversed().join('')), json(units.toReversed().join(''))))
  const pairs = units.slice(0xd7f0, 0xe010).map((unit) => `\ud83d${unit}\ude00${unit}`)
  t.true(isSame(encodeSync(pairs), json(pairs)))
})

test('strings that the engine keeps in other ways: ropes, slices, both widths', (t) => {
  const wide = `${'é'.repeat(5000)}中`
  const ropes: unknown[] = []
  let rope = ''
  for (let index = 0; index < 3000; index += 1) {
    rope += String(index)
    if (index % 100 === 0)
      ropes.push(rope, `${rope}中`, rope.slice(3, -3), wide.slice(index, -1), wide.slice(-index - 2))
  }
  t.true(isSame(encodeSync(ropes), json(ropes)))
  t.true(
    isSame(
      encodeSync(Object.fromEntries(ropes.map((text) => [text, text]))),
      json(Object.fromEntries(ropes.map((text) => [text, text]))),
    ),
  )
})

test('keys that would end a literal in generated code are keys', (t) => {
  for (const key of HOSTILE_KEYS) {
    const encoder = createEncoder()
    const make = (id: number): object =>
      Object.defineProperty({ id, a: `text ${id}` }, key, { value: id, enumerable: true })
    const rows = Array.from({ length: 200 }, (_, id) => make(id))
    for (const value of [rows, rows, { rows: rows.slice(0, 30) }, { [key]: rows, rows }]) {
      t.true(isSame(encoder.encodeSync(value), json(value)), key)
    }
    for (const row of rows) t.true(isSame(encoder.encodeSync(row), json(row)), key)
    const texts = rows.map((_, id) => ({ id, key, [key]: key, other: id % 2 === 0 ? key : `${key}${key}` }))
    for (let round = 0; round < 2; round += 1) t.true(isSame(encoder.encodeSync(texts), json(texts)), key)
  }
})

test('more keys than an encoder learns', async (t) => {
  const encoder = createEncoder()
  for (let round = 0; round < 2; round += 1) {
    for (let block = 0; block < 32; block += 1) {
      const value = Object.fromEntries(
        Array.from({ length: 300 }, (_, index) => [`key ${block * 300 + index}`, [{ id: block }]]),
      )
      t.true(isSame(encoder.encodeSync(value), json(value)))
    }
  }
  const rows = Array.from({ length: 20_000 }, (_, index) => ({ [`unique ${index}`]: index, same: 1 }))
  t.true(isSame(await encoder.encode(rows), json(rows)))
  t.true(isSame(await encode(rows), json(rows)))
})

// ───────────────────────────── sizes ─────────────────────────────

const LARGE: Readonly<Record<string, () => unknown>> = {
  integers: () => Array.from({ length: 700_000 }, (_, index) => (index * 7919) % 1_000_003),
  doubles: () => Array.from({ length: 300_000 }, (_, index) => Math.sin(index) * 10 ** (index % 40)),
  'short texts': () => Array.from({ length: 200_000 }, (_, index) => `text "${index}"`),
  'texts of some length': () =>
    Array.from({ length: 8000 }, (_, index) => `${index} ${'né '.repeat(120 + (index % 50))}`),
  'wide texts': () => Array.from({ length: 8000 }, (_, index) => `${index} ${'中'.repeat(index % 300)}`),
  'objects of one shape': () =>
    Array.from({ length: 30_000 }, (_, id) => ({
      id,
      name: `name ${id}`,
      at: new Date(id * 1e8),
      score: id / 3,
      tags: ['a', 'b'],
      child: { id },
    })),
  'objects of ever new shapes': () =>
    Array.from({ length: 20_000 }, (_, id) => ({ [`k${id % 3000}`]: id, [`x${id}`]: [id], text: `t${id}` })),
  'a dictionary': () => Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`key ${index}`, index])),
  'texts of nothing but escapes': () => ['\u0001'.repeat(700_000), Array.from({ length: 200_000 }, () => '\u0002')],
  'lone surrogates': () => '\ud800'.repeat(500_000),
  'Buffers and typed arrays': () => [noise(700_000), noise(50_000), new Uint8Array(noise(300_000))],
  'long keys': () =>
    Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`${index}${'k"中'.repeat(100_000)}`, index])),
  'small arrays': () => Array.from({ length: 100_000 }, (_, index) => (index % 3 === 0 ? [] : [index, [index / 2]])),
}

for (const [what, make] of Object.entries(LARGE)) {
  test(`values of many segments: ${what}`, async (t) => {
    const value = make()
    const expected = createHash('sha256').update(json(value)).digest('hex')
    const encoder = createEncoder()
    for (const bytes of [await encode(value), encodeSync(value), await encoder.encode(value)]) {
      t.is(createHash('sha256').update(bytes).digest('hex'), expected)
    }
  })
}

test('large values with space', async (t) => {
  const value = Array.from({ length: 30_000 }, (_, id) => ({
    id,
    text: `"{[\n${id}`,
    list: [id, {}, []],
    nothing: undefined,
  }))
  t.true(isSame(await encode(value, { space: 2 }), json(value, 2)))
  t.true(isSame(encodeSync(value, { space: '\t' }), json(value, '\t')))
})

// ───────────────────────────── options, results ─────────────────────────────

test('newline ends the document with one "\\n", whatever it is', async (t) => {
  const encoder = createEncoder({ newline: true })
  const both = createEncoder({ newline: true, space: 2 })
  for (const value of [
    null,
    'text\n',
    1,
    [],
    {},
    [1, [2]],
    { a: 'b' },
    Array.from({ length: 50_000 }, (_, index) => index),
  ]) {
    const expected = Buffer.concat([json(value), Buffer.from('\n')])
    t.true(isSame(await encode(value, { newline: true }), expected))
    t.true(isSame(encodeSync(value, { newline: true }), expected))
    t.true(isSame(await encoder.encode(value), expected))
    t.true(isSame(encoder.encodeSync(value), expected))
    const spaced = Buffer.concat([json(value, 2), Buffer.from('\n')])
    t.true(isSame(await encode(value, { newline: true, space: 2 }), spaced))
    t.true(isSame(both.encodeSync(value), spaced))
    t.true(isSame(encodeSync(value, { newline: false }), json(value)))
  }
})

test('an encoder goes on with its options, however much it has learned', async (t) => {
  const rows = Array.from({ length: 100 }, (_, id) => ({ id, name: 'name', value: id / 7 }))
  const replacer = (key: string, value: unknown): unknown => (key === 'name' ? undefined : value)
  const encoders = [
    { encoder: createEncoder({ space: 2 }), expected: (value: unknown) => json(value, 2) },
    {
      encoder: createEncoder({ replacer }),
      expected: (value: unknown) => Buffer.from(JSON.stringify(value, replacer)),
    },
    {
      encoder: createEncoder({ replacer: ['name', 'id'] }),
      expected: (value: unknown) => Buffer.from(JSON.stringify(value, ['name', 'id'])),
    },
  ]
  for (const { encoder, expected } of encoders) {
    for (let round = 0; round < 70; round += 1) {
      for (const value of [rows, rows[round], { rows: rows.slice(0, 5) }]) {
        t.true(isSame(encoder.encodeSync(value), expected(value)))
        if (round % 20 === 0) t.true(isSame(await encoder.encode(value), expected(value)))
      }
    }
  }
})

test('an encoder reads its options when it is made, encode reads them for each call', async (t) => {
  const replacer = ['a']
  const encoder = createEncoder({ replacer })
  replacer.push('b')
  t.is(encoder.encodeSync({ a: 1, b: 2 }).toString(), '{"a":1}')
  t.is(encodeSync({ a: 1, b: 2 }, { replacer }).toString(), '{"a":1,"b":2}')
  t.is((await encoder.encode({ a: 1, b: 2 })).toString(), '{"a":1}')
})

test('encoders learn apart from each other', (t) => {
  const [a, b] = [createEncoder(), createEncoder()]
  for (let round = 0; round < 200; round += 1) {
    const [left, right] = [
      { id: round, left: 'l', [`k${round % 9}`]: 1 },
      { right: 'r', id: [round], left: { l: 1 } },
    ]
    t.true(isSame(a.encodeSync(left), json(left)))
    t.true(isSame(b.encodeSync(right), json(right)))
    if (round % 10 === 0) t.true(isSame(a.encodeSync(right), json(right)))
  }
})

test('where JSON.stringify returns undefined there is a TypeError', async (t) => {
  const refused = { instanceOf: TypeError, code: 'ERR_INVALID_ARG_VALUE' }
  for (const value of [undefined, () => 1, Symbol('s'), { toJSON: () => undefined }]) {
    await t.throwsAsync(encode(value), refused)
    t.throws(() => encodeSync(value), refused)
    await t.throwsAsync(createEncoder().encode(value), refused)
    await t.throwsAsync(encodeLines([1, value]), refused)
  }
  await t.throwsAsync(encode(1, { replacer: () => undefined }), refused)
})

test('results are Buffers over memory of their own where they are large, and can be transferred', async (t) => {
  for (const size of [65_534, 65_535, 100_000, 3_000_000]) {
    const text = 'x'.repeat(size)
    for (const bytes of [await encode(text), encodeSync(text), await encodeLines([text])]) {
      t.true(Buffer.isBuffer(bytes))
      t.true(bytes.toString('latin1').startsWith(`"${text}"`))
      const { buffer } = bytes
      const clone = structuredClone(buffer, { transfer: [buffer] })
      t.is(bytes.length, 0)
      t.true(size <= clone.byteLength)
    }
  }
})

test('what lies behind a result in its ArrayBuffer is zero', async (t) => {
  await encode(Array.from({ length: 100_000 }, (_, index) => `secret ${index}`))
  for (const value of ['\u0001'.repeat(100_000), 'x'.repeat(100_000), Array.from({ length: 60_000 }, () => 1)]) {
    for (const bytes of [await encode(value), encodeSync(value)]) {
      t.true(new Uint8Array(bytes.buffer, bytes.byteOffset + bytes.length).every((byte) => byte === 0))
    }
  }
})

const LONG = [
  ['huge', 'a result longer than a string can be is right to its last byte'],
  ['collected', 'twenty thousand calls with collections leave memory flat'],
] as const

for (const [name, what] of [
  ['patched', 'built-ins patched after import change no bytes'],
  ['elements', 'Array.prototype may have elements, with setters or read-only'],
  ...(isFull ? LONG : []),
  ['transferred', 'results transferred to a worker take nothing from those that come after'],
  ['crowded', 'four workers encode at once, and are terminated'],
  ['aborted', 'calls that wait for a thread are rejected with the reason of their signal'],
  ['exits', 'a process ends with tasks under way'],
] as const) {
  test(what, async (t) => {
    const ended = await runScenario('json', name)
    t.is(ended.stdout, 'played\n', `${ended.signal} ${ended.stderr}`)
    t.is(ended.code, 0, ended.stderr)
  })
}

test('where code generation is forbidden, what was learned is encoded as well', async (t) => {
  const ended = await runScenario('json', 'learned', { NODE_OPTIONS: '--disallow-code-generation-from-strings' })
  t.is(ended.stdout, 'forbidden\nplayed\n', ended.stderr)
})
