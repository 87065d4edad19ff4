/** MessagePack against a packer that does it the slow way, and against the decoders that people have. */

import { readFileSync } from 'node:fs'
import { decode } from '@msgpack/msgpack'
import test, { type ExecutionContext } from 'ava'
import { Unpackr } from 'msgpackr'
import { capture, encodeMsgpack, rawJson } from '../src/index.ts'
import { pack, type PackOptions } from './fixtures/packer.ts'
import { RAW_TEXTS } from './fixtures/printer.ts'
import { patch } from './fixtures/stringify.ts'
import { attempt, attemptLater, differ } from './fixtures/attempt.ts'
import { LIMITS, Random, randomMix, randomShape, randomTable, randomText, randomValue } from './fixtures/values.ts'
import { FUZZ, isFull } from './fixtures/extent.ts'

const GOLDENS: { readonly msgpack: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(new URL('fixtures/vectors/experts.json', import.meta.url), 'utf8'),
)

async function hexOf(value: unknown, options?: PackOptions): Promise<string> {
  return (await encodeMsgpack(value, options)).toString('hex')
}

/** Each made anew. */
async function compare(t: ExecutionContext, make: () => unknown, what = ''): Promise<void> {
  for (const floats of ['float64', 'float32'] as const) {
    const expected = attempt(() => pack(make(), { floats }))
    t.is(differ(expected, await attemptLater(() => encodeMsgpack(make(), { floats }))), undefined, what)
    t.is(differ(expected, await attemptLater(async () => capture(make()).msgpack({ floats }))), undefined, what)
  }
}

test('the goldens', async (t) => {
  const bytes = (...list: readonly number[]): Uint8Array => Uint8Array.from(list)
  const nils = Array.from({ length: 6 }, () => null)
  const values: Readonly<Record<string, unknown>> = {
    "RoutedExperts [bin 01 02 03 04, [2,1,2], 'uint8']": [bytes(1, 2, 3, 4), [2, 1, 2], 'uint8'],
    "EncodedTensor ['uint8', [2], bin 01 02]": ['uint8', [2], bytes(1, 2)],
    // Its bytes have six of them.
    "TrainingSample [[1],[false],[2],[true],[-0.5],[1.0 as float],'e',nil x7,'rl']": [
      [1],
      [false],
      [2],
      [true],
      [-0.5],
      Float64Array.of(1),
      'e',
      ...nils,
      'rl',
    ],
    'TrainingBatch [[],7,nil]': [[], 7, null],
  }
  const { about, ...goldens } = GOLDENS.msgpack
  t.is(typeof about, 'string')
  t.deepEqual(Object.keys(goldens), Object.keys(values))
  for (const [name, hex] of Object.entries(goldens)) t.is(await hexOf(values[name]), hex, name)
})

test('integers where one form gives way to the next', async (t) => {
  const powers = Array.from({ length: 66 }, (_, power) => 2n ** BigInt(power))
  const edges = [0n, 32n, ...powers].flatMap((edge) => [edge - 1n, edge, edge + 1n])
  for (const edge of edges.flatMap((value) => [value, -value])) {
    await compare(t, () => edge, String(edge))
    await compare(t, () => Number(edge), `${Number(edge)}`)
    await compare(t, () => [Number(edge), Number(edge) + 0.5, -Number(edge)], `[${Number(edge)}]`)
  }
  t.is(await hexOf(2 ** 53), 'cf0020000000000000')
  t.is(await hexOf(-0), '00')
  t.is(await hexOf(1e300, { floats: 'float32' }), 'cb7e37e43c8800759c')
  t.is(await hexOf([NaN, Infinity, 0.5], { floats: 'float32' }), '93ca7fc00000ca7f800000ca3f000000')
})

test('texts where one head gives way to the next, in either width', async (t) => {
  for (const length of [0, 1, 15, 16, 31, 32, 127, 128, 255, 256, 21_845, 32_767, 32_768, 65_535, 65_536, 300_000]) {
    for (const unit of ['a', 'é', '中', '😀', '\ud800', '\udc00']) {
      const whole = unit.repeat(length)
      await compare(t, () => whole, `${length} of ${unit}`)
      await compare(t, () => ({ [whole]: [whole, whole] }), `${length} of ${unit} as key`)
      await compare(t, () => `${whole}x`, `${length} of ${unit} and one`)
    }
  }
})

if (isFull) {
  test('containers where one head gives way to the next', async (t) => {
    for (const length of [0, 1, 15, 16, 17, 255, 256, 65_535, 65_536, 70_000]) {
      const list = Array.from({ length }, (_, index) => index)
      await compare(t, () => list, `array of ${length}`)
      await compare(t, () => list.map((item) => (item % 3 === 0 ? undefined : { item })), `objects, ${length}`)
      await compare(t, () => Object.fromEntries(list.map((item) => [`k${item}`, item])), `object of ${length}`)
      await compare(t, () => new Map(list.map((item) => [item, [item]])), `Map of ${length}`)
      await compare(t, () => Buffer.alloc(length, 7), `Buffer of ${length}`)
      await compare(t, () => Uint8Array.from(list), `Uint8Array of ${length}`)
    }
  })
}

if (isFull) {
  test('typed arrays are arrays of numbers, bytes are bytes', async (t) => {
    const random = new Random(3)
    const numbers = random.list(500, () => (random.fraction() - 0.5) * 2 ** random.int(40))
    const kinds = [
      Int8Array,
      Uint8ClampedArray,
      Int16Array,
      Uint16Array,
      Int32Array,
      Uint32Array,
      Float32Array,
      Float64Array,
    ]
    for (const kind of kinds) {
      await compare(t, () => kind.from(numbers), kind.name)
      await compare(t, () => [{ a: kind.from(numbers) }, new Map([[1, kind.of(1)]])], `${kind.name} inside`)
    }
    const bigints = numbers.map((number) => BigInt(Math.trunc(number)) * 2n ** 20n)
    await compare(t, () => BigInt64Array.from(bigints), 'BigInt64Array')
    await compare(t, () => BigUint64Array.from(bigints), 'BigUint64Array')
    await compare(t, () => Float32Array.of(NaN, -0, Infinity, 1, 0.1), 'floats that are odd')
    await compare(t, () => new (class extends Uint8Array {})(3), 'a subclass')
    await compare(t, () => Object.assign(Uint8Array.of(1), { a: 1 }), 'with keys of its own')
    await compare(t, () => Object.assign(Buffer.from('a'), { toJSON: () => 'mine' }), 'with a toJSON of its own')
    const large = Uint8Array.from({ length: 1_000_000 }, (_, index) => index)
    await compare(t, () => [large, Int32Array.from(large), Float32Array.from(large)], 'large ones')
  })
}

test('Maps keep keys of every kind', async (t) => {
  await compare(
    t,
    () =>
      new Map<unknown, unknown>([
        [1, 2],
        ['a', new Map([[null, true]])],
        [{ k: [1] }, { v: 1n }],
      ]),
  )
  await compare(
    t,
    () =>
      new Map<unknown, unknown>([
        [undefined, 1],
        [1, undefined],
        [Symbol('a'), 1],
        [2, () => 1],
      ]),
  )
  await compare(
    t,
    () =>
      new Map([
        [new Date(0), new Date(1)],
        [new Date(NaN), new Date(2)],
      ]),
  )
  await compare(
    t,
    () =>
      new Map([
        [
          [1, [2]],
          [3, [4]],
        ],
      ]),
  )
  await compare(t, () => Object.assign(new Map([[1, 2]]), { toJSON: () => ({ mine: 1 }) }))
  await compare(t, () => [1, 2, 3].map((item) => ({ map: Object.assign(new Map([[item, item]]), { own: item }) })))
  await compare(t, () => new (class Registry extends Map<string, number> {})([['a', 1]]))
  await compare(t, () => Array.from({ length: 100 }, (_, index) => ({ index, map: new Map([['a', index]]) })))
  let deep: unknown = 1
  for (let depth = 0; depth < 1000; depth += 1) deep = depth % 2 === 0 ? new Map([['k', deep]]) : [deep]
  await compare(t, () => deep, 'deep')
})

test('what is patched in Map is not asked', async (t) => {
  const restore = patch(Map.prototype, 'forEach', { value: () => t.fail() })
  const call = hexOf(new Map([[1, 2]]))
  restore()
  t.is(await call, '810102')
})

test('a RawJson is what it says', async (t) => {
  const texts = [
    ...'1 -1 0 -0 1.0 1.5 1e2 1E400 -1e-400 9007199254740993 18446744073709551615 18446744073709551616'.split(' '),
    ...'-9223372036854775808 -9223372036854775809 true false null ""'.split(' '),
    ' [ ] ',
    '{ }',
    '[1,[2,{"a":[]}],"b"]',
    '{"a":{"b":[1,2]},"a":null}',
    '"\\u00e9\\n\\"\\\\\\/\\b\\f\\r\\t"',
    '"\\ud83d\\ude00"',
    '"\\ud83d"',
    '"\\ude00x"',
    '"\\ud83d\\u0041"',
    '"\\ud83d\\ud83d\\ude00"',
    '"é中😀"',
    `"${'a'.repeat(40)}\\n"`,
    `"${'\\n'.repeat(300)}"`,
    `"${'\\u4e2d'.repeat(70_000)}"`,
    `[${'1,'.repeat(70_000)}1]`,
    '['.repeat(50_000) + ']'.repeat(50_000),
  ]
  for (const source of texts) {
    if (!source.includes('"a":null') && source.length < 90_000) {
      const make = (): unknown => {
        const raw = rawJson(source)
        RAW_TEXTS.set(raw, source)
        return raw
      }
      await compare(t, make, source)
      await compare(t, () => ({ a: [make(), 1], b: make() }), source)
    } else t.true((await encodeMsgpack(rawJson(source))).length > 0)
  }
  t.is(await hexOf(rawJson('{"a":{"b":[1,2]},"a":null}')), '82a16181a162920102a161c0', 'keys as often as they come')
})

test('a trusted RawJson that is no JSON is refused when it is read', async (t) => {
  for (const [source, offset] of [
    ['', 0],
    ['[1,]', 3],
    ['{"a":1', 6],
    ['"\\x"', 2],
    ['[1] 2', 4],
  ] as const) {
    const raw = rawJson(source, { trusted: true })
    await t.throwsAsync(encodeMsgpack([raw]), { code: 'ERR_OFFLOOP_JSON' })
    const error = await encodeMsgpack({ a: raw }).catch((reason: unknown) => reason)
    t.is(Reflect.get(Object(error), 'offset'), offset, source)
    await t.throwsAsync(capture([raw]).msgpack(), { code: 'ERR_OFFLOOP_JSON' })
    t.is((await capture([raw]).json()).toString(), `[${source}]`)
  }
})

test('values without a form', async (t) => {
  for (const value of [undefined, () => 1, Symbol('a')]) {
    await t.throwsAsync(encodeMsgpack(value), { instanceOf: TypeError, code: 'ERR_INVALID_ARG_VALUE' })
  }
  await compare(t, () => [undefined, () => 1, Symbol('a'), { a: undefined, b: () => 1, [Symbol('c')]: 1 }])
  for (const [make, pointer] of [
    [() => 2n ** 64n, ''],
    [() => ({ a: [1, -(2n ** 63n) - 1n] }), '/a/1'],
    [() => ({ 'a/b': new Map([['~', 2n ** 70n]]) }), '/a~1b/~0'],
  ] as const) {
    await t.throwsAsync(encodeMsgpack(make()), { code: 'ERR_OFFLOOP_UNSUPPORTED' })
    const error = await encodeMsgpack(make()).catch((reason: unknown) => reason)
    t.is(Reflect.get(Object(error), 'pointer'), pointer)
    await compare(t, make, pointer)
  }
})

test('circles', async (t) => {
  const object: Record<string, unknown> = { a: 1 }
  object['self'] = object
  const list: unknown[] = []
  list.push([list])
  const map = new Map<string, unknown>()
  map.set('self', { map })
  for (const value of [object, list, map]) {
    await t.throwsAsync(encodeMsgpack(value), { instanceOf: TypeError, message: /^Converting circular structure/u })
  }
  t.is(await hexOf([object['a'], [[]], [[]]]), '930191909190')
})

// ───────────────────────────── read by others ─────────────────────────────

/** Without what @msgpack/msgpack leaves out where it begins a text. */
function wellFormed(text: string): string {
  return Buffer.from(text).toString().replaceAll('\ufeff', '')
}

/** What decoders make of what was encoded. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

test('@msgpack/msgpack and msgpackr read it', async (t) => {
  const random = new Random(11)
  const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' })
  for (let round = 0; round < 300; round += 1) {
    const make = randomShape(random, { depth: 3, length: 20 })
    const value = { rows: Array.from({ length: 40 }, make), text: wellFormed(randomText(random)) }
    const text = JSON.stringify(value, (_, part: unknown) => {
      if (typeof part === 'string') return wellFormed(part)
      return typeof part === 'number' && Math.abs(part) > Number.MAX_SAFE_INTEGER ? 1 : part
    })
    if (text.includes('"__proto__"')) continue
    const expected = plain(JSON.parse(text.replaceAll(/\\ud[89a-f][0-9a-f]{2}/giu, '')))
    const bytes = await encodeMsgpack(expected)
    t.deepEqual(decode(bytes), expected)
    t.deepEqual(unpackr.unpack(bytes), expected)
  }
  const bytes = await encodeMsgpack({ b: Buffer.from('abc'), l: Float32Array.of(0.5, 1), n: 2n ** 40n })
  t.deepEqual(decode(bytes), { b: Buffer.from('abc'), l: [0.5, 1], n: 2 ** 40 })
})

// ───────────────────────────── by chance ─────────────────────────────

const TOTAL = FUZZ / 100

test('random values', async (t) => {
  const random = new Random(17)
  for (let round = 0; round < TOTAL; round += 1) {
    const seed = random.int(2 ** 31)
    const kind = random.pick([randomValue, randomValue, randomMix, randomTable])
    await compare(t, () => kind(new Random(seed), LIMITS), `seed ${seed}`)
  }
})

test('many rows of one shape, as learned functions capture them', async (t) => {
  const random = new Random(19)
  for (let round = 0; round < 30; round += 1) {
    const seed = random.int(2 ** 31)
    const make = (): unknown => {
      const own = new Random(seed)
      return Array.from({ length: 200 }, randomShape(own))
    }
    await compare(t, make, `seed ${seed}`)
  }
})

// ───────────────────────────── the call ─────────────────────────────

test('options that are none', async (t) => {
  const call = (...args: readonly unknown[]): Promise<unknown> => Reflect.apply(encodeMsgpack, undefined, args)
  for (const [options, code] of [
    [{ floats: 'float16' }, 'ERR_INVALID_ARG_VALUE'],
    [{ floats: 32 }, 'ERR_INVALID_ARG_VALUE'],
    [{ float: 'float32' }, 'ERR_INVALID_ARG_VALUE'],
    [null, 'ERR_INVALID_ARG_TYPE'],
    [{ signal: {} }, 'ERR_INVALID_ARG_TYPE'],
  ] as const) {
    await t.throwsAsync(call(1, options), { code })
  }
  const reason = new Error('mine')
  await t.throwsAsync(encodeMsgpack([1], { signal: AbortSignal.abort(reason) }), { is: reason })
})

test('the value is read before the call returns', async (t) => {
  const value = {
    list: [1, 2],
    bytes: Uint8Array.of(1, 2),
    map: new Map([['a', 1]]),
    floats: new Float32Array(100_000),
  }
  const expected = pack(value) ?? Buffer.of()
  const call = encodeMsgpack(value)
  value.list.push(3)
  value.bytes.fill(9)
  value.map.set('b', 2)
  value.floats.fill(7)
  t.is(differ(expected, await call), undefined)
})

test('bytes among objects that are learned, or left to the engine', async (t) => {
  const odd = Buffer.alloc(1000, 1)
  const numbers = new Float32Array(1000)
  for (const part of [odd, numbers]) {
    await compare(t, () => Array.from({ length: 100 }, () => part), 'alone')
    await compare(t, () => Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? part : { index })), 'by turns')
    await compare(t, () => Array.from({ length: 100 }, (_, index) => [{ index }, part, { index }, part]), 'in fours')
    await compare(t, () => Array.from({ length: 100 }, (_, index) => [part, { [`k${index}`]: 1 }]), 'ever new')
  }
})

if (isFull) {
  test('several hundred megabytes', async (t) => {
    const part = Buffer.alloc(40_000_000, 'x')
    const bytes = await encodeMsgpack([part, part, part, part, part, part, part, part])
    t.is(bytes.length, 1 + 8 * (5 + part.length))
    t.is(bytes.readUInt32BE(bytes.length - part.length - 4), part.length)
  })
}
