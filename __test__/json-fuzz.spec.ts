/** Random values against JSON.stringify. `OFFLOOP_FUZZ=<number>` says how many, `OFFLOOP_SEED=<number>` repeats one stretch of them. */

import { inspect } from 'node:util'
import test from 'ava'
import * as fc from 'fast-check'
import { createEncoder, encodeSync, type Encoder } from '../src/index.ts'
import {
  difference,
  expectedLinesOf,
  expectedOf,
  patch,
  withEncode,
  withEncoder,
  withEncoderLater,
  withEncodeSync,
  withLines,
  type Outcome,
  type Subject,
} from './fixtures/stringify.ts'
import { LIMITS, Random, randomMix, randomTable, randomValue, type Limits } from './fixtures/values.ts'
import { FUZZ } from './fixtures/extent.ts'

const TOTAL = FUZZ
const ONLY = process.env['OFFLOOP_SEED']

/** What values are made by, and how many of them one encoder sees. */
interface Kind {
  readonly name: string
  readonly share: number
  readonly stretch: number
  readonly make: (random: Random, limits: Limits) => unknown
}

const KINDS: readonly Kind[] = [
  { name: 'values of every kind', share: 0.966, stretch: 1000, make: randomValue },
  { name: 'long arrays of one shape', share: 0.002, stretch: 30, make: randomTable },
  { name: 'long arrays of ever new shapes', share: 0.002, stretch: 30, make: randomMix },
]

/** What programs do to built-ins, once in a while. */
const PATCHES: readonly (() => () => void)[] = [
  () => patch(Array.prototype, 'toJSON', { value: (key: string) => `array ${key}`, writable: true }),
  () => patch(Object.prototype, 'toJSON', { value: (key: string) => `object ${key}`, writable: true }),
  () => patch(Object.prototype, 'polluted', { value: 'everywhere', writable: true, enumerable: true }),
  () => patch(String.prototype, 'toJSON', { value: () => 'never called' }),
  () => patch(BigInt.prototype, 'toJSON', { value: () => 'big', writable: true }),
  () => patch(Function.prototype, 'toJSON', { value: () => 'function', writable: true }),
  () => patch(Array.prototype, 3, { value: 'hole', writable: true }),
  () => patch(Date.prototype, 'toISOString', { value: () => 'iso', writable: true }),
]

interface Disagreement {
  readonly how: string
  readonly text: string
}

function report(how: string, expected: Outcome, actual: Outcome): Disagreement | undefined {
  const text = difference(expected, actual)
  return text === undefined ? undefined : { how, text }
}

/** One value by one way; which depends on its number. */
async function compareOne(subject: Subject, index: number, encoder: Encoder): Promise<Disagreement | undefined> {
  const expected = expectedOf(subject)
  switch (index % 8) {
    case 0:
      return report('encode', expected, await withEncode(subject))
    case 1:
      return report('encodeSync', expected, withEncodeSync(subject))
    case 2:
      return report('encode of an encoder', expected, await withEncoderLater(subject, encoder))
    case 3:
      return report('encodeLines', expectedLinesOf(subject, 2), await withLines(subject, 2))
    default:
      return report('encodeSync of an encoder', expected, withEncoder(subject, encoder))
  }
}

/** Values of one seed, and what is wrong with the first that is not as it should be. */
async function playStretch(kind: Kind, seed: number, length: number): Promise<string | undefined> {
  const random = new Random(seed)
  const encoder = createEncoder()
  const isPatched = random.once(8)
  const change = random.pick(PATCHES)
  for (let index = 0; index < length; index += 1) {
    const own = random.int(2 ** 31)
    const subject = subjectOf(kind, own, LIMITS, isPatched && 100 < index % 300 ? change : undefined)
    const found = await compareOne(subject, index, encoder)
    if (found !== undefined) {
      const where = `${kind.name}, OFFLOOP_SEED=${seed}, value ${index} (${own}) by ${found.how}`
      return `${where}: ${found.text}\n${shrunk(kind, own)}`
    }
  }
  return undefined
}

function subjectOf(kind: Kind, seed: number, limits: Limits, change: (() => () => void) | undefined): Subject {
  return { make: () => kind.make(new Random(seed), limits), patch: change && (() => change()) }
}

/** The smallest value from the same seed that fails with nothing learned, if one does. */
function shrunk(kind: Kind, seed: number): string {
  for (let depth = 0; depth <= LIMITS.depth; depth += 1) {
    for (const length of [1, 2, 4, 8, 16, 32, 60]) {
      const subject = subjectOf(kind, seed, { depth, length }, undefined)
      const text = difference(expectedOf(subject), withEncoder(subject, createEncoder()))
      if (text !== undefined)
        return `alone: ${inspect(
          subject.make(() => undefined),
          { depth: 8 },
        ).slice(0, 3000)}\n${text}`
    }
  }
  return 'It does not fail alone: what was learned from those before it matters.'
}

for (const kind of KINDS) {
  const count = Math.ceil((TOTAL * kind.share) / kind.stretch)
  const seeds = ONLY === undefined ? Array.from({ length: count }, (_, index) => index + 1) : [Number(ONLY)]
  test(`${kind.name}: the bytes and errors of JSON.stringify`, async (t) => {
    t.timeout(600_000 + TOTAL * 10)
    for (const seed of seeds) {
      const found = await playStretch(kind, seed, kind.stretch)
      if (found !== undefined) return t.fail(found)
    }
    return t.pass()
  })
}

test('fast-check finds no value that encodes otherwise, alone or learned', (t) => {
  const shared = createEncoder()
  const anything = fc.anything({
    withBigInt: true,
    withBoxedValues: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withObjectString: true,
    withSet: true,
    withSparseArray: true,
    withTypedArray: true,
    stringUnit: 'binary',
  })
  const property = fc.property(
    fc.oneof(anything, fc.array(fc.string({ unit: 'binary' })), fc.array(fc.double())),
    (value) => {
      const subject: Subject = { make: () => value }
      const expected = expectedOf(subject)
      for (const actual of [withEncoder(subject, shared), withEncodeSync(subject)]) {
        const text = difference(expected, actual)
        if (text !== undefined) throw new Error(text)
      }
    },
  )
  t.notThrows(() => fc.assert(property, { numRuns: Math.ceil(TOTAL * 0.03) }))
})

test('what is encoded is read back as JSON.parse would have it', (t) => {
  const property = fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
    t.deepEqual(JSON.parse(encodeSync(value).toString()), JSON.parse(JSON.stringify(value)))
  })
  t.notThrows(() => fc.assert(property, { numRuns: 1000 }))
})
