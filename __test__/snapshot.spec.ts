/** What is made of a snapshot, against what the value itself becomes; and the memory it holds. */

import { createHash } from 'node:crypto'
import test, { type ExecutionContext } from 'ava'
import {
  capture,
  configure,
  createEncoder,
  encode,
  encodeMsgpack,
  rawJson,
  stats,
  type EncodeOptions,
  type Snapshot,
} from '../src/index.ts'
import { attempt, attemptLater, differ, told } from './fixtures/attempt.ts'
import { runScenario } from './fixtures/child.ts'
import { pack } from './fixtures/packer.ts'
import { print } from './fixtures/printer.ts'
import { LIMITS, Random, randomMix, randomShape, randomTable, randomValue } from './fixtures/values.ts'
import { FUZZ } from './fixtures/extent.ts'

type CaptureOptions = NonNullable<Parameters<typeof capture>[1]>
type JsonOptions = Pick<EncodeOptions, 'space' | 'newline' | 'sortKeys'>

const JSON_OPTIONS: readonly JsonOptions[] = [
  {},
  { space: 2 },
  { newline: true },
  { sortKeys: true },
  { sortKeys: true, space: '\t', newline: true },
]

function bytesOf(text: string | undefined): Buffer | undefined {
  return text === undefined ? undefined : Buffer.from(text)
}

/** The order of keys is no option of `jsonSize`: it does not change the size. */
function sizeOf(snapshot: Snapshot, { space, newline }: JsonOptions): Promise<number | string> {
  return snapshot.jsonSize({ space, newline }).catch(told)
}

function lengthOf(outcome: Buffer | string): number | string {
  return typeof outcome === 'string' ? outcome : outcome.length
}

/** Each made anew. */
async function compare(
  t: ExecutionContext,
  make: () => unknown,
  options: CaptureOptions = {},
  what = '',
): Promise<void> {
  const packed = attempt(() => pack(make(), options))
  let snapshot
  try {
    snapshot = capture(make(), options)
  } catch (error) {
    // What capturing throws, one of the two would.
    const inText = attempt(() => bytesOf(print(make(), { ...options, bigint: options.bigint ?? 'string' })))
    t.true([packed, inText].includes(told(error)), `${what}: ${told(error)}`)
    return
  }
  using held = snapshot
  t.is(differ(packed, await attemptLater(() => held.msgpack())), undefined, `${what}: MessagePack`)
  for (const json of JSON_OPTIONS) {
    const expected = attempt(() => bytesOf(print(make(), { ...options, ...json })))
    const actual = await attemptLater(() => held.json(json))
    t.is(differ(expected, actual), undefined, `${what}: JSON ${JSON.stringify(json)}`)
    t.is(await sizeOf(held, json), lengthOf(expected), `${what}: the size of JSON ${JSON.stringify(json)}`)
  }
  const sorted = attempt(() => bytesOf(print(make(), { ...options, sortKeys: true })))
  const digest = await held.digest().catch(told)
  t.is(digest, typeof sorted === 'string' ? sorted : createHash('sha256').update(sorted).digest('hex'), what)
}

const MEDLEY: Readonly<Record<string, () => unknown>> = {
  'plain data': () => ({ a: [1, -1.5, 'text', null, true], 'b/c': { d: '中', e: '\ud800' } }),
  primitives: () => 'just a text',
  dates: () => [new Date(0), new Date(NaN), new Date(8.64e15)],
  Buffers: () => ({ a: Buffer.from('abc'), b: [Buffer.alloc(0), Buffer.alloc(300_000, 7)] }),
  'typed arrays': () => [Float32Array.of(0.1, NaN), Int8Array.of(-1), new Uint16Array(), Float64Array.of(1)],
  'bytes with keys of their own': () => Object.assign(Uint8Array.of(1, 2), { a: { b: 1 } }),
  Maps: () => ({ map: new Map<unknown, unknown>([[1, new Map([['a', Buffer.from('b')]])]]), after: [1] }),
  'Maps with keys of their own': () => [Object.assign(new Map([[1, 2]]), { own: new Map([[3, 4]]) }), 5],
  'Maps in Maps in arrays': () => [[new Map([[[new Map([[1, 2]])], { a: new Map() }]])], 1],
  'what toJSON gives': () => ({ toJSON: () => new Map([[1, { toJSON: () => Buffer.from('x') }]]) }),
  'Buffers of their own toJSON': () => [Object.assign(Buffer.from('a'), { toJSON: () => 'mine' })],
  'Buffers that are proxies': () => [new Proxy(Buffer.from('ab'), {})],
  'a class of Buffers': () => [Object.setPrototypeOf(Uint8Array.of(1, 2), Object.create(Buffer.prototype))],
  Sets: () => [new Set([1]), new WeakMap(), /a/u, new Error('e')],
  deep: () => {
    let value: unknown = 1
    for (let depth = 0; depth < 400; depth += 1)
      value = depth % 2 === 0 ? [value] : { k: new Map([['m', value]]), value: 1 }
    return value
  },
}

for (const [name, make] of Object.entries(MEDLEY)) {
  test(`${name}: the JSON, the MessagePack, and the digest of the value`, async (t) => {
    await compare(t, make)
    await compare(t, () => [make(), { again: make() }, [[make()]]])
    await compare(t, make, { typedArrays: 'array', bigint: 'number' })
    await compare(t, make, { typedArrays: 'base64', bigint: 'string' })
    await compare(t, make, { replacer: ['a', 'd', 'map', 'own'] })
    await compare(t, make, { default: (value) => (value instanceof Set ? [...value] : undefined) })
    await compare(t, make, { default: (value) => (value instanceof Map ? [...value] : undefined) })
    await compare(t, make, { default: () => undefined, defaultFor: ['undefined', 'typedArray'] })
    await compare(t, make, { default: (value) => typeof value, defaultFor: ['undefined', 'typedArray'] })
  })
}

test('a Buffer.prototype.toJSON that is patched is for JSON alone', async (t) => {
  const ended = await runScenario('snapshot', 'patched')
  t.is(ended.stdout, 'played\n', ended.stderr)
})

test('bigints', async (t) => {
  const values = [1n, -1n, 2n ** 63n, -(2n ** 63n), 2n ** 64n - 1n, 2n ** 64n, -(2n ** 63n) - 1n]
  for (const bigint of ['throw', 'number', 'string'] as const) {
    for (const value of values) {
      await compare(t, () => value, { bigint }, `${value} ${bigint}`)
      await compare(t, () => ({ a: [value, 'b'], c: 1 }), { bigint }, `${value} ${bigint} inside`)
    }
    for (const typedArrays of ['object', 'array', 'base64'] as const) {
      const options = { bigint, typedArrays }
      await compare(t, () => [BigInt64Array.of(1n, -5n), 1], options, JSON.stringify(options))
      await compare(t, () => [new BigUint64Array(0), 1], options, JSON.stringify(options))
    }
  }
})

test('what JSON refuses rejects there, and MessagePack has it', async (t) => {
  using snapshot = capture({ a: [1n, Buffer.from('x')] })
  await t.throwsAsync(snapshot.json(), { instanceOf: TypeError, message: 'Do not know how to serialize a BigInt' })
  await t.throwsAsync(snapshot.digest(), { instanceOf: TypeError })
  t.is((await snapshot.msgpack()).toString('hex'), '81a1619201c40178')
  using other = capture({ a: 2n ** 64n }, { bigint: 'number' })
  t.is((await other.json()).toString(), '{"a":18446744073709551616}')
  await t.throwsAsync(other.msgpack(), { code: 'ERR_OFFLOOP_UNSUPPORTED' })
})

test('a circle through a Map is none of JSON', async (t) => {
  const value: Record<string, unknown> = { a: 1 }
  value['map'] = new Map([['value', value]])
  using snapshot = capture(value)
  t.is((await snapshot.json()).toString(), '{"a":1,"map":{}}')
  await t.throwsAsync(snapshot.msgpack(), { instanceOf: TypeError, message: /^Converting circular structure/u })
  using named = capture(value, { circular: { text: 'again' } })
  t.is((await named.msgpack()).toString('hex'), '82a16101a36d617081a576616c7565a5616761696e')
})

test('capturing throws what code of the value throws, what a circle throws, and where there is nothing', (t) => {
  const mine = new Error('mine')
  const throwing = {
    get a(): never {
      throw mine
    },
  }
  t.throws(() => capture(throwing), { is: mine })
  t.throws(() => capture([new Map([[1, throwing]])]), { is: mine })
  const circle: unknown[] = []
  circle.push(circle)
  t.throws(() => capture(circle), { instanceOf: TypeError, message: /^Converting circular structure to JSON/u })
  t.throws(() => capture([NaN], { nonFinite: 'throw' }), { code: 'ERR_OFFLOOP_UNSUPPORTED' })
  for (const value of [undefined, () => 1, Symbol('a')]) {
    t.throws(() => capture(value), { instanceOf: TypeError, code: 'ERR_INVALID_ARG_VALUE' })
  }
  t.is(capture([1]).byteLength > 0, true)
})

test('options that are none', async (t) => {
  const call = (...args: readonly unknown[]): unknown => Reflect.apply(capture, undefined, args)
  for (const [options, code] of [
    [{ space: 1 }, 'ERR_INVALID_ARG_VALUE'],
    [{ sortKeys: true }, 'ERR_INVALID_ARG_VALUE'],
    [{ signal: undefined }, 'ERR_INVALID_ARG_VALUE'],
    [{ bigint: 'no' }, 'ERR_INVALID_ARG_VALUE'],
    [null, 'ERR_INVALID_ARG_TYPE'],
  ] as const) {
    t.throws(() => call(1, options), { code })
  }
  using snapshot = capture([1])
  const method = (name: 'json' | 'jsonSize' | 'msgpack' | 'digest', options: unknown): Promise<unknown> =>
    Reflect.apply(snapshot[name], snapshot, [options])
  await t.throwsAsync(method('json', { bigint: 'string' }), { code: 'ERR_INVALID_ARG_VALUE' })
  await t.throwsAsync(method('json', { sortKeys: 1 }), { code: 'ERR_INVALID_ARG_TYPE' })
  await t.throwsAsync(method('jsonSize', { sortKeys: false }), { code: 'ERR_INVALID_ARG_VALUE' })
  await t.throwsAsync(method('jsonSize', { newline: 1 }), { code: 'ERR_INVALID_ARG_TYPE' })
  await t.throwsAsync(method('jsonSize', null), { code: 'ERR_INVALID_ARG_TYPE' })
  await t.throwsAsync(method('msgpack', { space: 1 }), { code: 'ERR_INVALID_ARG_VALUE' })
  await t.throwsAsync(method('digest', { sortKeys: false }), { code: 'ERR_INVALID_ARG_VALUE' })
  const reason = new Error('mine')
  for (const name of ['json', 'jsonSize', 'msgpack', 'digest'] as const) {
    await t.throwsAsync(method(name, { signal: AbortSignal.abort(reason) }), { is: reason })
  }
})

test('an encoder’s snapshots start from its options', async (t) => {
  const encoder = createEncoder({ space: 1, newline: true, sortKeys: true, bigint: 'string' })
  const make = (): unknown => ({ b: 1n, a: [2] })
  using snapshot = encoder.capture(make())
  t.deepEqual(await snapshot.json(), await encoder.encode(make()))
  t.is((await snapshot.json({ space: 0 })).toString(), '{"a":[2],"b":"1"}\n')
  t.is((await snapshot.json({ space: '', newline: false, sortKeys: false })).toString(), '{"b":"1","a":[2]}')
  t.is(
    await snapshot.digest(),
    createHash('sha256')
      .update(await encoder.encode(make()))
      .digest('hex'),
  )
  t.is((await snapshot.msgpack()).toString('hex'), '82a16201a1619102')
})

test('the value is as it was, many times, at once', async (t) => {
  const rows = Array.from({ length: 20_000 }, (_, id) => ({
    id,
    text: `row ${id}`,
    values: [id, id / 3],
    at: new Date(id),
  }))
  const value = { rows, long: '中'.repeat(400_000), bytes: Buffer.alloc(500_000, 'b'), raw: rawJson('[1, 2]') }
  const [json, msgpack] = await Promise.all([encode(value), encodeMsgpack(value)])
  using snapshot = capture(value)
  t.true(snapshot.byteLength > 2_000_000)
  rows.length = 1
  value.bytes.fill(0)
  value.long = ''
  const calls = Array.from({ length: 6 }, () => Promise.all([snapshot.json(), snapshot.msgpack(), snapshot.digest()]))
  // Meanwhile the encoder’s tapes serve others.
  const others = Array.from({ length: 20 }, (_, index) => encode(Array.from({ length: 5000 }, () => ({ index }))))
  const hash = createHash('sha256')
    .update(await snapshot.json({ sortKeys: true }))
    .digest('hex')
  for (const [text, packed, digest] of await Promise.all(calls)) {
    t.is(differ(json, text), undefined)
    t.is(differ(msgpack, packed), undefined)
    t.is(digest, hash)
  }
  for (const [index, bytes] of (await Promise.all(others)).entries()) {
    t.is(bytes.toString(), JSON.stringify(Array.from({ length: 5000 }, () => ({ index }))))
  }
})

test('after dispose it is closed, and what is under way ends', async (t) => {
  const value = Array.from({ length: 100_000 }, (_, index) => ({ index, text: `text ${index}` }))
  const snapshot = capture(value)
  const calls = [snapshot.json(), snapshot.msgpack(), snapshot.json({ space: 1 })]
  const sizes = [snapshot.jsonSize(), snapshot.jsonSize({ space: 1 })]
  snapshot[Symbol.dispose]()
  snapshot[Symbol.dispose]()
  for (const name of ['json', 'jsonSize', 'msgpack', 'digest'] as const) {
    await t.throwsAsync(snapshot[name](), { code: 'ERR_OFFLOOP_CLOSED' })
  }
  // Its memory serves others now.
  const others = await Promise.all(Array.from({ length: 4 }, () => encode(value.map(({ index }) => index))))
  const [json, msgpack, spaced] = await Promise.all(calls)
  t.is(json?.toString(), JSON.stringify(value))
  t.is(differ(pack(value) ?? Buffer.of(), msgpack ?? Buffer.of()), undefined)
  t.is(spaced?.toString(), JSON.stringify(value, undefined, 1))
  t.deepEqual(await Promise.all(sizes), [json?.length, spaced?.length])
  for (const other of others) t.is(other.toString(), JSON.stringify(value.map(({ index }) => index)))
})

test('thousands of small ones at once', async (t) => {
  const snapshots = Array.from({ length: 5000 }, (_, index) => capture({ index, text: 'x'.repeat(index % 300) }))
  for (const [index, snapshot] of snapshots.entries()) {
    t.true(snapshot.byteLength < 1000)
    t.is((await snapshot.json()).toString(), JSON.stringify({ index, text: 'x'.repeat(index % 300) }))
    snapshot[Symbol.dispose]()
  }
})

test('an abort stops what is made of it, and nothing else', async (t) => {
  using snapshot = capture(Array.from({ length: 300_000 }, (_, index) => ({ index })))
  const controller = new AbortController()
  const reason = new Error('mine')
  const call = snapshot.json({ signal: controller.signal, sortKeys: true })
  const other = snapshot.msgpack()
  controller.abort(reason)
  await t.throwsAsync(call, { is: reason })
  t.true((await other).length > 300_000)
})

// ───────────────────────────── the size of the JSON ─────────────────────────────

const SPACES = [...Array.from({ length: 11 }, (_, count) => count), '', '\t', '--', 'ä中', 'longer than ten characters']

/**
 * Values whose text has what a count may miss: long strings in pieces, wide ones, escapes, raw JSON, and bytes. A Buffer
 * that is a proxy cannot be captured.
 */
const MEASURED: Readonly<Record<string, () => unknown>> = {
  ...Object.fromEntries(Object.entries(MEDLEY).filter(([name]) => name !== 'Buffers that are proxies')),
  empty: () => [{}, [], '', [[]], { a: {} }],
  'long strings': () => ['x'.repeat(100_000), 'ä'.repeat(70_000), '中'.repeat(50_000), '"\n'.repeat(40_000)],
  'lone surrogates': () => ({ '\udc00': '\ud800', pair: '😀'.repeat(9000), wide: `中${'\ud83d'.repeat(9000)}` }),
  'raw JSON': () => [rawJson('[1, 2,\n3]'), { raw: rawJson(JSON.stringify('z'.repeat(200_000))) }, rawJson('null')],
  'many dates': () => Array.from({ length: 3000 }, (_, index) => new Date(index * 1e9)),
  'large typed arrays': () => [
    Float64Array.from({ length: 9000 }, (_, index) => index / 7),
    Int32Array.from({ length: 9000 }, (_, index) => -index),
  ],
  'many numbers': () => [Array.from({ length: 20_000 }, (_, index) => index / 3), Array.from({ length: 9000 }).fill(7)],
}

for (const [name, make] of Object.entries(MEASURED)) {
  test(`${name}: jsonSize is the length of json`, async (t) => {
    for (const options of [{}, { typedArrays: 'array' }, { typedArrays: 'base64' }] as const) {
      using snapshot = capture(make(), options)
      for (const space of SPACES) {
        for (const newline of [false, true]) {
          const expected = await attemptLater(() => snapshot.json({ space, newline }))
          const what = `${JSON.stringify(options)}, ${JSON.stringify(space)}, ${newline}`
          t.is(await sizeOf(snapshot, { space, newline }), lengthOf(expected), what)
        }
      }
    }
  })
}

test('jsonSize starts from the options of an encoder', async (t) => {
  const encoder = createEncoder({ space: 3, newline: true, sortKeys: true })
  using snapshot = encoder.capture({ b: [1], a: 2 })
  t.is(await snapshot.jsonSize(), (await snapshot.json()).length)
  t.is(await snapshot.jsonSize({ space: 0 }), '{"a":2,"b":[1]}\n'.length)
  t.is(await snapshot.jsonSize({ space: '', newline: false }), '{"a":2,"b":[1]}'.length)
})

const REASON = new Error('mine')

test('jsonSize rejects as json does', async (t) => {
  for (const value of [[1n], { a: [2, BigInt64Array.of(1n)] }]) {
    using snapshot = capture(value)
    const error = await t.throwsAsync(snapshot.json(), { instanceOf: TypeError })
    await t.throwsAsync(snapshot.jsonSize(), { instanceOf: TypeError, message: error.message })
  }
  using large = capture(Array.from({ length: 300_000 }, (_, index) => ({ index })))
  const { length } = await large.json()
  let stopped = 0
  // On a busy machine a task may end before its signal is raised.
  for (let round = 0; round < 50 && stopped === 0; round += 1) {
    const controller = new AbortController()
    const { signal } = controller
    const calls = [large.jsonSize({ signal }), large.jsonSize({ signal, space: 1 })]
    controller.abort(REASON)
    for (const outcome of await Promise.allSettled(calls)) {
      if (outcome.status === 'rejected') t.is(outcome.reason, REASON)
      stopped += outcome.status === 'rejected' ? 1 : 0
    }
  }
  t.true(0 < stopped)
  t.is(await large.jsonSize(), length)
})

test.serial('jsonSize makes no ArrayBuffer for the text, nor memory as large as compact text', async (t) => {
  const value = Array.from({ length: 40 }, (_, index) => `${index}`.repeat(500_000))
  using snapshot = capture(value)
  configure({ maxIdleBytes: 0 })
  configure({ maxIdleBytes: 2 ** 27 })
  const { results, idleBytes } = stats()
  t.is(await snapshot.jsonSize(), JSON.stringify(value).length)
  t.true(stats().idleBytes - idleBytes <= 2 ** 20, `${stats().idleBytes - idleBytes} bytes more are idle`)
  t.is(await snapshot.jsonSize({ space: 1, newline: true }), JSON.stringify(value, undefined, 1).length + 1)
  t.deepEqual(stats().results, results)
})

test('memory goes back when it is disposed, and when it is forgotten', async (t) => {
  const ended = await runScenario('snapshot', 'memory')
  t.is(ended.stdout, 'played\n', ended.stderr)
})

test('a worker that is terminated while its snapshots are read takes nobody with it', async (t) => {
  const ended = await runScenario('snapshot', 'terminated')
  t.is(ended.stdout, 'played\n', ended.stderr)
})

// ───────────────────────────── by chance ─────────────────────────────

const TOTAL = FUZZ / 200

test('random values under random options', async (t) => {
  const random = new Random(23)
  for (let round = 0; round < TOTAL; round += 1) {
    const seed = random.int(2 ** 31)
    const kind = random.pick([randomValue, randomValue, randomMix, randomTable])
    const options: CaptureOptions = {
      typedArrays: random.pick(['object', 'array', 'base64', undefined]),
      bigint: random.pick(['throw', 'number', 'string', undefined]),
      nonFinite: random.pick(['null', 'null', 'throw', undefined]),
      circular: random.pick(['throw', { text: 'again' }, undefined]),
      default: random.once(3) ? (value) => (typeof value === 'object' ? undefined : 'an answer') : undefined,
      defaultFor: random.pick([undefined, ['undefined'], ['typedArray'], ['undefined', 'typedArray']] as const),
    }
    await compare(t, () => kind(new Random(seed), LIMITS), options, `seed ${seed}, ${JSON.stringify(options)}`)
  }
})

test('rows of one shape, with Maps and Buffers where they are not expected', async (t) => {
  const random = new Random(29)
  for (let round = 0; round < 20; round += 1) {
    const seed = random.int(2 ** 31)
    const make = (): unknown => {
      const own = new Random(seed)
      const row = randomShape(own, { depth: 2, length: 8 })
      return Array.from({ length: 150 }, (_, index) => {
        const odd = own.once(10) ? new Map([['m', index]]) : own.once(10) ? Buffer.of(index) : index
        return { ...row(), odd, nested: { list: [odd] } }
      })
    }
    await compare(t, make, {}, `seed ${seed}`)
  }
})
