/**
 * Segments that are printed while the capture goes on. Encoders with small rooms have many segments, and are compared with
 * encoders whose tapes are printed at the end.
 */

import test, { type ExecutionContext } from 'ava'
import { CaptureContext } from '../src/capture/context.ts'
import { NO_RULES } from '../src/capture/rules.ts'
import { requestFunction } from '../src/capture/learning.ts'
import { Vocabulary } from '../src/capture/vocabulary.ts'
import { madeBytes, type TapeRooms } from '../src/capture/segment.ts'
import { SegmentPrinter } from '../src/capture/segment-printer.ts'
import { DEFAULT_CONFIG, type EncodeConfig } from '../src/encode/config.ts'
import { EncoderCore } from '../src/encode/encoder.ts'
import { configure, encodeSync, rawJson, stats, type Bytes } from '../src/index.ts'
import { Layout, SmallOutput } from '../src/runtime/native.ts'
import { FUZZ } from './fixtures/extent.ts'
import { runScenario } from './fixtures/child.ts'
import { LIMITS, Random, randomMix, randomTable, randomText, randomValue } from './fixtures/values.ts'

/** A configuration under which JSON.stringify gets nothing. */
const WALKED = { ...DEFAULT_CONFIG, rules: { ...NO_RULES, maxDepth: 1000 } }

/** A segment has room for the largest generated function, the longest string, and the characters that are joined. */
const SMALL = { words: 4400, doubles: 4400, runs: 64, bytes: 1 << 19, rope: (1 << 17) + 4096 }
const ROOMS: TapeRooms = { small: { ...SMALL }, large: { ...SMALL }, texts: { ...SMALL, bytes: 1 << 20 } }

const CONFIGS: Readonly<Record<string, EncodeConfig>> = {
  compact: WALKED,
  newline: { ...WALKED, newline: true },
  sorted: { ...WALKED, layout: Layout.SortedKeys },
  indented: { ...WALKED, gap: '  ' },
  'sorted and indented': { ...WALKED, layout: Layout.SortedKeys, gap: '\t', newline: true },
}

/** Segments that printers got. */
let added = 0
// oxlint-disable-next-line typescript/unbound-method -- it is called with `this` below
const { add } = SegmentPrinter.prototype
SegmentPrinter.prototype.add = function count(this: SegmentPrinter, ...args): void {
  added += 1
  add.apply(this, args)
}

function addedBy<T>(call: () => T): T {
  added = 0
  return call()
}

function same(t: ExecutionContext, actual: Bytes, expected: Bytes, message: string): void {
  t.true(actual.equals(expected), message)
}

type Make = (random: Random, limits: typeof LIMITS) => unknown

/** Makes a value that has JSON. */
function valid(random: Random, make: Make): unknown {
  for (;;) {
    const seed = random.int(2 ** 31)
    try {
      // Values may have state: the one that is returned has not been read.
      if (JSON.stringify(make(new Random(seed), LIMITS)) !== undefined) return make(new Random(seed), LIMITS)
    } catch {
      // It throws, as some values do.
    }
  }
}

/** Makes the same value for each call: of every kind, with 30,000 words and more. */
function largeValue(seed: number): unknown {
  const random = new Random(seed)
  return [
    random.list(400, () => valid(random, randomValue)),
    valid(random, randomTable),
    random.list(9000, (index) => index % 7),
    { doubles: random.list(9000, () => random.fraction()), text: randomText(random).repeat(50) },
    random.list(2000, (index) => rawJson(index % 9 === 0 ? '[ 1,\n2 ]' : `{"b":${index},"a":0}`)),
    valid(random, randomMix),
    random.list(3000, () => randomText(random)),
    [new Float32Array(3000).fill(0.5), new Date(0), null, [], {}, [[], [{}]]],
  ]
}

/** Returns the result of each way, or its error. */
async function outcomeOf(encode: () => Bytes | Promise<Bytes>): Promise<Bytes | string> {
  try {
    return await encode()
  } catch (error) {
    return String(error)
  }
}

for (const [name, config] of Object.entries(CONFIGS)) {
  test.serial(`segments join to the whole: ${name}`, async (t) => {
    const small = new EncoderCore(ROOMS)
    const whole = new EncoderCore()
    const rounds = Math.max(6, Math.ceil(FUZZ / 2000))
    for (let seed = 1; seed <= rounds; seed += 1) {
      const expected = await whole.encode(largeValue(seed), config, undefined)
      const actual = await addedBy(() => small.encode(largeValue(seed), config, undefined))
      same(t, actual, expected, `encode, seed ${seed}`)
      t.true(6 < added, `${added} segments are printed`)
      same(t, small.encodeSync(largeValue(seed), config), expected, `encodeSync, seed ${seed}`)
    }
  })
}

test.serial('plain values are as JSON.stringify has them', async (t) => {
  const core = new EncoderCore(ROOMS)
  for (let seed = 1; seed < 8; seed += 1) {
    const random = new Random(seed)
    const value: unknown = JSON.parse(
      JSON.stringify([randomTable(random, LIMITS), random.list(20_000, () => ({ a: [] }))]),
    )
    const expected = Buffer.from(JSON.stringify(value))
    same(t, await core.encode(value, WALKED, undefined), expected, `seed ${seed}`)
  }
})

test.serial('rows are the same, of arrays, iterators and streams', async (t) => {
  const core = new EncoderCore(ROOMS)
  const rows = new Random(1).list(3000, (index) => ({ index, raw: rawJson('[1,\n2]'), text: 'é'.repeat(index % 99) }))
  const expected = Buffer.from(
    rows.map(({ index, text }) => `{"index":${index},"raw":[1, 2],"text":"${text}"}\n`).join(''),
  )
  async function* stream(): AsyncGenerator {
    for (const row of rows) {
      if (row.index % 500 === 0) await new Promise((resolve) => setImmediate(resolve))
      yield row
    }
  }
  for (const list of [rows, rows.values(), stream()]) {
    const lines = await addedBy(() => core.encodeLines(list, WALKED, undefined, undefined))
    same(t, lines, expected, 'the rows')
    t.true(3 < added)
  }
  const sorted = { ...WALKED, layout: Layout.SortedKeys }
  same(t, await core.encodeLines(rows, sorted, undefined, undefined), expected, 'keys are in order')
  // A bad row leaves the tape.
  const bad: unknown[] = []
  const some = await addedBy(() => core.encodeLines([...rows, 1n], WALKED, (error) => bad.push(error), undefined))
  same(t, some, expected, 'the good rows')
  t.deepEqual([bad.length, added], [1, 0])
})

test.serial('bytes that are taken wait for the end of the capture', async (t) => {
  const core = new EncoderCore(ROOMS)
  const make = (): unknown[] =>
    Array.from({ length: 40 }, (_, index) =>
      index % 5 === 0 ? Buffer.alloc(70_000, index) : Array.from({ length: 3000 }, (_each, at) => at),
    )
  const value = make()
  const shared = Buffer.alloc(80_000, 7)
  value.push(shared, { again: shared })
  const expected = Buffer.from(JSON.stringify(value))
  const bytes = await addedBy(() => core.encode(value, { ...WALKED, transfer: true }, undefined))
  same(t, bytes, expected, 'the bytes')
  t.true(6 < added)
  t.is(shared.length, 0, 'they were taken')
  const refused = [...make(), 1n]
  await t.throwsAsync(async () => core.encode(refused, { ...WALKED, transfer: true }, undefined), {
    instanceOf: TypeError,
  })
  t.true(refused[0] instanceof Buffer && refused[0].length === 70_000, 'nothing was taken')
})

test.serial('a value whose code throws leaves no trace in the next one', async (t) => {
  const core = new EncoderCore(ROOMS)
  const numbers = Array.from({ length: 50_000 }, (_, index) => index)
  const texts = Array.from({ length: 50_000 }, (_, index) => `text ${index}`)
  const expected = Buffer.from(JSON.stringify(texts))
  const reason = new Error('in the middle')
  const throwing = {
    get late(): unknown {
      throw reason
    },
  }
  for (let round = 0; round < 20; round += 1) {
    // Tasks print the numbers still.
    t.is(await outcomeOf(() => core.encode([numbers, throwing], WALKED, undefined)), String(reason))
    const [first, second] = [core.encode(texts, WALKED, undefined), core.encode(texts, WALKED, undefined)]
    t.throws(() => core.encode([numbers, throwing], WALKED, undefined), { is: reason })
    t.throws(() => core.encodeSync([numbers, throwing], WALKED), { is: reason })
    same(t, core.encodeSync(texts, WALKED), expected, 'at once')
    same(t, await first, expected, 'the first')
    same(t, await second, expected, 'the second')
  }
})

test.serial('a value whose code encodes others is printed as it is', async (t) => {
  const core = new EncoderCore(ROOMS)
  const numbers = Array.from({ length: 30_000 }, (_, index) => index)
  const inner: Promise<Bytes>[] = []
  const value = Array.from({ length: 6 }, () => ({
    toJSON(): unknown {
      inner.push(Promise.resolve(core.encode(numbers, WALKED, undefined)))
      return [core.encodeSync(numbers, WALKED).length, numbers]
    },
  }))
  const text = JSON.stringify(numbers)
  const bytes = await core.encode(value, WALKED, undefined)
  t.is(bytes.toString(), `[${value.map(() => `[${text.length},${text}]`).join(',')}]`)
  for (const each of await Promise.all(inner)) t.is(each.toString(), text)
})

test.serial('an aborted call rejects with the reason at once, and the next one is well', async (t) => {
  const core = new EncoderCore(ROOMS)
  const numbers = Array.from({ length: 200_000 }, (_, index) => index)
  const expected = Buffer.from(JSON.stringify(numbers))
  for (let round = 0; round < 20; round += 1) {
    const controller = new AbortController()
    const call = core.encode(numbers, WALKED, controller.signal)
    const other = core.encode(numbers, WALKED, new AbortController().signal)
    if (round % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
    const reason = new Error('enough')
    controller.abort(reason)
    const outcome = await outcomeOf(() => call)
    t.true(outcome === String(reason) || (outcome instanceof Buffer && outcome.equals(expected)))
    same(t, await other, expected, 'the other one')
  }
  const inside = new AbortController()
  const aborting = [numbers, { toJSON: () => inside.abort('inside') }, numbers]
  t.is(await outcomeOf(() => core.encode(aborting, WALKED, inside.signal)), 'inside')
})

/** Rollouts of 80 MB of JSON, in parts. Before each part all tasks have ended, so that printers keep up. */
function pausing(): { value: unknown; expected: number } {
  const part = Array.from({ length: 500_000 }, (_, index) => index % 1000)
  const size = JSON.stringify(part).length
  const parts = Array.from({ length: 44 }, () => ({
    toJSON(): unknown {
      const until = performance.now() + 2000
      while (stats().running !== 0 && performance.now() < until);
      return part
    },
  }))
  return { value: parts, expected: parts.length * (size + 1) + 1 }
}

test.serial('a tape holds 32 MiB of segments at most, where printers keep up', async (t) => {
  configure({ maxIdleBytes: 0 })
  const { value, expected } = pausing()
  t.true(80e6 < expected)
  for (const encode of ['encode', 'encodeSync'] as const) {
    const before = madeBytes()
    const bytes = await addedBy(() => new EncoderCore()[encode](value, WALKED, undefined))
    t.is(bytes.length, expected)
    t.true(40 < added, `${encode}: ${added} segments`)
    const made = (madeBytes() - before) / 2 ** 20
    t.true(made <= 32, `${encode}: ${made} MiB of segments`)
  }
  configure({ maxIdleBytes: 128 * 2 ** 20 })
})

test.serial('a tape that cannot become small enough is refused soon', (t) => {
  const tape = new CaptureContext(new Vocabulary(requestFunction), new SmallOutput(), ROOMS)
  tape.maxBytes = 5000
  const error = t.throws(
    () => {
      for (let index = 0; index < 100_000; index += 1) {
        tape.room()
        tape.number(index)
      }
    },
    { code: 'ERR_OFFLOOP_TOO_LARGE' },
  )
  t.regex(error?.message ?? '', /5000/)
  t.true(tape.written < 40_000, `${tape.written} words`)
  tape.reset()
  t.is(tape.maxBytes, Infinity)
  t.is(tape.expectedSize, 0)
})

test.serial('the size of what is printed is known', async (t) => {
  const tape = new CaptureContext(new Vocabulary(requestFunction), new SmallOutput(), ROOMS)
  tape.early = { hasRows: false, isSync: true }
  tape.maxBytes = 1e6
  for (let index = 0; index < 50_000; index += 1) {
    tape.room()
    tape.number(1234)
  }
  const rest = tape.w
  t.is(tape.expectedSize, (50_000 - rest) * 5 - 1 + rest * 6)
  t.true(tape.leastSize <= 50_000 * 5)
  t.is(tape.finish().printedSize, 50_000 * 5 - 1)
  await t.notThrowsAsync(async () => tape.printer?.end(undefined))
  tape.reset()
})

test.serial('small values are printed at the end', async (t) => {
  const value = Array.from({ length: 5000 }, (_, index) => ({ index }))
  const bytes = await addedBy(() => new EncoderCore().encode(value, WALKED, undefined))
  same(t, bytes, encodeSync(value), 'the value')
  t.is(added, 0)
})

for (const name of ['exhausted', 'terminated']) {
  test.serial(`a process survives: ${name}`, async (t) => {
    const ended = await runScenario('segments', name)
    t.is(ended.stdout, 'played\n', ended.stderr)
  })
}
