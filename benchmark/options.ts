/**
 * What encoders do beyond JSON.stringify: typed arrays against orjson with the same NumPy arrays, fragments, rows, sorted
 * keys. Every output is checked before it is timed. `npm run bench -- options`
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'safe-stable-stringify'
import { encode, encodeLines, rawJson } from '../src/index.ts'
import { many, Random, SHAPES } from './documents.ts'
import {
  besideHeap,
  median,
  report,
  runOf,
  sum,
  table,
  takeTurns,
  type Contender,
  type HeapCase,
  type Turns,
} from './measure.ts'
import { startSnake } from './snake.ts'

const ELEMENTS = 1e6
const TURNS: Turns = { budgetMs: 2000, leastRounds: 2, leastRunMs: 1, warmMs: 300 }
const SNAKE_RUNS = 5

const ARRAYS: readonly (readonly [dtype: string, make: (random: Random) => NodeJS.TypedArray])[] = [
  ['int32', (random) => Int32Array.from({ length: ELEMENTS }, () => (random.unit() - 0.5) * 2 ** 32)],
  ['uint16', (random) => Uint16Array.from({ length: ELEMENTS }, () => random.below(65_536))],
  ['uint8', (random) => Uint8Array.from({ length: ELEMENTS }, () => random.below(256))],
  ['float32', (random) => Float32Array.from({ length: ELEMENTS }, () => (random.unit() - 0.5) * 1e4)],
  ['float64', (random) => Float64Array.from({ length: ELEMENTS }, () => (random.unit() - 0.5) * 1e4)],
]

const snake = await startSnake('options.py')
const sections = [
  `## Typed arrays of 10⁶\n\nAs arrays of numbers. JSON.stringify gets \`Array.from\` of them, which is not timed. orjson: CPU time of \`dumps\` with OPT_SERIALIZE_NUMPY of the same array, in the same rounds (${snake?.versions ?? 'no Python'}).`,
  table(await arrays()),
  `## Others\n\nBusy is the mean of the loop's time for a call, collections included; relief is the other's sum ÷ ours.`,
  table(await othersTable()),
]
snake?.stop()
report('JSON out, options', [...sections, ...(await besideHeap([...heapArrays(), ...heapOthers()]))])

function heapArrays(): HeapCase[] {
  return ARRAYS.map(([dtype, make]) => ({
    name: `10⁶ elements, ${dtype}`,
    make: () => {
      const [theirs, ours] = arrayWays(make(new Random(1)))
      return { plain: theirs, ours }
    },
  }))
}

function heapOthers(): HeapCase[] {
  return others().map(({ what, make }) => ({
    name: what,
    make: () => {
      const { theirs, ours } = make()
      return { plain: theirs, ours }
    },
  }))
}

async function arrays(): Promise<string[][]> {
  const rows = [
    ['elements', 'MB', 'JSON.stringify busy ms', 'encode busy ms', 'encode latency ms', 'orjson ms', 'orjson ÷ encode'],
  ]
  for (const [dtype, make] of ARRAYS) {
    const array = make(new Random(1))
    const [theirs, ours, plain] = arrayWays(array)
    const printed = await printedBySnake(dtype, array)
    const bytes = await encode(array, { typedArrays: 'array' })
    const isSame = (text: Buffer): boolean => JSON.stringify(numbers(array, text)) === JSON.stringify(plain)
    if (!isSame(bytes) || (printed !== undefined && !isSame(printed))) throw new Error(`${dtype}: other numbers`)
    const [engine, own] = await takeTurns([theirs, ours], TURNS)
    const snakeMs = await inRounds(ours)
    rows.push([
      dtype,
      (bytes.length / 1e6).toFixed(2),
      mean(engine?.busyMs),
      mean(own?.busyMs),
      median(snakeMs.ours).toFixed(2),
      snakeMs.theirs.length === 0 ? '' : median(snakeMs.theirs).toFixed(2),
      snakeMs.theirs.length === 0 ? '' : `${(median(snakeMs.theirs) / median(snakeMs.ours)).toFixed(2)}×`,
    ])
  }
  return rows
}

/** JSON.stringify of the numbers, encode of the array, and the numbers. */
function arrayWays(array: NodeJS.TypedArray): readonly [theirs: Contender, ours: Contender, plain: number[]] {
  const plain = Array.from<number | bigint, number>(Array.prototype.slice.call(array), Number)
  return [
    { name: 'JSON.stringify', run: async () => Buffer.from(JSON.stringify(plain)) },
    { name: 'encode', run: () => encode(array, { typedArrays: 'array' }) },
    plain,
  ]
}

/** What orjson makes of the same array. */
async function printedBySnake(dtype: string, array: NodeJS.TypedArray): Promise<Buffer | undefined> {
  if (snake === undefined) return undefined
  const path = join(snake.folder, dtype)
  writeFileSync(path, Buffer.from(array.buffer))
  await snake.ask(`${dtype} ${path}`)
  return readFileSync(`${path}.json`)
}

/** What was printed, read back as elements of the same kind. */
function numbers(array: NodeJS.TypedArray, text: Buffer): readonly number[] {
  const read: unknown = JSON.parse(text.toString())
  if (!Array.isArray(read)) throw new TypeError('no array')
  return array instanceof Float32Array ? Array.from(Float32Array.from(read)) : read
}

/** A call of ours, calls of theirs, and so on. */
async function inRounds(contender: Contender): Promise<{ readonly ours: number[]; readonly theirs: number[] }> {
  const ours: number[] = []
  const theirs: number[] = []
  for (let round = 0; round < SNAKE_RUNS * 4; round += 1) {
    ours.push((await runOf(contender, 1)).wallMs)
    if (snake !== undefined) theirs.push(Number(await snake.ask('run')))
  }
  return { ours, theirs }
}

interface Other {
  readonly what: string
  readonly make: () => { readonly theirs: Contender; readonly ours: Contender; readonly expected: Buffer | undefined }
}

/** What is compared with others than JSON.stringify alone. Values are made when a row is due. */
function others(): Other[] {
  return [
    {
      what: '1,000 fragments of 10 KB',
      make: () => {
        const parts = many(1000, new Random(2), (random, id) => ({ id, text: random.hex(9900) }))
        const raws = parts.map((part) => rawJson(JSON.stringify(part)))
        return {
          expected: Buffer.from(JSON.stringify(parts)),
          theirs: { name: 'JSON.stringify', run: async () => Buffer.from(JSON.stringify(parts)) },
          ours: { name: 'encode', run: () => encode(raws) },
        }
      },
    },
    {
      what: '10⁵ rows of 1 KB',
      make: () => {
        const lines = many(1e5, new Random(3), lineOf)
        const joined = (): string => lines.map((line) => `${JSON.stringify(line)}\n`).join('')
        return {
          expected: Buffer.from(joined()),
          theirs: { name: 'a loop of JSON.stringify', run: async () => Buffer.from(joined()) },
          ours: { name: 'encodeLines', run: () => encodeLines(lines) },
        }
      },
    },
    ...['twitter-like', 'citm-like', '1,500 spans'].map(sortedKeys),
  ]
}

function lineOf(random: Random, id: number): object {
  return { id, role: 'user', content: random.hex(900), n: 5, ok: true }
}

function sortedKeys(name: string): Other {
  return {
    what: `${name}, keys in order`,
    make: () => {
      const value = SHAPES.find((shape) => shape.name === name)?.make()
      const sorted = (): Buffer => Buffer.from(stringify(value) ?? '')
      // Safe-stable-stringify has numbers first, as objects have them; RFC 8785 has not.
      const isPlain = name !== 'citm-like'
      return {
        expected: isPlain ? sorted() : undefined,
        theirs: { name: 'safe-stable-stringify', run: async () => sorted() },
        ours: { name: 'encode', run: () => encode(value, { sortKeys: true }) },
      }
    },
  }
}

async function othersTable(): Promise<string[][]> {
  const rows = [
    ['what', 'MB', 'other', 'other busy ms', 'encode busy ms', 'relief', 'relief, minima', 'encode latency ms'],
  ]
  for (const { what, make } of others()) {
    const { theirs, ours, expected } = make()
    const { result } = await runOf(ours, 1)
    if (!(result instanceof Uint8Array) || (expected !== undefined && !expected.equals(result))) {
      throw new Error(`${what}: other bytes`)
    }
    const [other, own] = await takeTurns([theirs, ours], TURNS)
    if (other === undefined || own === undefined) throw new Error('a pair is two')
    rows.push([
      what,
      (result.length / 1e6).toFixed(2),
      theirs.name,
      mean(other.busyMs),
      mean(own.busyMs),
      `${(sum(other.busyMs) / other.busyMs.length / (sum(own.busyMs) / own.busyMs.length)).toFixed(1)}×`,
      `${(Math.min(...other.busyMs) / Math.min(...own.busyMs)).toFixed(1)}×`,
      median(own.wallMs).toFixed(2),
    ])
  }
  return rows
}

function mean(values: readonly number[] = []): string {
  return (sum(values) / values.length).toFixed(3)
}
