/** What options add to JSON.stringify, against a printer that does it the slow way. `OFFLOOP_FUZZ` says how many values. */

import test, { type ExecutionContext } from 'ava'
import {
  capture,
  createEncoder,
  encode,
  encodeLines,
  encodeMsgpack,
  encodeSync,
  rawJson,
  type EncodeOptions,
} from '../src/index.ts'
import { print, RAW_TEXTS, shortest } from './fixtures/printer.ts'
import { attempt, attemptLater, differ } from './fixtures/attempt.ts'
import { differenceOfBytes } from './fixtures/stringify.ts'
import { LIMITS, Random, randomTable, randomValue } from './fixtures/values.ts'
import { FUZZ } from './fixtures/extent.ts'

/** All ways to encode a value, made anew for each. */
async function compare(t: ExecutionContext, make: () => unknown, options: EncodeOptions, what = ''): Promise<void> {
  const expectedOf = (isRow: boolean): Buffer | string =>
    attempt(() => {
      const text = print(make(), options, isRow)
      return text === undefined ? undefined : Buffer.from(isRow ? `${text}\n` : text)
    })
  const expected = expectedOf(false)
  const encoder = createEncoder(options)
  const ways: Record<string, Buffer | string> = {
    encode: await attemptLater(() => encode(make(), options)),
    encodeSync: attempt(() => encodeSync(make(), options)),
    'an encoder': await attemptLater(() => encoder.encode(make())),
    'an encoder again': attempt(() => encoder.encodeSync(make())),
  }
  for (const [way, actual] of Object.entries(ways)) t.is(differ(expected, actual), undefined, `${what} ${way}`)
  const { space, newline, ...rest } = options
  if (space !== undefined || newline === true) return
  const rows = await attemptLater(() => encodeLines([make()], rest))
  t.is(differ(expectedOf(true), rows), undefined, `${what} encodeLines`)
}

// ───────────────────────────── keys in order ─────────────────────────────

test('RFC 8785: its own examples', async (t) => {
  const sorted = {
    '\u20ac': 'Euro Sign',
    '\r': 'Carriage Return',
    '\ufb33': 'Hebrew Letter Dalet With Dagesh',
    1: 'One',
    '\ud83d\ude00': 'Emoji: Grinning Face',
    '\u0080': 'Control',
    '\u00f6': 'Latin Small Letter O With Diaeresis',
  }
  t.is(
    (await encode(sorted, { sortKeys: true })).toString(),
    '{"\\r":"Carriage Return","1":"One","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis",' +
      '"\u20ac":"Euro Sign","\ud83d\ude00":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
  )
  const serialized = {
    numbers: [Number('333333333.33333329'), 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
    string: '\u20ac$\u000F\u000aA\'\u0042\u0022\u005c\\"/',
    literals: [null, true, false],
  }
  t.is(
    (await encode(serialized, { sortKeys: true })).toString(),
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
      '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  )
})

test('keys that escapes, prefixes and surrogates tell apart', async (t) => {
  const keys = [
    '',
    'a',
    'aa',
    'b',
    '"',
    '\\',
    '/',
    '\n',
    '\u0001',
    '\u001f',
    ' ',
    '!',
    '~',
    '\u007f',
    'é',
    '\uffff',
    '\ue000',
  ]
  const odd = [
    '\ud800',
    '\udfff',
    '\ud800a',
    '😀',
    '😀a',
    '\ud83d',
    '\ud83da',
    '10',
    '9',
    '__proto__',
    'toJSON ',
    'a"',
    'a\\',
  ]
  const all = [...keys, ...odd]
  const random = new Random(5)
  for (let round = 0; round < 200; round += 1) {
    const mixed = random.list(1 + random.int(12), () => random.pick(all))
    const make = (): unknown =>
      Object.fromEntries(
        mixed.map((key, index) => [key, index % 3 === 0 ? { [key]: [{ b: 1, a: { d: key, c: 2 } }] } : index]),
      )
    const options = random.once(3) ? { sortKeys: true, space: random.pick([2, '\t']) } : { sortKeys: true }
    await compare(t, make, options, JSON.stringify(mixed))
  }
})

test('objects in objects, deeper than any stack', async (t) => {
  let text = '1'
  let sorted = '1'
  let value: unknown = 1
  for (let depth = 0; depth < 50_000; depth += 1) {
    value = { z: 0, a: value }
    text = `{"z":0,"a":${text}}`
    sorted = `{"a":${sorted},"z":0}`
  }
  t.true((await encode(value, { sortKeys: true })).equals(Buffer.from(sorted)))
  t.true((await encode(value)).equals(Buffer.from(text)))
})

// ───────────────────────────── typed arrays ─────────────────────────────

const MAKERS: Readonly<Record<string, (bytes: ArrayBuffer) => NodeJS.TypedArray>> = {
  Int8Array: (bytes) => new Int8Array(bytes),
  Uint8Array: (bytes) => new Uint8Array(bytes),
  Uint8ClampedArray: (bytes) => new Uint8ClampedArray(bytes),
  Int16Array: (bytes) => new Int16Array(bytes),
  Uint16Array: (bytes) => new Uint16Array(bytes),
  Int32Array: (bytes) => new Int32Array(bytes),
  Uint32Array: (bytes) => new Uint32Array(bytes),
  Float32Array: (bytes) => new Float32Array(bytes),
  Float64Array: (bytes) => new Float64Array(bytes),
  BigInt64Array: (bytes) => new BigInt64Array(bytes),
  BigUint64Array: (bytes) => new BigUint64Array(bytes),
  Buffer: (bytes) => Buffer.from(bytes),
}
const Half: unknown = Reflect.get(globalThis, 'Float16Array')

function randomBytes(random: Random, size: number): ArrayBuffer {
  const bytes = new Uint8Array(size)
  for (let index = 0; index < size; index += 1) bytes[index] = random.int(256)
  // The words at the edges, which chance does not give.
  const words = [0, 0xffff_ffff, 0x8000_0000, 0x7f80_0000, 0x3f80_0000, 0x4b80_0000, 0x7fff_ffff, 1]
  if (random.once(2))
    for (let at = 0; at + 4 <= size; at += 4) new DataView(bytes.buffer).setUint32(at, random.pick(words), true)
  return bytes.buffer
}

for (const [name, make] of Object.entries(MAKERS)) {
  test(`${name}: numbers and base64`, async (t) => {
    const random = new Random(7)
    for (let round = 0; round < 60; round += 1) {
      const bytes = randomBytes(random, 8 * random.pick([0, 1, 2, 3, 5, 40, 600]))
      const array = make(bytes)
      for (const typedArrays of ['array', 'base64', 'object'] as const) {
        const bigint = random.pick(['number', 'string'] as const)
        await compare(
          t,
          () => ({ id: 1, array, list: [array, array.subarray(1)] }),
          { typedArrays, bigint },
          `${round}`,
        )
      }
    }
  })

  test(`${name} of a megabyte`, async (t) => {
    const array = make(randomBytes(new Random(8), 1 << 20))
    for (const typedArrays of ['array', 'base64'] as const) {
      await compare(t, () => [array, 1, array.subarray(3)], { typedArrays, bigint: 'number' })
    }
  })
}

test('Float16Array, where the engine has it', async (t) => {
  if (typeof Half !== 'function') {
    t.is(Half, undefined)
    return
  }
  const all = Uint16Array.from({ length: 65_536 }, (_, bits) => bits)
  const array: unknown = Reflect.construct(Half, [all.buffer])
  const bytes = await encode(array, { typedArrays: 'array' })
  t.is(differ(Buffer.from(JSON.stringify(Array.from(Object(array)))), bytes), undefined)
})

test('every float32 of many prints the shortest text that reads back', async (t) => {
  const random = new Random(9)
  const array = new Float32Array(200_000)
  const bits = new Uint32Array(array.buffer)
  for (let index = 0; index < bits.length; index += 1) bits[index] = random.int(2 ** 32)
  for (let index = 0; index < 64; index += 1) array[index] = 2 ** (index - 32)
  for (let index = 64; index < 140; index += 1) array[index] = 10 ** (index - 102)
  const texts = (await encode(array, { typedArrays: 'array' })).toString().slice(1, -1).split(',')
  const wrong = texts.filter((text, index) => text !== shortest(array[index] ?? 0))
  t.deepEqual(wrong, [])
  t.is(texts.length, array.length)
})

test('memory that is gone, shared or moving', async (t) => {
  const detached = new Int32Array(4)
  structuredClone(detached.buffer, { transfer: [detached.buffer] })
  const resizable: ArrayBuffer = Reflect.construct(ArrayBuffer, [16, { maxByteLength: 64 }])
  const [tracking, fixed] = [new Uint16Array(resizable), new Uint16Array(resizable, 8, 4)]
  Reflect.apply(Reflect.get(resizable, 'resize'), resizable, [12])
  const shared = new Uint8Array(new SharedArrayBuffer(3)).fill(7)
  const value = [detached, tracking, fixed, shared]
  t.is((await encode(value, { typedArrays: 'array' })).toString(), '[[],[0,0,0,0,0,0],[],[7,7,7]]')
  t.is((await encode(value, { typedArrays: 'base64' })).toString(), '["","AAAAAAAAAAAAAAAA","","BwcH"]')
})

test('the bytes are read before the call returns', async (t) => {
  const array = new Float64Array(100_000).fill(0.5)
  const promise = encode({ array, small: array.subarray(0, 2) }, { typedArrays: 'array' })
  array.fill(7)
  t.is((await promise).toString(), `{"array":[${Array(100_000).fill(0.5).join(',')}],"small":[0.5,0.5]}`)
})

test.serial('toJSON of Buffers is not called; one of their own is', async (t) => {
  const own = Object.assign(Buffer.from('abc'), { toJSON: () => 'mine' })
  const before = Object.getOwnPropertyDescriptor(Buffer.prototype, 'toJSON') ?? {}
  let calls = 0
  Object.defineProperty(Buffer.prototype, 'toJSON', { ...before, value: () => (calls += 1) })
  try {
    t.is(encodeSync([Buffer.from('abc'), own], { typedArrays: 'base64' }).toString(), '["YWJj","mine"]')
    t.is(encodeSync(Buffer.from([1, 2]), { typedArrays: 'array' }).toString(), '[1,2]')
  } finally {
    Object.defineProperty(Buffer.prototype, 'toJSON', before)
  }
  t.is(calls, 0)
  class Tensor extends Float32Array {
    toJSON(): unknown {
      return { shape: [this.length] }
    }
  }
  await compare(t, () => [new Tensor(2), new (class extends Buffer {})(3)], { typedArrays: 'array' })
})

// ───────────────────────────── what is refused, and what stands in ─────────────────────────────

test('bigints: refused, as digits, as strings', async (t) => {
  const make = (): unknown => ({ a: [0n, -1n, 2n ** 64n, -(2n ** 63n)], b: Object(5n), c: { d: 10n ** 40n } })
  for (const bigint of ['throw', 'number', 'string', undefined] as const) await compare(t, make, { bigint })
  await compare(t, () => 12n, { bigint: 'number' })
  await compare(t, () => new BigInt64Array(0), { typedArrays: 'array' })
  await compare(t, () => new BigInt64Array(1), { typedArrays: 'array' })
  await compare(t, () => [1n], { bigint: 'number', space: 2, sortKeys: true })
})

test('numbers that are not finite: refused with where they stand', async (t) => {
  const values: readonly (() => unknown)[] = [
    () => NaN,
    () => [1, 2, Infinity],
    () => ({ a: { 'b/c~d': [0, { '': -Infinity }] } }),
    () => ({ a: Object(NaN) }),
    () => ({ a: { toJSON: () => [[NaN]] } }),
    () => Array.from({ length: 300 }, (_, id) => ({ id, score: id === 299 ? NaN : id / 7 })),
    () => new Float32Array([1, 2, NaN]),
    () => ({ list: [new Float64Array([1, Infinity])] }),
    () => [1, 1.5, -0, 1e308],
  ]
  for (const make of values) {
    for (const typedArrays of ['array', 'base64', undefined] as const) {
      await compare(t, make, { nonFinite: 'throw', typedArrays })
    }
    await compare(t, make, { nonFinite: 'null' })
  }
  const error = await t.throwsAsync(encode({ a: [NaN] }, { nonFinite: 'throw' }), { name: 'OffloopError' })
  t.is(Reflect.get(error ?? {}, 'pointer'), '/a/0')
  t.is(error?.message, 'the value at /a/0 is NaN, which is refused')
  t.is(t.throws(() => encodeSync(NaN, { nonFinite: 'throw' }))?.message, 'the value is NaN, which is refused')
})

test('an ancestor met again is the text given', async (t) => {
  const self = (): unknown => {
    const value: Record<string, unknown> = { id: 1, list: [1] }
    return Object.assign(value, { self: value, list: [value, { value }] })
  }
  const many = (): unknown => {
    const items = Array.from({ length: 200 }, (_, id) => ({ id, up: undefined as unknown }))
    for (const item of items) item.up = items
    return items
  }
  const deep = (): unknown => {
    const root: unknown[] = []
    let inner = root
    for (let depth = 0; depth < 300; depth += 1) inner.push((inner = []))
    inner.push(root, inner)
    return root
  }
  // The first branch is deep; the second one is circular from a place above the depth that the first one reached.
  const twice = (): unknown => {
    const circle: unknown[] = []
    circle.push(nest(40, circle))
    return [nest(90, 1), nest(25, circle)]
  }
  for (const make of [self, many, deep, twice]) {
    await compare(t, make, {})
    await compare(t, make, { circular: { text: '[Circular]' } })
    await compare(t, make, { circular: { text: '"\n中' }, sortKeys: true, space: 1 })
    await compare(t, make, { circular: { text: '' }, nonFinite: 'throw' })
  }
})

/** Returns arrays around a value, one inside of the other. */
function nest(depth: number, inner: unknown): unknown {
  let value = inner
  for (let level = 0; level < depth; level += 1) value = [value]
  return value
}

class Point {
  readonly x = 1
}

/** Values of `defaultFor`. */
const KINDS = [undefined, [], ['undefined'], ['typedArray'], ['undefined', 'typedArray', 'undefined']] as const

test('default is asked for what has no JSON of its own', async (t) => {
  const odd: readonly unknown[] = [
    () => 1,
    Point,
    Symbol('s'),
    1n,
    Object.assign(new Map([[1, 2]]), { key: 1 }),
    new Set([1]),
    new WeakMap(),
    new WeakSet(),
    new WeakRef({}),
    /a/u,
    new RangeError('e'),
    Promise.resolve(),
    new ArrayBuffer(2),
    new SharedArrayBuffer(2),
    new DataView(new ArrayBuffer(1)),
    Object.setPrototypeOf(new Map(), null),
  ]
  const usual: readonly unknown[] = [
    1,
    'a',
    true,
    null,
    undefined,
    {},
    [],
    new Date(0),
    Buffer.from('a'),
    Float32Array.of(0.5),
    new BigInt64Array(0),
    Object.assign(Uint8Array.of(1), { toJSON: () => undefined, own: [undefined] }),
    Object(1n),
    Object(1),
    new Point(),
    // oxlint-disable-next-line no-sparse-arrays -- a hole is read as undefined
    { a: undefined, holes: [, 1] },
  ]
  const value = { odd, usual, map: new Map([['a', new Map([['b', 1n]])]]) }
  const answers: readonly ((value: unknown) => unknown)[] = [
    () => undefined,
    (asked) => Object.prototype.toString.call(asked),
    (asked) => asked,
    (asked) => (asked instanceof Map || asked instanceof Set ? [...asked] : null),
    (asked) => ({ asked: typeof asked, again: () => 1 }),
    () => () => 1,
    (asked) => ({ toJSON: () => 'never called', typeof: typeof asked }),
    (asked) => (ArrayBuffer.isView(asked) ? Buffer.from('answer') : undefined),
    (asked) => (asked === undefined ? [undefined] : Uint16Array.of(1)),
  ]
  for (const answer of answers) {
    for (const bigint of ['throw', 'string'] as const) {
      // An answer that holds what is asked about again has no end.
      let left = 200
      const limited = (asked: unknown): unknown => ((left -= 1) < 0 ? null : answer(asked))
      for (const defaultFor of KINDS) {
        const what = `answer ${answers.indexOf(answer)}, ${JSON.stringify({ bigint, defaultFor })}`
        await compare(t, () => ((left = 200), value), { default: limited, bigint, defaultFor }, what)
      }
    }
  }
  const reason = new Error('mine')
  const thrower = (): never => {
    throw reason
  }
  await t.throwsAsync(encode([1, new Map()], { default: thrower }), { is: reason })
  t.is(encodeSync([1, new Date(0)], { default: thrower }).toString(), '[1,"1970-01-01T00:00:00.000Z"]')
})

test('default comes after toJSON and the replacer, and sees each value once', (t) => {
  const asked: unknown[] = []
  const map = new Map()
  const bytes = encodeSync(
    { a: { toJSON: () => map }, b: 1, c: Object.assign(new Set(), { toJSON: () => 'text' }) },
    {
      replacer: (_, value: unknown) => (value === 1 ? 2n : value),
      default: (value) => (asked.push(value), value),
      bigint: 'string',
    },
  )
  t.is(bytes.toString(), '{"a":{},"b":"2","c":"text"}')
  t.deepEqual(asked, [map, 2n])
})

test('default is asked about undefined: at the root, in objects, in arrays and in rows', async (t) => {
  const options: EncodeOptions = {
    default: (value) => (value === undefined ? 'none' : null),
    defaultFor: ['undefined'],
  }
  t.is(encodeSync(undefined, options).toString(), '"none"')
  t.is((await encode([undefined, { a: undefined, b: 1 }], options)).toString(), '["none",{"a":"none","b":1}]')
  t.is(encodeSync({ toJSON: () => undefined }, options).toString(), '"none"')
  t.is(
    encodeSync([1], { ...options, replacer: (_, value: unknown) => (value === 1 ? undefined : value) }).toString(),
    '["none"]',
  )
  t.is(encodeSync({ b: 1 }, { ...options, replacer: ['a', 'b'] }).toString(), '{"a":"none","b":1}')
  t.is((await encodeLines([undefined, 1], options)).toString(), '"none"\n1\n')
  t.is((await capture({ a: [undefined] }, options).json()).toString(), '{"a":["none"]}')
  t.is(createEncoder(options).encodeSync({ a: undefined }).toString(), '{"a":"none"}')
  t.throws(() => encodeSync(undefined, { ...options, default: () => undefined }), { code: 'ERR_INVALID_ARG_VALUE' })
  t.throws(() => encodeSync(undefined, { defaultFor: ['undefined'] }), { code: 'ERR_INVALID_ARG_VALUE' })
  t.is(
    encodeSync([undefined, Buffer.of(1)], { defaultFor: ['undefined', 'typedArray'] }).toString(),
    JSON.stringify([null, Buffer.of(1)]),
  )
})

test('default is asked about a Buffer before its toJSON, which comes last', (t) => {
  const asked: unknown[] = []
  const seen: unknown[] = []
  const buffer = Buffer.from('abc')
  const options: EncodeOptions = {
    defaultFor: ['typedArray'],
    replacer: (_, value: unknown) => (seen.push(value), value),
    default: (value) => void asked.push(value),
  }
  t.is(encodeSync([buffer], options).toString(), JSON.stringify([buffer]))
  t.deepEqual([asked.length, asked[0] === buffer, seen[1] === buffer], [1, true, true])
  const hex = (value: unknown): unknown => (Buffer.isBuffer(value) ? value.toString('hex') : undefined)
  for (const typedArrays of ['object', 'array', 'base64'] as const) {
    t.is(encodeSync({ buffer }, { ...options, typedArrays, default: hex }).toString(), '{"buffer":"616263"}')
  }
  // The answer is encoded as it is: its `toJSON` is not called.
  t.is(encodeSync([buffer], { ...options, default: () => Buffer.of(7) }).toString(), '[{"0":7}]')
  t.is(encodeSync([buffer], { ...options, default: () => buffer }).toString(), JSON.stringify([buffer]))
  const other = Object.assign(Buffer.of(1), { toJSON: () => 'mine' })
  t.is(encodeSync([other], { ...options, default: () => 'never asked' }).toString(), '["mine"]')
})

test('default answers for a typed array in JSON and in MessagePack', async (t) => {
  const value = { a: Buffer.from('abc'), b: Float32Array.of(1) }
  using declined = capture(value, { default: () => undefined, defaultFor: ['typedArray'] })
  t.is((await declined.json()).toString(), JSON.stringify(value))
  t.is((await declined.msgpack()).toString('hex'), (await encodeMsgpack(value)).toString('hex'))
  using answered = capture(value, { default: () => 'x', defaultFor: ['typedArray'] })
  t.is((await answered.json()).toString(), '{"a":"x","b":"x"}')
  t.is((await answered.msgpack()).toString('hex'), (await encodeMsgpack({ a: 'x', b: 'x' })).toString('hex'))
})

// ───────────────────────────── fragments ─────────────────────────────

function raw(text: string): unknown {
  const value = rawJson(text)
  RAW_TEXTS.set(value, text)
  return value
}

test('a RawJson is written as it is, wherever it stands', async (t) => {
  const texts = [
    '1',
    ' [1, 2 ] ',
    '{"b":1,\n "a":{"d":1,"c":2}}',
    '"中😀\\ud800"',
    'null',
    '-1.50e+3',
    `[${'1,'.repeat(50_000)}2]`,
  ]
  const raws = texts.map(raw)
  const values: readonly (() => unknown)[] = [
    () => raws[1],
    () => raws,
    () => ({ z: raws[2], a: { y: raws, b: raws[0] } }),
    () => Array.from({ length: 200 }, (_, id) => ({ id, text: `text ${id}`, raw: raws[id % 6], list: [raws[0], 1] })),
    // Ever new keys, which are given to JSON.stringify.
    () =>
      Array.from({ length: 100 }, (_, id) =>
        Object.fromEntries(texts.map((_text, key) => [`k${id} ${key}`, key === 3 ? raws[id % 6] : key])),
      ),
    () => ({ toJSON: () => raws[4] }),
    () => new Map([[1, raws[3]]]),
  ]
  for (const make of values) {
    for (const options of [
      {},
      { sortKeys: true },
      { space: 2 },
      { space: '\t', sortKeys: true, newline: true },
      { default: (value: unknown) => (value instanceof Map ? [...value] : undefined) },
      { replacer: (_: string, value: unknown) => value },
    ]) {
      if ('space' in options || 'default' in options) await compare(t, make, options)
      else {
        const encoder = createEncoder(options)
        const text = Buffer.from(print(make(), options) ?? '')
        for (let time = 0; time < 40; time += 1) t.is(differenceOfBytes(text, encoder.encodeSync(make())), undefined)
        t.is(differenceOfBytes(text, await encoder.encode(make())), undefined)
      }
    }
  }
})

test('in rows the line breaks of a RawJson are spaces', async (t) => {
  const value = raw('{\r\n"a":\n[1]}')
  const rows = await encodeLines([{ value, text: 'a\nb' }, value, [value]])
  t.is(rows.toString(), '{"value":{  "a": [1]},"text":"a\\nb"}\n{  "a": [1]}\n[{  "a": [1]}]\n')
  const sorted = await encodeLines([{ z: 1, value }], { sortKeys: true })
  t.is(sorted.toString(), '{"value":{  "a": [1]},"z":1}\n')
  t.is((await encode([value], { newline: true })).toString(), '[{\r\n"a":\n[1]}]\n')
})

test('what is no JSON is refused, with where', (t) => {
  const wrong: readonly (readonly [text: string, offset: number])[] = [
    ['', 0],
    [' ', 1],
    ['[1,]', 3],
    ['{"a":1,}', 7],
    ['{a:1}', 1],
    ['01', 1],
    ['-', 1],
    ['1.', 2],
    ['1e', 2],
    ['.5', 0],
    ['tru', 3],
    ['truex', 4],
    ['"a', 2],
    ['"\n"', 1],
    ['"\\x"', 2],
    ['"\\u12g4"', 5],
    ['[1 2]', 3],
    ['[1}', 2],
    ['{"a" 1}', 5],
    ['1 2', 2],
    ['NaN', 0],
    ['\ufeff1', 0],
    ['"中" x', 4],
    ['"\ud800😀" x', 6],
    ['\ud800', 0],
  ]
  for (const [text, offset] of wrong) {
    t.throws(() => JSON.parse(text) as unknown, undefined, text)
    const error = t.throws(() => rawJson(text), { code: 'ERR_OFFLOOP_JSON' }, JSON.stringify(text))
    t.is(Reflect.get(error ?? {}, 'offset'), offset, JSON.stringify(text))
    const bytes = Buffer.from(text)
    if (/\p{Surrogate}/u.test(text)) continue
    const failure = t.throws(() => rawJson(bytes), { code: 'ERR_OFFLOOP_JSON' })
    t.is(Reflect.get(failure ?? {}, 'offset'), Buffer.byteLength(text.slice(0, offset)), JSON.stringify(text))
  }
  for (const bytes of [
    [0x22, 0xff, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
    [0x22, 0xc0, 0x80, 0x22],
  ]) {
    const error = t.throws(() => rawJson(Buffer.from(bytes)), { code: 'ERR_OFFLOOP_JSON' })
    t.is(Reflect.get(error ?? {}, 'offset'), 1)
  }
  t.is(Reflect.get(t.throws(() => rawJson(Buffer.from([0x31, 0xff]))) ?? {}, 'offset'), 1)
})

function jsonOf(value: unknown): string {
  const text = attempt(() => Buffer.from(JSON.stringify(value)))
  return typeof text === 'string' ? '"none"' : text.toString()
}

test('what JSON.parse takes is taken, and nothing else', (t) => {
  const random = new Random(11)
  const tokens = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"',
    '\\',
    '1',
    '0',
    '-',
    '.5',
    'e1',
    'true',
    'null',
    ' ',
    '\n',
    '\u0001',
    'é',
    '\\u00e9',
  ]
  for (let round = 0; round < 30_000; round += 1) {
    const valid = random.once(2) ? jsonOf(randomValue(random, LIMITS)) : '[{"a":[1,2.5e-3,"x\\n"]}]'
    const at = random.int(valid.length + 1)
    const text = random.once(3)
      ? random.list(random.int(8), () => random.pick(tokens)).join('')
      : valid.slice(0, at) + random.pick(tokens) + valid.slice(at + random.int(3))
    let isValid = true
    try {
      JSON.parse(text)
    } catch {
      isValid = false
    }
    let isTaken = true
    try {
      rawJson(text)
    } catch (error) {
      isTaken = false
      t.is(Reflect.get(Object(error), 'code'), 'ERR_OFFLOOP_JSON')
    }
    if (isTaken !== isValid) t.fail(`${JSON.stringify(text)}: JSON.parse ${isValid ? 'takes' : 'refuses'} it`)
  }
  t.pass()
})

test('a RawJson keeps its bytes, tells their number, and cannot be made or changed by others', async (t) => {
  const bytes = Buffer.from('[1,2]')
  const value = rawJson(bytes)
  bytes.fill(0)
  t.is(value.byteLength, 5)
  t.is((await encode({ value })).toString(), '{"value":[1,2]}')
  t.is(JSON.stringify({ value }), '{"value":[1,2]}')
  const lone = rawJson('["\ud800", "\\\\\udc00", "😀\ud83d"]')
  t.is((await encode(lone)).toString(), '["\\ud800", "\\\\\\udc00", "😀\\ud83d"]')
  const Class: unknown = value.constructor
  t.throws(() => Reflect.construct(Object(Class), []), { instanceOf: TypeError })
  t.throws(() => Reflect.construct(Object(Class), [Symbol('RawJson'), Buffer.from('x')]), { instanceOf: TypeError })
  t.true(Object.isFrozen(value))
  t.true(Object.isFrozen(Object.getPrototypeOf(value)))
  // Nobody but its maker is one.
  t.is(
    (
      await encode(Object.create(value.constructor.prototype, { byteLength: { value: 1, enumerable: true } })).catch(
        (error: unknown) => Buffer.from(String(error)),
      )
    ).toString(),
    String(await caught(() => JSON.stringify(Object.create(value.constructor.prototype)))),
  )
})

async function caught(call: () => unknown): Promise<unknown> {
  try {
    return await call()
  } catch (error) {
    return error
  }
}

test('trusted fragments are not looked at', async (t) => {
  t.is((await encode([rawJson('not JSON', { trusted: true }), 1])).toString(), '[not JSON,1]')
  t.is((await encode([rawJson('', { trusted: true }), 1], { sortKeys: true, space: 1 })).toString(), '[\n ,\n 1\n]')
  for (const text of [']}"{[', '"', '\\', '{{{{', ',,,']) {
    const value = [{ b: rawJson(text, { trusted: true }), a: 1 }]
    t.is((await encode(value, { sortKeys: true })).toString(), `[{"a":1,"b":${text}}]`)
    t.is((await encode(value, { space: 1 })).toString(), `[\n {\n  "b": ${text},\n  "a": 1\n }\n]`)
  }
})

test('thousands of fragments, small and large', async (t) => {
  const texts = Array.from({ length: 3000 }, (_, id) => JSON.stringify({ id, text: 'x'.repeat((id * 37) % 9000) }))
  const value = texts.map((text) => ({ row: rawJson(text) }))
  const expected = Buffer.from(`[${texts.map((text) => `{"row":${text}}`).join(',')}]`)
  t.is(differenceOfBytes(expected, await encode(value)), undefined)
  t.is(differenceOfBytes(expected, encodeSync(value)), undefined)
})

// ───────────────────────────── by chance ─────────────────────────────

const TOTAL = FUZZ / 100

const DEFAULTS: readonly ((value: unknown) => unknown)[] = [
  (value) => (typeof value === 'function' ? 'a function' : undefined),
  (value) => (value === undefined ? 'nothing' : undefined),
  (value) => (ArrayBuffer.isView(value) ? { bytes: value.byteLength } : undefined),
  () => undefined,
]

test('random values under random options', async (t) => {
  const random = new Random(13)
  for (let round = 0; round < TOTAL; round += 1) {
    const seed = random.int(2 ** 31)
    const make = (): unknown => (seed % 40 === 0 ? randomTable : randomValue)(new Random(seed), LIMITS)
    const options: EncodeOptions = {
      sortKeys: random.once(2),
      typedArrays: random.pick(['object', 'array', 'base64', undefined]),
      bigint: random.pick(['throw', 'number', 'string', undefined]),
      nonFinite: random.pick(['null', 'throw', undefined]),
      circular: random.pick(['throw', { text: 'again' }, undefined]),
      default: random.once(2) ? random.pick(DEFAULTS) : undefined,
      defaultFor: random.pick(KINDS),
      space: random.pick([undefined, undefined, 1, '\t']),
      newline: random.once(4),
    }
    await compare(t, make, options, `seed ${seed}, ${JSON.stringify(options)}:`)
  }
})

// ───────────────────────────── wrong arguments ─────────────────────────────

test('options that are none', async (t) => {
  const wrong: readonly (readonly [options: object, code: string])[] = [
    [{ sortKeys: 1 }, 'ERR_INVALID_ARG_TYPE'],
    [{ typedArrays: 'numbers' }, 'ERR_INVALID_ARG_VALUE'],
    [{ bigint: true }, 'ERR_INVALID_ARG_VALUE'],
    [{ nonFinite: 'throws' }, 'ERR_INVALID_ARG_VALUE'],
    [{ circular: 'text' }, 'ERR_INVALID_ARG_TYPE'],
    [{ circular: {} }, 'ERR_INVALID_ARG_TYPE'],
    [{ circular: { text: 1 } }, 'ERR_INVALID_ARG_TYPE'],
    [{ circular: { text: 'a', more: 1 } }, 'ERR_INVALID_ARG_VALUE'],
    [{ circular: null }, 'ERR_INVALID_ARG_TYPE'],
    [{ default: {} }, 'ERR_INVALID_ARG_TYPE'],
    [{ defaultFor: 'undefined' }, 'ERR_INVALID_ARG_TYPE'],
    [{ defaultFor: null }, 'ERR_INVALID_ARG_TYPE'],
    [{ defaultFor: new Set(['undefined']) }, 'ERR_INVALID_ARG_TYPE'],
    [{ defaultFor: ['function'] }, 'ERR_INVALID_ARG_VALUE'],
    [{ defaultFor: ['undefined', undefined] }, 'ERR_INVALID_ARG_VALUE'],
    [{ defaultFor: [1], default: () => 1 }, 'ERR_INVALID_ARG_VALUE'],
    [{ sortkeys: true }, 'ERR_INVALID_ARG_VALUE'],
  ]
  for (const [options, code] of wrong) {
    await t.throwsAsync(encode(1, options), { code }, JSON.stringify(options))
    t.throws(() => encodeSync(1, options), { code })
    t.throws(() => createEncoder(options), { code })
    await t.throwsAsync(encodeLines([1], options), { code })
  }
  const call = (...args: readonly unknown[]): unknown => Reflect.apply(rawJson, undefined, args)
  for (const args of [[], [1], [null], [{}], [new Uint16Array(1)], ['1', 1], ['1', { trusted: 1 }]]) {
    t.throws(() => call(...args), { code: 'ERR_INVALID_ARG_TYPE' })
  }
  t.throws(() => call('1', { check: true }), { code: 'ERR_INVALID_ARG_VALUE' })
})
