/** Routed experts: every form they come in, chains against a reference that goes row by row, and what must be refused. */

import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import {
  concatExperts,
  decodeExperts,
  OffloopError,
  parse,
  split,
  type ConcatOptions,
  type ExpertsTurn,
  type ExpertsWire,
  type RoutedExperts,
} from '../src/index.ts'
import {
  bytesOf,
  DTYPES,
  formsOf,
  naiveConcat,
  npy,
  npyFile,
  own,
  randomRows,
  type NaiveTurn,
  type Rows,
} from './fixtures/experts.ts'
import { Random } from './fixtures/values.ts'
import { checkMemory } from './fixtures/results.ts'

interface Golden {
  readonly name: string
  readonly turns: readonly ({
    readonly rows: readonly number[]
    readonly start: number
    readonly tokens?: number
  } | null)[]
  readonly result?: readonly number[]
  readonly error?: string
  readonly tokens: number
}

const vectors: {
  readonly npy: Readonly<Record<string, string>>
  readonly compact: ExpertsWire
  readonly concat: readonly Golden[]
} = JSON.parse(readFileSync(new URL('fixtures/vectors/experts.json', import.meta.url), 'utf8'))

/** What is there, with its numbers. */
function shown({ data, shape, dtype, start }: RoutedExperts): unknown {
  return { data: data.toString('hex'), shape, dtype, start }
}

function expectedOf({ values, shape, dtype }: Rows, start: number): unknown {
  return { data: bytesOf(values, dtype).toString('hex'), shape, dtype, start }
}

async function errorOf(call: Promise<unknown>): Promise<unknown> {
  return await call.then(
    () => 'no error',
    (error: unknown) => error,
  )
}

async function refuses(t: ExecutionContext, call: Promise<unknown>, like: object): Promise<void> {
  const error = await errorOf(call)
  t.like(error, { code: 'ERR_OFFLOOP_EXPERTS', ...like })
  t.true(error instanceof OffloopError)
}

// ───────────────────────────── forms ─────────────────────────────

test('goldens: a .npy file, and the compact form', async (t) => {
  const [text = ''] = Object.values(vectors.npy)
  const expected = { data: '01020304', shape: [2, 1, 2], dtype: 'uint8', start: 0 }
  t.deepEqual(shown(await decodeExperts(text)), expected)
  t.deepEqual(shown(await decodeExperts(vectors.compact)), {
    data: '010203',
    shape: [1, 1, 3],
    dtype: 'uint8',
    start: 0,
  })
})

for (const [size, rows] of [
  ['at once', 5],
  ['by a task', 9000],
] as const) {
  test(`every form of every dtype, decoded ${size}`, async (t) => {
    const random = new Random(rows)
    for (const dtype of DTYPES) {
      const given = randomRows(random, rows, 3, 4, dtype)
      const [, layers, topk] = given.shape
      for (const [name, wire] of Object.entries(formsOf(given, 7))) {
        const hints = name === 'headerless' ? { layers, topk, dtype } : { layers, topk }
        const start = name.startsWith('an object') || name.startsWith('the text') ? 7 : 11
        const decoded = await decodeExperts(wire, { ...hints, start: 11 })
        t.deepEqual(shown(decoded), expectedOf(given, start), `${dtype}: ${name}`)
        const handedOver = await decodeExperts(wire, { ...hints, start: 11, transfer: true })
        t.deepEqual(shown(handedOver), expectedOf(given, start), `${dtype}: ${name}, handed over`)
      }
    }
  })
}

test('what nobody tells is uint8, in base85 int32, and without a header int32', async (t) => {
  const dtypeOf = async (wire: ExpertsWire, hints = {}): Promise<string> => (await decodeExperts(wire, hints)).dtype
  t.is(await dtypeOf({ data: 'AQIDBA==', shape: [4, 1, 1] }), 'uint8')
  t.is(await dtypeOf({ data: 'AQIDBA==', shape: [2, 1, 1] }, { dtype: 'uint16' }), 'uint16')
  t.is(await dtypeOf({ data: Buffer.of(1, 2), shape: [2, 1, 1], dtype: null, start: null }), 'uint8')
  t.is(await dtypeOf({ data: '00000', shape: [1, 1, 1], encoding: 'base85' }), 'int32')
  t.is(await dtypeOf('AQIDBA==', { layers: 1, topk: 1 }), 'int32')
  t.is(await dtypeOf('AQIDBA==', { layers: 2, topk: 1, dtype: 'int16' }), 'int16')
  t.is(await dtypeOf({ data: Buffer.of(1, 2, 3, 4) }, { layers: 2, topk: 2 }), 'uint8')
})

test('no rows, no bytes', async (t) => {
  for (const wire of [
    { data: '', shape: [0, 48, 8] },
    { data: Buffer.alloc(0), shape: [0, 48, 8] },
    'nrlre1:uint8:0x48x8:',
  ]) {
    const { data, shape } = await decodeExperts(wire)
    t.deepEqual([data.length, shape], [0, [0, 48, 8]])
  }
  const { shape } = await decodeExperts('', { layers: 48, topk: 8 })
  t.deepEqual(shape, [0, 48, 8])
})

test('text that is too long for one turn of the loop is copied in several', async (t) => {
  const data = Buffer.alloc(9_000_000, 'experts')
  const experts = { data: data.toString('base64'), shape: [9_000_000, 1, 1] }
  const call = concatExperts([{ experts }, { experts: { ...experts, start: 9_000_000 } }], { tokens: 18_000_001 })
  const { data: joined } = await call
  t.true(joined.subarray(0, -1).equals(Buffer.concat([data, data])))
})

// ───────────────────────────── chains ─────────────────────────────

for (const { name, turns, result, error, ...options } of vectors.concat) {
  test(`golden: ${name}`, async (t) => {
    const given = turns.map((turn): ExpertsTurn | null => {
      if (turn === null) return null
      const { rows, start, tokens } = turn
      return { experts: { data: Buffer.from(rows), shape: [rows.length, 1, 1], dtype: 'uint8', start }, tokens }
    })
    if (error !== undefined) await refuses(t, concatExperts(given, options), { code: error })
    else t.deepEqual([...(await concatExperts(given, options)).data], result)
  })
}

/** A chain as it might be: turns that go on, repeat, leave out, fork. */
function randomChain(random: Random): { readonly turns: (NaiveTurn | null)[]; readonly options: ConcatOptions } {
  const [layers, topk] = [1 + random.int(3), 1 + random.int(3)]
  const dtypes = random.once(3) ? DTYPES : ([random.pick(DTYPES)] as const)
  const turns: (NaiveTurn | null)[] = []
  let end = 0
  for (let left = 1 + random.int(50); 0 < left; left -= 1) {
    if (random.once(15)) turns.push(null)
    const begin = random.pick([0, end, end, end, Math.max(0, end - 1), random.int(end + 1), end + random.int(3)])
    const total = begin + random.int(9)
    const rows = Math.max(0, total - begin - random.int(2))
    turns.push({
      rows: randomRows(random, rows, random.once(300) ? layers + 1 : layers, topk, random.pick(dtypes)),
      start: begin,
      tokens: random.once(3) ? total : undefined,
    })
    end = Math.max(end, begin + rows)
  }
  const fills = ['throw', 'zero', 'repeat', random.int(400) - 100] as const
  return {
    turns,
    options: {
      tokens: Math.max(0, end + random.pick([0, 1, 1, 1, 3, -2])),
      gaps: random.pick([...fills, undefined]),
      lastRow: random.pick([...fills, undefined]),
      overlap: random.pick(['earlier', 'later', undefined]),
      mixed: random.pick(['widen', 'widen', 'throw', undefined]),
    },
  }
}

test('random chains of up to 50 turns are what a reference makes of them, row by row', async (t) => {
  const random = new Random(7)
  let kept = 0
  for (let round = 0; round < 800; round += 1) {
    const { turns, options } = randomChain(random)
    const given = turns.map((turn): ExpertsTurn | null => {
      if (turn === null) return null
      const { rows, start, tokens } = turn
      // Without hints each must tell what it is.
      const { headerless, ...forms } = formsOf(rows, start)
      const name = random.pick(Object.keys(forms))
      const wire = forms[name] ?? headerless ?? ''
      const isTold = name.startsWith('an object') || name.startsWith('the text')
      return { experts: wire, ...(!isTold && { start }), tokens }
    })
    const expected = naiveConcat(turns, options)
    const call = concatExperts(given, { ...options, transfer: random.once(2) })
    const what = JSON.stringify([round, options])
    if (expected === undefined) await refuses(t, call, {})
    else t.deepEqual(shown(await call), expectedOf(expected, 0), what)
    kept += expected === undefined ? 0 : 1
  }
  t.true(150 < kept, `${kept} chains came out`)
})

test('large chains are placed by a task as small ones are at once', async (t) => {
  const random = new Random(11)
  const turns = random.list(30, (index): NaiveTurn => ({
    rows: randomRows(random, 1000, 4, 8, index === 20 ? 'uint16' : 'uint8'),
    start: index * 900,
    tokens: undefined,
  }))
  for (const overlap of ['earlier', 'later'] as const) {
    const options = { tokens: 27_101, overlap } as const
    const expected = naiveConcat(turns, options)
    if (expected === undefined) throw new TypeError('the reference refuses it')
    for (const form of [
      'a .npy file as base64',
      'an object with base64',
      'an object with bytes',
      'an object with base85',
    ]) {
      const given = turns.map(({ rows, start }) => ({ experts: formsOf(rows, start)[form] ?? '', start }))
      t.deepEqual(shown(await concatExperts(given, options)), expectedOf(expected, 0), form)
      t.deepEqual(shown(await concatExperts(given, { ...options, transfer: true })), expectedOf(expected, 0), form)
    }
  }
})

test('without experts at all there must be told what to fill, and with how much', async (t) => {
  const options = { tokens: 2, gaps: 'zero', lastRow: 9, layers: 1, topk: 2 } as const
  t.deepEqual(shown(await concatExperts([null], options)), {
    data: '00000909',
    shape: [2, 1, 2],
    dtype: 'uint8',
    start: 0,
  })
  t.deepEqual((await concatExperts([], { ...options, tokens: 0 })).shape, [0, 1, 2])
  await refuses(t, concatExperts([null], { ...options, layers: undefined }), {})
  await refuses(t, concatExperts([], { ...options, gaps: 'throw' }), {})
  await refuses(t, concatExperts([], { tokens: 2 }), {})
})

test('what turns tell beats what payloads tell', async (t) => {
  const experts = { data: Buffer.of(1, 2), shape: [2, 1, 1], start: 5 }
  const { data } = await concatExperts([{ experts, start: 0 }], { tokens: 3 })
  t.deepEqual([...data], [1, 2, 0])
  await refuses(t, concatExperts([{ experts }], { tokens: 3 }), { turn: 0 })
})

// ───────────────────────────── what is refused ─────────────────────────────

const tiny = Buffer.of(1, 2, 3, 4)
const most = Number.MAX_SAFE_INTEGER
const dict = (descr: string, order = 'False', shape = '(2, 1, 2)'): string =>
  `{'descr': ${descr}, 'fortran_order': ${order}, 'shape': ${shape}, }`

const HOSTILE: Readonly<Record<string, unknown>> = {
  'a product that overflows': { data: tiny, shape: [most, most, most] },
  'a product that is 2 to the 64th': { data: tiny, shape: [2 ** 32, 2 ** 32, 1] },
  'no rows of an overflow': { data: tiny, shape: [0, most, most] },
  'a huge shape with tiny data': { data: 'AQID', shape: [2 ** 40, 48, 8] },
  'a huge shape with tiny bytes': { data: tiny, shape: [2 ** 40, 48, 8], dtype: 'int32' },
  'a negative dimension': { data: tiny, shape: [-4, 1, 1] },
  'negative dimensions': { data: tiny, shape: [-2, -2, 1] },
  'a fraction': { data: tiny, shape: [0.5, 8, 1] },
  NaN: { data: tiny, shape: [Number.NaN, 1, 1] },
  Infinity: { data: tiny, shape: [Infinity, 1, 1] },
  'a dimension as text': { data: tiny, shape: ['4', 1, 1] },
  'two dimensions': { data: tiny, shape: [4, 1] },
  'four dimensions': { data: tiny, shape: [4, 1, 1, 1] },
  'a shape that is none': { data: tiny, shape: 4 },
  'a shape as text': { data: tiny, shape: '411' },
  'too few bytes': { data: tiny, shape: [5, 1, 1] },
  'too many bytes': { data: tiny, shape: [3, 1, 1] },
  'too few elements': { data: tiny, shape: [4, 1, 1], dtype: 'uint16' },
  'another dtype': { data: tiny, shape: [4, 1, 1], dtype: 'float32' },
  'a dtype that is no text': { data: tiny, shape: [4, 1, 1], dtype: 8 },
  'a dtype of an object': { data: tiny, shape: [4, 1, 1], dtype: 'constructor' },
  'a negative start': { data: tiny, shape: [4, 1, 1], start: -1 },
  'half a start': { data: tiny, shape: [4, 1, 1], start: 0.5 },
  'a start as text': { data: tiny, shape: [4, 1, 1], start: '0' },
  'NaN as a start': { data: tiny, shape: [4, 1, 1], start: Number.NaN },
  'a start beyond all integers': { data: tiny, shape: [4, 1, 1], start: 2 ** 53 },
  'another encoding': { data: tiny, shape: [4, 1, 1], encoding: 'hex' },
  'text that is raw': { data: 'AQID', shape: [3, 1, 1], encoding: 'raw' },
  'data of another type': { data: [1, 2, 3], shape: [3, 1, 1] },
  'no data': { shape: [0, 1, 1] },
  'no shape': { data: tiny },
  'text without a shape': 'AQID',
  'no base64': { data: 'AQ*D', shape: [3, 1, 1] },
  'base64 that ends early': { data: 'AQIDA', shape: [3, 1, 1] },
  'wide characters': { data: 'AQI\u{4e00}', shape: [3, 1, 1] },
  'base64 with white space, and too few': { data: 'AQ\nID', shape: [4, 1, 1] },
  'no base85': { data: '0000"', shape: [1, 1, 1], encoding: 'base85' },
  'base85 of too much': { data: '~~~~~', shape: [1, 1, 1], encoding: 'base85' },
  'bytes of no file': Buffer.from('hello there, I am no file'),
  'no bytes': Buffer.alloc(0),
  'Fortran order': npyFile(dict("'|u1'", 'True'), tiny),
  objects: npyFile(dict("'|O'"), tiny),
  floats: npyFile(dict("'<f4'"), Buffer.alloc(16)),
  'big-endian': npyFile(dict("'>u2'"), Buffer.alloc(8)),
  records: npyFile(dict("[('a', '|u1')]"), tiny),
  'a file of rank two': npyFile(dict("'|u1'", 'False', '(2, 2)'), tiny),
  'a file that is cut': npyFile(dict("'|u1'"), tiny.subarray(0, 3)),
  'a file of version 4': npyFile(dict("'|u1'"), tiny, 4),
  'a header that is cut': npyFile(dict("'|u1'"), tiny).subarray(0, 60),
  'the beginning of a header': npyFile(dict("'|u1'"), tiny).subarray(0, 9),
  'a huge file with tiny data': npyFile(dict("'|u1'", 'False', '(9007199254740993, 48, 8)'), tiny),
  'a file of an overflow': npyFile(dict("'|u1'", 'False', '(4294967296, 4294967296, 1)'), tiny),
  'a negative file': npyFile(dict("'|u1'", 'False', '(-2, -1, 2)'), tiny),
  'a pickle': Buffer.from('\u0080\u0004\u0095', 'latin1'),
  'a file as base64 that is cut': npy({ values: [1, 2, 3, 4], shape: [2, 1, 2], dtype: 'uint8' })
    .toString('base64')
    .slice(0, 100),
  'nrlre1 of too few bytes': 'nrlre1:uint8:2x2x2:AQID',
  'nrlre1 of another dtype': 'nrlre1:float8:1x1x3:AQID',
  'nrlre1 of a negative shape': 'nrlre1:uint8:-1x-1x3:AQID',
  'nrlre1 of a huge shape': 'nrlre1:uint8:9007199254740991x9007199254740991x2:AQID',
  'nrlre1 that ends': 'nrlre1:uint8',
  'text of an object that is cut': '{"data":"AQID","shape":[3,1',
  'text of an object without data': '{"shape":[3,1,1]}',
  'text of an object of a huge shape': '{"data":"AQID","shape":[1e300,1,1]}',
  'text of an object with raw data': '{"data":"AQID","shape":[3,1,1],"encoding":"raw"}',
  'text of an object with a shape inside': '{"data":"AQID","shape":[[3],1,1]}',
}

for (const [name, wire] of Object.entries(HOSTILE)) {
  // Alone, since what others allocate is counted too.
  test.serial(`refused, with its turn, and nothing allocated: ${name}`, async (t) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers without types may pass it
    const experts = wire as ExpertsWire
    const before = process.memoryUsage().arrayBuffers
    const good = { experts: { data: Buffer.of(1), shape: [1, 1, 1] } }
    for (const transfer of [false, true]) {
      const turns = [good, null, { experts, start: 1 }]
      const isStartWrong = name.includes('start')
      await refuses(
        t,
        concatExperts(isStartWrong ? [good, null, { experts }] : turns, { tokens: 9, gaps: 'zero', transfer }),
        { turn: 2 },
      )
      const error = await errorOf(decodeExperts(experts, { transfer }))
      t.like(error, { code: 'ERR_OFFLOOP_EXPERTS' })
      t.false('turn' in Object(error))
    }
    t.true(process.memoryUsage().arrayBuffers < before + 2 ** 20)
  })
}

test('the place in the text that is wrong is told', async (t) => {
  await refuses(t, decodeExperts({ data: 'AQ*D', shape: [3, 1, 1] }), { offset: 2 })
  await refuses(t, decodeExperts({ data: '0000"', shape: [1, 1, 1], encoding: 'base85' }), { offset: 4 })
  await refuses(t, decodeExperts('nrlre1:uint8:1x1x3:A*ID'), { offset: 20 })
  await refuses(t, decodeExperts('{"shape":[1,1,3],"data":"AQI*"}'), { offset: 28 })
  const long = `${'AQID'.repeat(100_000)}A*ID`
  await refuses(t, concatExperts([{ experts: { data: long, shape: [100_001, 1, 3] } }], { tokens: 100_001 }), {
    offset: 400_001,
    turn: 0,
  })
})

test('turns that do not go together, or not with the options', async (t) => {
  const turn = (rows: number, layers: number, topk: number, dtype: 'uint8' | 'int32' = 'uint8'): ExpertsTurn => ({
    experts: {
      data: Buffer.alloc(rows * layers * topk * (dtype === 'uint8' ? 1 : 4)),
      shape: [rows, layers, topk],
      dtype,
    },
  })
  await refuses(t, concatExperts([turn(1, 2, 3), turn(1, 3, 3)], { tokens: 2 }), { turn: 1 })
  await refuses(t, concatExperts([turn(1, 2, 3), turn(1, 2, 4)], { tokens: 2 }), { turn: 1 })
  await refuses(t, concatExperts([turn(1, 2, 3)], { tokens: 2, layers: 3 }), { turn: 0 })
  await refuses(t, concatExperts([turn(1, 2, 3)], { tokens: 2, topk: 4 }), { turn: 0 })
  await refuses(t, concatExperts([turn(1, 1, 1), turn(1, 1, 1, 'int32')], { tokens: 2, mixed: 'throw' }), { turn: 1 })
  await refuses(t, concatExperts([turn(1, 1, 1)], { tokens: 9, gaps: 256 }), {})
  await refuses(t, concatExperts([turn(1, 1, 1)], { tokens: 9, gaps: 2 ** 40 }), {})
  await refuses(t, concatExperts([turn(1, 1, 1)], { tokens: 2, lastRow: -1 }), {})
  await refuses(t, concatExperts([turn(1, 1, 1)], { tokens: 2, lastRow: 'throw' }), {})
  await refuses(t, concatExperts([turn(1, 1, 1)], { tokens: 3 }), {})
  await refuses(t, concatExperts([{ ...turn(1, 1, 1), start: -1 }], { tokens: 3 }), { turn: 0 })
  await refuses(t, concatExperts([{ ...turn(1, 1, 1), start: Number.NaN }], { tokens: 3 }), { turn: 0 })
  await refuses(t, concatExperts([null, { ...turn(1, 1, 1), tokens: 1.5 }], { tokens: 3 }), { turn: 1 })
  await refuses(t, concatExperts([turn(1, 2 ** 26, 1)], { tokens: 2 ** 40, gaps: 'zero' }), {})
})

test('wrong arguments are Node’s own errors', async (t) => {
  const experts = { data: Buffer.of(1), shape: [1, 1, 1] }
  const cases: [unknown, unknown, string, string][] = [
    [5, { tokens: 1 }, 'ERR_INVALID_ARG_TYPE', '"turns"'],
    [[5], { tokens: 1 }, 'ERR_INVALID_ARG_TYPE', '"turns[0]"'],
    [[undefined], { tokens: 1 }, 'ERR_INVALID_ARG_TYPE', '"turns[0]"'],
    [[null, { experts: 5 }], { tokens: 1 }, 'ERR_INVALID_ARG_TYPE', '"turns[1].experts"'],
    [[{ experts: null }], { tokens: 1 }, 'ERR_INVALID_ARG_TYPE', '"turns[0].experts"'],
    [[{ experts, start: '0' }], { tokens: 1 }, 'ERR_INVALID_ARG_TYPE', '"turns[0].start"'],
    [[{ experts, tokens: null }], { tokens: 1 }, 'ERR_INVALID_ARG_TYPE', '"turns[0].tokens"'],
    [[], {}, 'ERR_INVALID_ARG_TYPE', '"options.tokens"'],
    [[], undefined, 'ERR_INVALID_ARG_TYPE', '"options"'],
    [[], { tokens: -1 }, 'ERR_OUT_OF_RANGE', '"options.tokens"'],
    [[], { tokens: 1.5 }, 'ERR_OUT_OF_RANGE', '"options.tokens"'],
    [[], { tokens: 1, gaps: 'fill' }, 'ERR_INVALID_ARG_VALUE', "'options.gaps'"],
    [[], { tokens: 1, gaps: 0.5 }, 'ERR_OUT_OF_RANGE', '"options.gaps"'],
    [[], { tokens: 1, lastRow: null }, 'ERR_INVALID_ARG_VALUE', "'options.lastRow'"],
    [[], { tokens: 1, overlap: 'first' }, 'ERR_INVALID_ARG_VALUE', "'options.overlap'"],
    [[], { tokens: 1, mixed: 'keep' }, 'ERR_INVALID_ARG_VALUE', "'options.mixed'"],
    [[], { tokens: 1, layers: -1 }, 'ERR_OUT_OF_RANGE', '"options.layers"'],
    [[], { tokens: 1, topk: '8' }, 'ERR_INVALID_ARG_TYPE', '"options.topk"'],
    [[], { tokens: 1, dtype: 'float32' }, 'ERR_INVALID_ARG_VALUE', "'options.dtype'"],
    [[], { tokens: 1, start: 0 }, 'ERR_INVALID_ARG_VALUE', "'options.start'"],
    [[], { tokens: 1, transfer: 1 }, 'ERR_INVALID_ARG_TYPE', '"options.transfer"'],
    [[], { tokens: 1, signal: {} }, 'ERR_INVALID_ARG_TYPE', '"options.signal"'],
  ]
  for (const [turns, options, code, name] of cases) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers without types may pass it
    const error = await errorOf(concatExperts(turns as [], options as ConcatOptions))
    t.like(error, { code }, name)
    t.true(String(error).includes(name), String(error))
  }
  for (const wire of [5, null, undefined, true]) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers without types may pass it
    t.like(await errorOf(decodeExperts(wire as unknown as string)), { code: 'ERR_INVALID_ARG_TYPE', name: 'TypeError' })
  }
  t.like(await errorOf(decodeExperts(structuredDetached())), { code: 'ERR_INVALID_ARG_VALUE' })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers without types may pass it
  t.like(await errorOf(decodeExperts('', { tokens: 1 } as object)), { code: 'ERR_INVALID_ARG_VALUE' })
})

function structuredDetached(): Uint8Array {
  const bytes = new Uint8Array(8)
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
  return bytes
}

// ───────────────────────────── memory ─────────────────────────────

/** Bytes of ArrayBuffers that are made before a call returns. */
function measured<T>(start: () => T): { readonly call: T; readonly allocated: number } {
  // Twice: memory that is unreachable is given back by the next collection.
  globalThis.gc?.()
  globalThis.gc?.()
  const before = process.memoryUsage().arrayBuffers
  const call = start()
  return { call, allocated: process.memoryUsage().arrayBuffers - before }
}

function claimed(turns: readonly unknown[], length: number): unknown[] {
  return new Proxy([...turns], { get: (target, key) => (key === 'length' ? length : Reflect.get(target, key)) })
}

for (const [what, turnsOf] of [
  ['sparse list', (length: number) => Object.assign([null], { length })],
  ['proxy', (length: number) => claimed([null], length)],
  ['list of a turn and holes', (length: number) => Object.assign([{ experts: 'QUJD' }], { length })],
  ['list of a turn that is refused', (length: number) => claimed([{ experts: 5 }], length)],
] as const) {
  for (const length of [1e6, 1e8, 2 ** 32 - 1]) {
    test.serial(
      `a ${what} that claims ${length} turns is refused at the first wrong one, without memory for the rest`,
      async (t) => {
        const turns = turnsOf(length)
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the list only claims to have turns
        const { call, allocated } = measured(() => concatExperts(turns as ExpertsTurn[], { tokens: 4 }))
        t.like(await errorOf(call), { code: 'ERR_INVALID_ARG_TYPE' })
        t.true(allocated < 1e6, `${allocated} bytes`)
      },
    )
  }
}

test.serial('nulls behind the last turn need no memory, and those before it are counted', async (t) => {
  const turn = { experts: { data: Buffer.of(7), shape: [1, 1, 1] } }
  const turns = [turn, ...Array.from({ length: 1e6 }, () => null)]
  const { call, allocated } = measured(() => concatExperts(turns, { tokens: 1 }))
  t.deepEqual([...(await call).data], [7])
  t.true(allocated < 1e6, `${allocated} bytes`)
  const nulls = Array.from({ length: 5000 }, () => null)
  for (const transfer of [false, true]) {
    const last = { experts: { data: new Uint8Array([7]), shape: [1, 1, 1] }, start: 1 }
    const wrong = { ...turn, tokens: 1.5 }
    t.deepEqual([...(await concatExperts([...nulls, last, null], { tokens: 2, gaps: 'zero', transfer })).data], [0, 7])
    await refuses(t, concatExperts([...nulls, turn, ...nulls, wrong], { tokens: 2, transfer }), { turn: 10_001 })
  }
})

test('what is handed over is taken when the call goes on, and not when it is refused', async (t) => {
  const rows = 100_000
  const make = (): Buffer<ArrayBuffer> => own(Buffer.alloc(rows, 7))
  const turn = (data: Uint8Array, start: number): ExpertsTurn => ({ experts: { data, shape: [rows, 1, 1], start } })
  const [first, second] = [make(), make()]
  const refused = [
    concatExperts([turn(first, 0), turn(second, rows)], { tokens: 3 * rows, transfer: true }),
    concatExperts([turn(first, 0), turn(second, -1)], { tokens: 2 * rows, transfer: true }),
    concatExperts([turn(first, 0), { experts: { data: second, shape: [1, 1, 1] } }], { tokens: rows, transfer: true }),
    concatExperts([turn(first, 0)], { tokens: 2 ** 52, gaps: 'zero', transfer: true }),
    concatExperts([turn(first, 0)], { tokens: rows, transfer: true, signal: AbortSignal.abort() }),
  ]
  t.deepEqual([first.length, second.length], [rows, rows])
  for (const call of refused) t.not(await errorOf(call), 'no error')
  const call = concatExperts([turn(first, 0), turn(second, rows)], { tokens: 2 * rows + 1, transfer: true })
  t.deepEqual([first.length, second.length], [0, 0])
  t.true((await call).data.subarray(0, -1).every((value) => value === 7))
})

test('memory that stands in the list twice, is part of another, pooled, or shared is copied', async (t) => {
  const rows = 200_000
  const twice = own(Buffer.alloc(rows, 3))
  const part = own(Buffer.alloc(2 * rows, 4)).subarray(rows)
  const shared = new Uint8Array(new SharedArrayBuffer(rows)).fill(5)
  const pooled = Buffer.from('\u0006\u0006')
  const at = (data: Uint8Array, start: number): ExpertsTurn => ({
    experts: { data, shape: [data.length, 1, 1], start },
  })
  const turns = [at(twice, 0), at(twice, rows), at(part, 2 * rows), at(shared, 3 * rows), at(pooled, 4 * rows)]
  const { data } = await concatExperts(turns, { tokens: 4 * rows + 3, transfer: true })
  t.deepEqual([twice.length, part.length, shared.length, pooled.length], [rows, rows, rows, 2])
  const expected = Buffer.concat([twice, twice, part, shared, pooled, Buffer.of(0)])
  t.true(expected.equals(data))
})

test('what the caller does after the call changes nothing', async (t) => {
  const rows = 400_000
  const data = Buffer.alloc(rows, 1)
  const shape = [rows, 1, 1]
  const turn = { experts: { data, shape }, start: 0 }
  const turns = [turn]
  const call = concatExperts(turns, { tokens: rows })
  data.fill(2)
  shape[0] = 1
  turn.start = 5
  turns.length = 0
  t.true((await call).data.every((value) => value === 1))
})

test('a getter may do whatever it likes', async (t) => {
  const first = own(Buffer.alloc(400_000, 1))
  const hostile = {
    get experts(): ExpertsWire {
      structuredClone(first.buffer, { transfer: [first.buffer] })
      return { data: Buffer.of(1), shape: [1, 1, 1] }
    },
  }
  const turns = [{ experts: { data: first, shape: [400_000, 1, 1] } }, hostile]
  t.like(await errorOf(concatExperts(turns, { tokens: 400_000, transfer: true })), { code: 'ERR_INVALID_ARG_VALUE' })
  const broken = new Error('mine')
  const throwing = {
    get experts(): ExpertsWire {
      throw broken
    },
  }
  t.is(await errorOf(concatExperts([throwing], { tokens: 1 })), broken)
})

test('an abort rejects with the signal’s reason', async (t) => {
  const reason = new Error('enough')
  const experts = { data: Buffer.alloc(3_000_000).toString('base64'), shape: [3_000_000, 1, 1] }
  t.is(await errorOf(decodeExperts(experts, { signal: AbortSignal.abort(reason) })), reason)
  const controller = new AbortController()
  const calls = Array.from({ length: 20 }, () => errorOf(decodeExperts(experts, { signal: controller.signal })))
  controller.abort(reason)
  // Those that a quick machine has done by then are done.
  for (const error of await Promise.all(calls)) t.true(error === reason || error === 'no error')
  const long = new AbortController()
  const call = errorOf(
    decodeExperts({ data: 'A'.repeat(16_000_000), shape: [12_000_000, 1, 1] }, { signal: long.signal }),
  )
  long.abort(reason)
  t.is(await call, reason)
})

// ───────────────────────────── lifted ─────────────────────────────

for (const [size, rows] of [
  ['small', 6],
  ['large', 60_000],
] as const) {
  test(`every form is lifted out of a body, ${size}`, async (t) => {
    const random = new Random(rows)
    const given = randomRows(random, rows, 1, 2, 'int16')
    for (const [name, wire] of Object.entries(formsOf(given, 7))) {
      // Bytes have no JSON.
      if (JSON.stringify(wire).includes('{"type":"Buffer"') || Buffer.isBuffer(wire)) continue
      const text = JSON.stringify({ choices: [{ id: 1, routed_experts: wire }, { routed_experts: null }, {}] })
      const hints = { layers: 1, topk: 2, start: 11, ...(name === 'headerless' && { dtype: 'int16' as const }) }
      const lift = { '/choices/*/routed_experts': { experts: hints } }
      const start = name.startsWith('an object') || name.startsWith('the text') ? 7 : 11
      for (const body of [
        text,
        text.replaceAll('/', String.raw`\/`),
        text.replace('routed', String.raw`rout\u0065d`),
      ]) {
        for (const transfer of [false, true]) {
          const value: { choices: { id?: number; routed_experts: RoutedExperts }[] } = await parse(
            own(Buffer.from(body)),
            { lift, transfer },
          )
          const [first, ...others] = value.choices
          t.is(first?.id, 1)
          t.deepEqual(first && shown(first.routed_experts), expectedOf(given, start), name)
          t.true(isDeepStrictEqual(others, [{ routed_experts: null }, {}]))
        }
      }
    }
  })
}

test('what is lifted can be handed over to be concatenated', async (t) => {
  const rows = 300_000
  const body = Buffer.from(
    JSON.stringify({ experts: { data: Buffer.alloc(rows, 9).toString('base64'), shape: [rows, 1, 1] } }),
  )
  const { experts } = await parse<{ experts: RoutedExperts }>(own(body), {
    lift: { '/experts': 'experts' },
    transfer: true,
  })
  checkMemory(t, experts.data)
  t.is(experts.data.length, rows)
  const { data } = await concatExperts([{ experts }], { tokens: rows, transfer: true })
  t.is(experts.data.length, 0)
  t.true(data.every((value) => value === 9))
})

test('several payloads in one body, split from it', async (t) => {
  const wires = [[1, 2], [3], []].map((values) => ({
    data: Buffer.from(values).toString('base64'),
    shape: [values.length, 1, 1],
  }))
  const { json, lifted } = await split(Buffer.from(JSON.stringify({ wires })), { lift: { '/wires/*': 'experts' } })
  t.is(json.toString(), '{"wires":[null,null,null]}')
  t.deepEqual(
    lifted.map(({ pointer, value }) => [pointer, value !== null && 'shape' in value && [...value.data]]),
    [
      ['/wires/0', [1, 2]],
      ['/wires/1', [3]],
      ['/wires/2', []],
    ],
  )
})

test('what cannot be lifted is refused with its pointer, or kept', async (t) => {
  const call = (body: string, onMismatch: 'keep' | 'throw' = 'throw'): Promise<unknown> =>
    parse(Buffer.from(body), { lift: { '/*/x': 'experts' }, onMismatch })
  await refuses(t, call('{"a~/":{"x":"AQID"}}'), { pointer: '/a~0~1/x', offset: 12 })
  await refuses(t, call('[0,{"x":{"data":"AQ*D","shape":[1,1,3]}}]'), { pointer: '/1/x', offset: 19 })
  await refuses(t, call('[{"x":{"data":"AQID","shape":[1,1,4]}}]'), { pointer: '/0/x', offset: 6 })
  await refuses(t, call('[{"x":"{\\"data\\":1}"}]'), { pointer: '/0/x', offset: 6 })
  for (const malformed of [
    '"{\\"data\\":1}"',
    '{"data":"AQ*D","shape":[1,1,3]}',
    '{"data":"AQID","shape":[1,1,4]}',
    '{}',
  ]) {
    t.deepEqual(await call(`[{"x":${malformed}}]`, 'keep'), JSON.parse(`[{"x":${malformed}}]`), malformed)
  }
  for (const other of ['1', 'true', '[1,2]']) {
    t.like(await errorOf(call(`[{"x":${other}}]`)), { code: 'ERR_OFFLOOP_LIFT', pointer: '/0/x' })
    t.deepEqual(await call(`[{"x":${other}}]`, 'keep'), JSON.parse(`[{"x":${other}}]`))
  }
  t.deepEqual(await call('[{"x":null},{}]'), [{ x: null }, {}])
})

test('wrong hints of a lift are Node’s own errors', async (t) => {
  const call = (lift: unknown): Promise<unknown> =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers without types may pass it
    errorOf(parse(Buffer.from('{}'), { lift: { '/a': lift } as Record<string, 'raw'> }))
  t.like(await call({ experts: 5 }), { code: 'ERR_INVALID_ARG_TYPE' })
  t.like(await call({ experts: { layers: -1 } }), { code: 'ERR_OUT_OF_RANGE' })
  t.like(await call({ experts: { rows: 1 } }), { code: 'ERR_INVALID_ARG_VALUE' })
  t.like(await call({ expert: {} }), { code: 'ERR_INVALID_ARG_VALUE' })
  t.like(await call({}), { code: 'ERR_INVALID_ARG_VALUE' })
  t.like(await call('expert'), { code: 'ERR_INVALID_ARG_VALUE' })
})
