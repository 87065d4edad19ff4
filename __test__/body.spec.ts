/** Bodies taken apart, against JSON.parse and a walk over what it gives. `OFFLOOP_FUZZ` says how many are made by chance. */

import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { isDeepStrictEqual } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { decodeBase64, parse, split, stats } from '../src/index.ts'
import { MOST_PATTERNS, readPatterns } from '../src/parse/lift.ts'
import { lift, Mismatch, type Expected, type LiftRules, type Lifts, type PlainLift } from './fixtures/lifter.ts'
import { inChunks, noise } from './fixtures/text.ts'
import { HOSTILE_KEYS, Random } from './fixtures/values.ts'
import { FUZZ } from './fixtures/extent.ts'
import { checkMemory } from './fixtures/results.ts'

type Outcome = Expected | 'ERR_OFFLOOP_JSON' | 'ERR_OFFLOOP_LIFT'

function expectedOf(body: Uint8Array, lifts: Lifts, rules: LiftRules): Outcome {
  try {
    return lift(body, lifts, rules)
  } catch (error) {
    return error instanceof Mismatch ? 'ERR_OFFLOOP_LIFT' : 'ERR_OFFLOOP_JSON'
  }
}

/** Raw bytes say what value they are of. */
function shown(value: unknown, lifts: Lifts): unknown {
  if (!Object.values(lifts).includes('raw')) return value
  if (Buffer.isBuffer(value)) {
    try {
      return { raw: JSON.parse(value.toString()) }
    } catch {
      return value
    }
  }
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  if (Array.isArray(value)) return value.map((item) => shown(item, lifts))
  const copy = {}
  for (const [key, item] of Object.entries(value)) {
    Object.defineProperty(copy, key, {
      value: shown(item, lifts),
      enumerable: true,
      configurable: true,
      writable: true,
    })
  }
  return copy
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  const error = await call.catch((reason: unknown) => reason)
  return String(Reflect.get(Object(error), 'code'))
}

/** In all the ways in which a body may come. */
async function compare(t: ExecutionContext, body: Uint8Array, lifts: Lifts, options: LiftRules = {}): Promise<void> {
  const expected = expectedOf(body, lifts, options)
  const what = `${JSON.stringify(lifts)} of ${Buffer.from(body).toString().slice(0, 300)}`
  const given = { ...options, lift: lifts }
  const third = Math.ceil(body.length / 3)
  const chunks = [body.subarray(0, third), body.subarray(third, 2 * third), body.subarray(2 * third)]
  const ways: readonly (() => Parameters<typeof parse>[0])[] = [() => body, () => chunks, () => Readable.from(chunks)]
  for (const way of ways) {
    if (typeof expected === 'string') {
      t.is(await codeOf(parse(way(), given)), expected, what)
      t.is(await codeOf(split(way(), given)), expected, what)
      continue
    }
    const value = await parse(way(), given)
    t.deepEqual(shown(value, lifts), expected.value, what)
    t.is(JSON.stringify(keysOf(value)), JSON.stringify(keysOf(expected.value)), what)
    const { json, lifted } = await split(way(), given)
    t.is(JSON.stringify(JSON.parse(json.toString())), expected.rest, what)
    t.deepEqual(
      lifted.map(({ pointer, value: item }) => ({ pointer, value: shown(item, lifts) })).toSorted(byPointer),
      [...expected.lifted].toSorted(byPointer),
      what,
    )
  }
}

function byPointer(a: { readonly pointer: string }, b: { readonly pointer: string }): number {
  return a.pointer < b.pointer ? -1 : 1
}

/** The order of keys, at every depth. */
function keysOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || 'raw' in value) return 0
  return Object.entries(value).map(([key, item]) => [key, keysOf(item)])
}

const utf8 = (text: string): Buffer => Buffer.from(text)

test('nothing lifted: what JSON.parse gives', async (t) => {
  const texts = [
    '1',
    'null',
    '"a"',
    ' [1, 2] ',
    '{"a":{"b":[]},"__proto__":{"x":1},"a":2}',
    '"\\ud800"',
    '"é中😀"',
    '1e400',
    '-0',
  ]
  for (const text of texts) {
    t.deepEqual(await parse(utf8(text)), JSON.parse(text), text)
    t.deepEqual(await parse([utf8(text)]), JSON.parse(text), text)
    await compare(t, utf8(text), {})
  }
  t.is(Object.keys(await parse(utf8('{"__proto__":{"x":1}}')))[0], '__proto__')
  t.is(Reflect.get({}, 'x'), undefined)
})

test('what is no JSON is refused, with the byte where it ends to be any', async (t) => {
  const bad: readonly (readonly [body: string | Uint8Array, offset: number])[] = [
    ['', 0],
    [' ', 1],
    ['{', 1],
    ['[1,]', 3],
    ['{"a":1,}', 7],
    ['{"a" 1}', 5],
    ['{a:1}', 1],
    ["{'a':1}", 1],
    ['01', 1],
    ['1.', 2],
    ['.5', 0],
    ['+1', 0],
    ['1e', 2],
    ['-', 1],
    ['NaN', 0],
    ['tru', 3],
    ['nul1', 3],
    ['"\n"', 1],
    ['"\\x"', 2],
    ['"\\u12g4"', 5],
    ['"a', 2],
    ['[1] 2', 4],
    ['\ufeff1', 0],
    ['\u00a01', 0],
    [Uint8Array.of(0x22, 0xff, 0x22), 1],
    [Uint8Array.of(0x22, 0xc3, 0x22), 1],
    [Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22), 1],
    [Uint8Array.of(0x31, 0xc0), 1],
    ['['.repeat(100_000), 100_000],
    [`${'['.repeat(100_000)}${']'.repeat(99_999)}}`, 199_999],
  ]
  for (const [body, offset] of bad) {
    const bytes = typeof body === 'string' ? utf8(body) : body
    for (const given of [bytes, [bytes], [bytes.subarray(0, 1), bytes.subarray(1)]]) {
      for (const options of [{}, { lift: { '/**/x': 'base64' } as const }]) {
        const error = await parse(given, options).catch((reason: unknown) => reason)
        t.is(Reflect.get(Object(error), 'code'), 'ERR_OFFLOOP_JSON', String(body).slice(0, 50))
        t.is(Reflect.get(Object(error), 'offset'), offset, String(body).slice(0, 50))
      }
    }
  }
})

const ELEMENTS = ['int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'float32', 'float64'] as const

const BODY = utf8(
  '{"id":"a","choices":[{"index":0,"data":"QUJD","ids":[1,2,3],"x":{"data":"AA=="}},{"data":null,"ids":[]},{"data":7}],' +
    '"rout\\u0065d":"QU\\/D","a/b":{"~":"QQ"},"":"Qg==","n":[1.5,-2,3e2]}',
)

test('many pointers are not compared with each other on the JS thread', async (t) => {
  const pointers = Array.from({ length: MOST_PATTERNS + 1 }, (_, index) => `/p${index}`)
  const kinds = pointers.map(() => ({ form: 'base64', element: undefined, hints: null }) as const)
  t.is(readPatterns(pointers.slice(1), kinds)?.length, MOST_PATTERNS)
  t.is(readPatterns(pointers, kinds), undefined)
  const lifts = Object.fromEntries(pointers.map((pointer) => [pointer, 'base64'] as const))
  const body = Buffer.from(JSON.stringify({ p0: 'QQ==', [`p${MOST_PATTERNS}`]: 'Qg==', q: 'Qw==' }))
  t.deepEqual(await parse(body, { lift: lifts }), {
    p0: Buffer.from('A'),
    [`p${MOST_PATTERNS}`]: Buffer.from('B'),
    q: 'Qw==',
  })
})

test('pointers: keys, indexes, wildcards, any depth, escapes', async (t) => {
  const lists: readonly Lifts[] = [
    { '/choices/0/data': 'base64' },
    { '/choices/*/ids': 'int32' },
    { '/*/0/ids': 'uint16' },
    { '/routed': 'base64' },
    { '/a~1b/~0': 'base64' },
    { '/': 'base64' },
    { '/n': 'float32' },
    { '/n': 'float64', '/*': 'raw' },
    { '': 'raw' },
    { '/choices': 'raw' },
    { '/**/ids': 'uint8', '/n': 'float64' },
    { '/**/data': 'raw' },
    { '/**': 'raw' },
    { '/**/*': 'raw' },
    { '/**/choices/*/x/data': 'base64' },
    { '/choices/00/data': 'base64', '/choices/-1': 'raw', '/nothing/here': 'int32' },
    { '/choices/0': 'raw', '/choices/*/ids': 'int32' },
    { '/choices/*/ids': 'int32', '/choices/0': 'raw' },
    { '/**/data': 'base64' },
    { '/id': 'int32' },
    { '/n': 'int32' },
  ]
  for (const lifts of lists) {
    await compare(t, BODY, lifts)
    await compare(t, BODY, lifts, { onMismatch: 'keep' })
  }
})

test('the last of duplicate keys wins, and what it replaces is not judged', async (t) => {
  const texts = [
    '{"a":"QUJD","a":"QQ=="}',
    '{"a":"QUJD","a":5}',
    '{"a":5,"a":"QUJD"}',
    '{"a":"*","a":"QUJD"}',
    '{"a":"QUJD","\\u0061":null}',
    '{"\\u0061":"QUJD","a":{"a":"QQ=="}}',
    '{"b":{"a":"QUJD"},"b":1,"c":{"a":"QQ=="}}',
    '{"b":[{"a":"QUJD"},{"a":"QQ=="}],"b":[{"a":"QUI="}]}',
    '{"b":{"a":"QUJD","a":1,"a":"QQ=="},"b":{"a":"QUI="},"b":{}}',
    '{"__proto__":{"a":"QUJD"},"a":"QQ==","__proto__":{"a":"QUI="}}',
  ]
  for (const text of texts) {
    for (const pointer of ['/a', '/**/a', '/*/a', '/b/*/a', '/b/a', '/__proto__/a']) {
      for (const kind of ['base64', 'raw'] as const) {
        await compare(t, utf8(text), { [pointer]: kind })
        await compare(t, utf8(text), { [pointer]: kind }, { onMismatch: 'keep' })
      }
    }
  }
})

test('numbers: the doubles of JSON.parse, and what fits', async (t) => {
  const numbers =
    '0 -0 1 -1 1.0 -1.0e0 1e2 100e-2 255 256 65535 65536 2147483647 2147483648 -2147483648 -2147483649 0.5'
  const others =
    '1e400 -1e400 5e-324 1e-400 0.1 123456789012345 1234567890123456 9007199254740993 1E+2 3.4e38 3.5e38 4294967295'
  for (const text of `${numbers} ${others}`.split(' ')) {
    for (const kind of ELEMENTS) {
      await compare(t, utf8(`[1, ${text} ,2]`), { '': kind })
      await compare(t, utf8(`[[1, ${text}] ,[2]]`), { '': { ragged: kind } })
      await compare(t, utf8(`[[1, ${text}] ,[2, 3]]`), { '': { tensor: kind } })
      await compare(t, utf8(`[1, ${text} ,2]`), { '': kind }, { onMismatch: 'keep' })
    }
  }
  for (const text of [
    '[]',
    ' [ ] ',
    '[1,"2"]',
    '[1,[2]]',
    '[1,null]',
    '[true]',
    '{}',
    '"a"',
    '7',
    'null',
    '[[1]]',
    '[1,{}]',
  ]) {
    await compare(t, utf8(text), { '': 'int32' })
    await compare(t, utf8(`{"a":${text},"b":[1]}`), { '/a': 'int32', '/b': 'uint8' }, { onMismatch: 'keep' })
  }
})

test('base64: forgiving, with what JSON escapes', async (t) => {
  const texts = [
    'QUJD',
    'QUI=',
    'QUI',
    'QQ',
    ' Q U\\nJ D ',
    'Q\\/\\/D',
    '\\u0051UJD',
    'QUJD\\u003d',
    'Q',
    'QUJD=',
    'Q*JD',
    'é',
    '\\ud800',
    'QU\\u0000D',
    '',
  ]
  for (const text of texts) {
    await compare(t, utf8(`{"a":"${text}"}`), { '/a': 'base64' })
    await compare(t, utf8(`["${text}","QUJD"]`), { '/*': 'base64' }, { onMismatch: 'keep' })
  }
})

test('errors name the value and the place', async (t) => {
  const places: readonly (readonly [text: string, lifts: Lifts, pointer: string, offset: number])[] = [
    ['{"a":["QUJD","QU*D"]}', { '/a/*': 'base64' }, '/a/1', 16],
    ['{"a":"\\u0051\\/*D"}', { '/a': 'base64' }, '/a', 14],
    ['{"a":"Q"}', { '/a': 'base64' }, '/a', 7],
    ['{"a/b~":[1, 2.5]}', { '/a~1b~0': 'int32' }, '/a~1b~0', 12],
    ['[{"x":1}]', { '/**/x': 'base64' }, '/0/x', 6],
    ['[[1,256]]', { '/0': 'uint8' }, '/0', 4],
  ]
  for (const [text, lifts, pointer, offset] of places) {
    for (const body of [utf8(text), [utf8(text)]]) {
      const error = await parse(body, { lift: lifts }).catch((reason: unknown) => reason)
      t.is(Reflect.get(Object(error), 'code'), 'ERR_OFFLOOP_LIFT', text)
      t.is(Reflect.get(Object(error), 'pointer'), pointer, text)
      t.is(Reflect.get(Object(error), 'offset'), offset, text)
    }
  }
})

test('a response with experts, in every way it may come', async (t) => {
  const experts = noise(3_000_000)
  const ids = Array.from({ length: 20_000 }, (_, index) => (index * 7919) % 150_000)
  for (const content of ['text', 'a text with 中 in it']) {
    const value = {
      id: 'cmpl',
      choices: [{ index: 0, routed_experts: experts.toString('base64'), ids, message: { content } }],
    }
    const body = utf8(JSON.stringify(value))
    const options = { lift: { '/choices/*/routed_experts': 'base64', '/choices/*/ids': 'int32' } as const }
    const expected = {
      id: 'cmpl',
      choices: [{ index: 0, routed_experts: experts, ids: Int32Array.from(ids), message: { content } }],
    }
    const web = new ReadableStream<Uint8Array>({
      async start(controller) {
        for await (const chunk of inChunks(body, 50_000)) controller.enqueue(chunk)
        controller.close()
      },
    })
    const ways = [body, Uint8Array.from(body).buffer, [body], web, inChunks(body, 65_536)]
    for (const way of ways) t.true(isDeepStrictEqual(await parse(way, options), expected))
    const own = Uint8Array.from(body)
    const call = parse(own, { ...options, transfer: true })
    t.is(own.length, 0)
    t.true(isDeepStrictEqual(await call, expected))
    const [result] = (await parse<typeof expected>(body, options)).choices
    checkMemory(t, result?.routed_experts ?? Buffer.alloc(0))
    t.is(result?.routed_experts.length, experts.length)
    t.not(result?.routed_experts.buffer, result?.ids.buffer)
  }
})

test('a body that was handed over is decoded where it stands', async (t) => {
  const [large, other, small] = [noise(2_000_000), noise(1_500_000, 2), noise(50)]
  const text = (first: string): string =>
    JSON.stringify({
      'a/b': [first, other.toString('base64')],
      ids: [1, 2],
      small: small.toString('base64'),
      end: '中',
    })
  const lifts = { '/a~1b/*': 'base64', '/ids': 'uint16', '/small': 'base64' } as const
  const expected = { 'a/b': [large, other], ids: Uint16Array.of(1, 2), small, end: '中' }
  const own = Uint8Array.from(utf8(text(large.toString('base64'))))
  const value = await parse<typeof expected>(own, { lift: lifts, transfer: true })
  t.true(isDeepStrictEqual(value, expected))
  t.is(own.length, 0)
  const [first, second] = value['a/b']
  t.not(first?.buffer, second?.buffer)
  const moved = structuredClone(first, { transfer: first === undefined ? [] : [first.buffer] })
  t.true(large.equals(moved ?? Buffer.of()))
  t.true(other.equals(second ?? Buffer.of()))
  for (const [at, letter] of [
    [0, '*'],
    [1_000_000, 'é'],
    [2_666_667, '*'],
  ] as const) {
    const bad = large.toString('base64')
    const body = utf8(text(bad.slice(0, at) + letter + bad.slice(at + 1)))
    const error = await parse(Uint8Array.from(body), { lift: lifts, transfer: true }).catch((reason: unknown) => reason)
    t.is(Reflect.get(Object(error), 'code'), 'ERR_OFFLOOP_LIFT')
    t.is(Reflect.get(Object(error), 'pointer'), '/a~1b/0')
    t.is(Reflect.get(Object(error), 'offset'), 9 + at)
  }
})

test('over HTTP, with fetch', async (t) => {
  const experts = noise(1_000_000)
  const text = JSON.stringify({ a: experts.toString('base64'), b: [1] })
  const server = createServer((_, response) => response.end(text)).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address
    const { port } = server.address() as AddressInfo
    const { body } = await fetch(`http://127.0.0.1:${port}/`)
    if (body === null) throw new Error('a body is expected')
    t.true(isDeepStrictEqual(await parse(body, { lift: { '/a': 'base64' } }), { a: experts, b: [1] }))
  } finally {
    server.close()
  }
})

test('the body is read before the call returns', async (t) => {
  const text = JSON.stringify({ a: 'QUJD'.repeat(50_000), b: 'x'.repeat(50_000) })
  const body = utf8(text)
  const calls = [parse(body, { lift: { '/a': 'base64' } }), parse(body), parse([body])]
  body.fill(0)
  const [lifted, ...plain] = await Promise.all(calls)
  t.true(isDeepStrictEqual(lifted, { a: Buffer.from('ABC'.repeat(50_000)), b: 'x'.repeat(50_000) }))
  for (const value of plain) t.true(isDeepStrictEqual(value, JSON.parse(text)))
})

test('deep bodies', async (t) => {
  const depth = 200_000
  const body = utf8(`${'{"a":['.repeat(depth)}"QUJD"${']}'.repeat(depth)}`)
  const { lifted } = await split(body, { lift: { '/**/0': 'raw' } })
  t.is(lifted.length, 1)
  t.is(lifted[0]?.pointer, '/a/0')
  const { json } = await split(body, { lift: {} })
  t.true(json.equals(body))
})

test('many values at many depths: what they cost grows with the body', async (t) => {
  const depth = 30_000
  const body = utf8(`${'{"x":"QQ==","a":['.repeat(depth)}0${']}'.repeat(depth)}`)
  const value = await parse([body], { lift: { '/**/x': 'base64' } })
  const { lifted } = await split(body, { lift: { '/**/x': 'base64' } })
  t.is(lifted.length, depth)
  let place = value
  let pointer = ''
  for (let level = 0; level < depth; level += 1) {
    if (String(Object(place).x) !== 'A' || (level % 1000 === 0 && lifted[level]?.pointer !== `${pointer}/x`)) {
      t.fail(`level ${level}`)
      return
    }
    place = Object(place).a[0]
    if (level % 1000 === 999) pointer = '/a/0'.repeat(level + 1)
  }
  t.is(place, 0)
  const error = await parse(body, { lift: { '/**/x': 'int8' } }).catch((reason: unknown) => reason)
  t.like(error, { code: 'ERR_OFFLOOP_LIFT', pointer: '/x', offset: 5 })
  const kept = await parse([body], { lift: { '/**/x': 'int8' }, onMismatch: 'keep' })
  t.is(Object(kept).a[0].x, 'QQ==')
})

test('many values, small and large', async (t) => {
  const rows = Array.from({ length: 5000 }, (_, index) => ({
    data: noise(index % 40, index).toString('base64'),
    n: [index],
  }))
  rows.push({ data: noise(300_000).toString('base64'), n: [1] })
  const lifts = { '/*/data': 'base64', '/*/n': 'int32' } as const
  const body = utf8(JSON.stringify(rows))
  t.true(isDeepStrictEqual(await parse(body, { lift: lifts }), lift(body, lifts, {}).value))
})

test('bodies longer than strings can be', async (t) => {
  const body = Buffer.alloc(540_000_000, 'A')
  body.write('{"a":"', 0)
  body.write('"}', body.length - 2)
  await t.throwsAsync(parse(body), { code: 'ERR_OFFLOOP_TOO_LARGE' })
  const { a } = await parse<{ readonly a: Buffer }>(Uint8Array.from(body), { lift: { '/a': 'base64' }, transfer: true })
  t.is(a.length, ((body.length - 8) * 3) / 4)
  t.true(a.every((byte) => byte === 0))
})

test('an abort rejects with its reason, and destroys a stream', async (t) => {
  const reason = new Error('mine')
  const body = utf8(JSON.stringify({ a: 'QUJD'.repeat(1_000_000) }))
  await t.throwsAsync(parse(body, { signal: AbortSignal.abort(reason) }), { is: reason })
  await t.throwsAsync(parse(utf8('1'), { signal: AbortSignal.abort(reason) }), { is: reason })
  const controller = new AbortController()
  const stream = new Readable({ read: () => undefined })
  stream.push('{')
  const call = parse(stream, { signal: controller.signal })
  setImmediate(() => controller.abort(reason))
  await t.throwsAsync(call, { is: reason })
  t.true(stream.destroyed)
  const failing = Readable.from(
    (async function* chunks() {
      yield utf8('{')
      throw reason
    })(),
  )
  await t.throwsAsync(parse(failing), { is: reason })
})

test('wrong arguments', async (t) => {
  const call = (...args: readonly unknown[]): Promise<unknown> => Reflect.apply(parse, undefined, args)
  for (const [args, code] of [
    [[], 'ERR_INVALID_ARG_TYPE'],
    [['{}'], 'ERR_INVALID_ARG_TYPE'],
    [[utf8('1'), null], 'ERR_INVALID_ARG_TYPE'],
    [[utf8('1'), { lifts: {} }], 'ERR_INVALID_ARG_VALUE'],
    [[utf8('1'), { lift: 1 }], 'ERR_INVALID_ARG_TYPE'],
    [[utf8('1'), { lift: { '/a': 'int64' } }], 'ERR_INVALID_ARG_VALUE'],
    [[utf8('1'), { lift: { '/a': undefined } }], 'ERR_INVALID_ARG_VALUE'],
    [[utf8('1'), { lift: { a: 'raw' } }], 'ERR_INVALID_ARG_VALUE'],
    [[utf8('1'), { lift: { '/a~2': 'raw' } }], 'ERR_INVALID_ARG_VALUE'],
    [[utf8('1'), { lift: { '/a/**/b': 'raw' } }], 'ERR_INVALID_ARG_VALUE'],
    [[utf8('1'), { lift: { '/a': {} } }], 'ERR_INVALID_ARG_VALUE'],
    [[utf8('1'), { lift: { '/a': { ragged: 'int8', tensor: 'int8' } } }], 'ERR_INVALID_ARG_VALUE'],
    [[utf8('1'), { lift: { '/a': { ragged: 'raw' } } }], 'ERR_INVALID_ARG_VALUE'],
    [[utf8('1'), { lift: { '/a': { tensor: undefined } } }], 'ERR_INVALID_ARG_VALUE'],
    [[utf8('1'), { lift: { '/a': { raw: true } } }], 'ERR_INVALID_ARG_VALUE'],
    [[utf8('1'), { lift: { '/a': 'toString' } }], 'ERR_INVALID_ARG_VALUE'],
    [[utf8('1'), { replace: 'null' }], 'ERR_INVALID_ARG_VALUE'],
    [[utf8('1'), { maxBytes: '1' }], 'ERR_INVALID_ARG_TYPE'],
    [[utf8('1'), { onMismatch: 'skip' }], 'ERR_INVALID_ARG_VALUE'],
    [[utf8('1'), { transfer: 1 }], 'ERR_INVALID_ARG_TYPE'],
    [[[1]], 'ERR_INVALID_ARG_TYPE'],
  ] as const) {
    await t.throwsAsync(call(...args), { code }, JSON.stringify(args))
  }
  await t.throwsAsync(Reflect.apply(split, undefined, [utf8('1'), {}]), { code: 'ERR_INVALID_ARG_TYPE' })
  await t.throwsAsync(Reflect.apply(split, undefined, [utf8('1'), { lift: {}, replace: 'x' }]), {
    code: 'ERR_INVALID_ARG_VALUE',
  })
})

// ───────────────────────────── bounds ─────────────────────────────

/** An endless stream of bytes, and what became of it. */
function endless(): { readonly stream: AsyncIterable<Uint8Array>; readonly ended: () => boolean } {
  let isEnded = false
  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) yield Buffer.alloc(10_000, 0x20)
    } finally {
      isEnded = true
    }
  }
  return { stream: chunks(), ended: () => isEnded }
}

test('a body of maxBytes is read, and one of a byte more is refused, in every way it may come', async (t) => {
  for (const length of [1, 40_000, 200_000]) {
    const body = utf8(JSON.stringify('x'.repeat(length)))
    const ways: readonly (() => Parameters<typeof parse>[0])[] = [
      () => body,
      () => Uint8Array.from(body).buffer,
      () => [body.subarray(0, 1), body.subarray(1)],
      () => Readable.from([body.subarray(0, 2), body.subarray(2)]),
      () => new Blob([body]).stream(),
    ]
    for (const way of ways) {
      for (const call of [
        async (maxBytes: number) => await parse(way(), { maxBytes }),
        async (maxBytes: number) => await split(way(), { maxBytes, lift: {} }),
        async (maxBytes: number) => await decodeBase64(way(), { maxBytes, mode: 'node' }),
      ]) {
        await t.notThrowsAsync(call(body.length))
        await t.throwsAsync(call(body.length - 1), { code: 'ERR_OFFLOOP_TOO_LARGE' })
        await t.throwsAsync(call(0), { code: 'ERR_OFFLOOP_TOO_LARGE' })
      }
    }
  }
  await t.throwsAsync(decodeBase64('QUJD', { maxBytes: 3 }), { code: 'ERR_OFFLOOP_TOO_LARGE' })
  t.is((await decodeBase64('QUJD', { maxBytes: 4 })).toString(), 'ABC')
})

test('a refused body that was to be taken stays with its owner', async (t) => {
  const body = Uint8Array.from(utf8(JSON.stringify('x'.repeat(200_000))))
  await t.throwsAsync(parse(body, { transfer: true, maxBytes: 200_001 }), { code: 'ERR_OFFLOOP_TOO_LARGE' })
  t.is(body.length, 200_002)
})

test('a stream is cancelled at the byte that exceeds', async (t) => {
  const { stream, ended } = endless()
  await t.throwsAsync(parse(stream, { maxBytes: 1e6 }), { code: 'ERR_OFFLOOP_TOO_LARGE' })
  t.true(ended())
  const node = Readable.from(endless().stream)
  await t.throwsAsync(split(node, { maxBytes: 1e6, lift: {} }), { code: 'ERR_OFFLOOP_TOO_LARGE' })
  t.true(node.destroyed)
  let reason: unknown
  const web = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(10_000)),
    cancel: (given) => (reason = given),
  })
  const error = await t.throwsAsync(decodeBase64(web, { maxBytes: 1e6 }), { code: 'ERR_OFFLOOP_TOO_LARGE' })
  t.is(reason, error)
})

test('a body that announces more than maxBytes is not read', async (t) => {
  const server = createServer((request, response) => {
    response.setHeader('content-length', 1e9)
    response.write('[')
    request.socket.once('close', () => server.close())
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address
  const { port } = server.address() as AddressInfo
  const response = await new Promise<IncomingMessage>((resolve) => get({ port, host: '127.0.0.1' }, resolve))
  await t.throwsAsync(parse(response, { maxBytes: 1e6 }), {
    code: 'ERR_OFFLOOP_TOO_LARGE',
    message: /1000000000 bytes/,
  })
  t.true(response.destroyed)
  await new Promise((resolve) => server.once('close', resolve))
})

test('wrong bounds are refused', async (t) => {
  for (const options of [{ maxBytes: -1 }, { maxBytes: 1.5 }, { dropStringsOver: -1 }, { dropStringsOver: NaN }]) {
    await t.throwsAsync(parse(utf8('1'), options), { code: 'ERR_OUT_OF_RANGE' })
  }
  t.is(await parse(utf8('1'), { maxBytes: Infinity, dropStringsOver: Infinity }), 1)
})

test('long strings are dropped wherever they stand, but for those that are lifted', async (t) => {
  const body = utf8('{"a":"1234","b":{"c":["12345","123\\n","é5678"],"12345678":7},"d":"QUJDRA=="}')
  for (const dropStringsOver of [0, 5, 6, 7, 100]) {
    for (const lifts of [{}, { '/d': 'base64' }, { '/b': 'raw' }, { '/b/c': 'int8' }] as const) {
      await compare(t, body, lifts, { dropStringsOver, onMismatch: 'keep' })
    }
  }
  t.is(await parse(utf8('"12345"'), { dropStringsOver: 6 }), null)
  t.is(await parse(utf8('"12345"'), { dropStringsOver: 7 }), '12345')
})

test.serial('dropped values make no memory of V8, however large they are', async (t) => {
  const images = Array.from({ length: 10 }, () => ({ url: 'QUJD'.repeat(100_000), detail: 'auto' }))
  const body = utf8(JSON.stringify({ images, text: 'x'.repeat(500_000) }))
  const { made, reused } = stats().results
  const options = { lift: { '/images/*/url': 'drop' }, dropStringsOver: 1000 } as const
  const expected = { images: images.map(({ detail }) => ({ url: null, detail })), text: null }
  t.deepEqual(await parse(body, options), expected)
  const { json, lifted } = await split(body, options)
  t.deepEqual(JSON.parse(json.toString()), expected)
  t.deepEqual(
    lifted,
    Array.from({ length: 10 }, (_, index) => ({ pointer: `/images/${index}/url`, value: null })),
  )
  t.deepEqual([stats().results.made, stats().results.reused], [made, reused])
})

// ───────────────────────────── replacements ─────────────────────────────

test('strings stand in the places of values that were split off', async (t) => {
  const data = noise(300_000)
  const value = { a: data.toString('base64'), 'b/~': [[1, 2], [3]], c: 'x'.repeat(100), d: null }
  const lifts = { '/a': 'base64', '/b~1~0': { ragged: 'int32' }, '/c': 'drop', '/d': 'raw' } as const
  const calls: unknown[] = []
  for (const body of [utf8(JSON.stringify(value)), [utf8(JSON.stringify(value))]]) {
    const { json, lifted } = await split(body, {
      lift: lifts,
      replace(index, pointer) {
        calls.push([index, pointer])
        return `"${index}" 中 \ud800`
      },
    })
    const text = (index: number): string => `"${index}" 中 \ud800`
    t.deepEqual(JSON.parse(json.toString()), { a: text(0), 'b/~': text(1), c: text(2), d: null })
    t.deepEqual(
      lifted.map(({ pointer }) => pointer),
      ['/a', '/b~1~0', '/c'],
    )
    t.true(data.equals(Object(lifted[0]?.value)))
    t.deepEqual(calls.splice(0), [
      [0, '/a'],
      [1, '/b~1~0'],
      [2, '/c'],
    ])
  }
  const plain = await split(utf8('[1,[2]]'), { lift: { '/1': 'raw' }, replace: 'null' })
  t.is(plain.json.toString(), '[1,null]')
})

test('a replacement that throws, aborts or returns no string rejects, and nothing is lost', async (t) => {
  const reason = new Error('mine')
  const body = utf8(JSON.stringify({ a: 'QUJD'.repeat(50_000) }))
  const lifts = { '/a': 'base64' } as const
  for (const given of [body, [body]]) {
    const options = {
      lift: lifts,
      replace: () =>
        (() => {
          throw reason
        })(),
    }
    t.is(await t.throwsAsync(split(given, options)), reason)
    const replace: unknown = () => 7
    await t.throwsAsync(Reflect.apply(split, undefined, [given, { lift: lifts, replace }]), {
      code: 'ERR_INVALID_ARG_TYPE',
    })
    const controller = new AbortController()
    const aborting = (): string => {
      controller.abort(reason)
      return ''
    }
    const call = split(given, { lift: lifts, replace: aborting, signal: controller.signal })
    t.is(await t.throwsAsync(call), reason)
  }
  const { lifted } = await split(Uint8Array.from(body), { lift: lifts, transfer: true })
  t.is(Object(lifted[0]?.value).length, 150_000)
})

// ───────────────────────────── by chance ─────────────────────────────

const TOTAL = FUZZ / 50

/**
 * Without a backslash: once V8 13 or 14 has made an object with that key, its JSON.parse takes other keys of one
 * escaped character for it (`JSON.parse('{"\\\\":1}')`, then `JSON.parse('{"\\n":1}')`).
 */
const KEYS = ['a', 'b', 'c', 'data', ...HOSTILE_KEYS.slice(0, 12)].filter((key) => !/["\\]/u.test(key))

/** JSON text with spaces, escapes and duplicates where they may be. */
function randomText(random: Random, depth: number): string {
  const space = (): string => random.pick(['', '', '', ' ', '\n\t', '  '])
  const list = (make: () => string): string => random.list(random.int(4), make).join(`${space()},${space()}`)
  const escaped = (text: string): string =>
    JSON.stringify(text).replaceAll(/[a-z]/gu, (letter) =>
      random.once(12) ? `\\u00${letter.charCodeAt(0).toString(16)}` : letter,
    )
  switch (random.int(depth < 5 ? 9 : 6)) {
    case 0:
      return random.pick(['null', 'true', 'false', 'null'])
    case 1:
      return random.pick(['0', '-0', '1.5', '12', '255', '-7', '1e3', '70000', '1e400', '123456789012345678'])
    case 2:
      return JSON.stringify(random.pick(['', 'x', 'é', '中', '*', 'QUJDRA', 'AA=']))
    case 3:
    case 4:
      return `"${noise(random.int(12), random.int(1000))
        .toString('base64')
        .replaceAll('/', random.once(2) ? '\\/' : '/')}"`
    case 5:
      return randomNumbers(random, space)
    case 6:
      return `[${space()}${list(() => randomText(random, depth + 1))}${space()}]`
    default: {
      const member = (): string => `${escapedKey(escaped, random)}${space()}:${space()}${randomText(random, depth + 1)}`
      return `{${space()}${list(member)}${space()}}`
    }
  }
}

/** Numbers, often nested, and often in lists of equal lengths. */
function randomNumbers(random: Random, space: () => string): string {
  const equal = random.once(2) ? undefined : random.int(3)
  const nested = (depth: number): string => {
    const length = equal ?? random.int(4)
    const isDeep = 0 < depth && !(equal === undefined && random.once(6))
    const items = random.list(length, () => (isDeep ? nested(depth - 1) : String(random.int(300))))
    return `[${space()}${items.join(`${space()},${space()}`)}${space()}]`
  }
  return nested(random.int(4))
}

function escapedKey(escaped: (text: string) => string, random: Random): string {
  const key = random.pick(KEYS)
  // What JSON.parse makes of other keys is tested with it.
  return /\p{Surrogate}/u.test(key) ? '"a"' : escaped(key)
}

function randomPointer(random: Random): string {
  const steps = random.list(random.int(4), () => random.pick(['a', 'b', 'data', '*', '0', '1', '*', '__proto__']))
  if (random.once(3)) steps.unshift('**')
  return steps.map((step) => `/${step}`).join('')
}

const KINDS: readonly PlainLift[] = [
  'base64',
  'raw',
  'drop',
  ...ELEMENTS,
  ...ELEMENTS.flatMap((element) => [{ base64: element }, { ragged: element }, { tensor: element }]),
]

test('random bodies and pointers', async (t) => {
  const random = new Random(37)
  for (let round = 0; round < TOTAL; round += 1) {
    const lifts = Object.fromEntries(random.list(random.int(4), () => [randomPointer(random), random.pick(KINDS)]))
    const onMismatch = random.pick(['keep', 'keep', 'throw', undefined] as const)
    const dropStringsOver = random.pick([undefined, undefined, random.int(20)])
    await compare(t, utf8(randomText(random, 0)), lifts, { onMismatch, dropStringsOver })
  }
})

test('random bodies, damaged', async (t) => {
  const random = new Random(41)
  for (let round = 0; round < TOTAL; round += 1) {
    const body = utf8(randomText(random, 0))
    const at = random.int(body.length + 1)
    const damage = random.int(4)
    const damaged =
      damage === 0
        ? body.subarray(0, at)
        : damage === 1
          ? Buffer.concat([body.subarray(0, at), body.subarray(at + 1)])
          : damage === 2
            ? Buffer.concat([body.subarray(0, at), Buffer.of(random.int(256)), body.subarray(at)])
            : Buffer.concat([body, body.subarray(at)])
    await compare(t, damaged, { '/**/a': random.pick(KINDS) }, { onMismatch: 'keep' })
  }
})
