/**
 * encodeMsgpack against msgpackr and @msgpack/msgpack on the same thread, and against msgspec's encoder; what a snapshot
 * costs beside them. Every output is read back before it is timed. `npm run bench -- msgpack`
 */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { encode as encodeTheirs } from '@msgpack/msgpack'
import { Packr, Unpackr } from 'msgpackr'
import { capture, encode, encodeMsgpack } from '../src/index.ts'
import { many, Random, SHAPES } from './documents.ts'
import { besideHeap, mean, median, report, runOf, table, takeTurns, type Contender, type Turns } from './measure.ts'
import { startSnake } from './snake.ts'

const TURNS: Turns = { budgetMs: 2500, leastRounds: 2, leastRunMs: 1, warmMs: 300 }
const SNAKE_RUNS = 10

/** As a trainer gets them: positional arrays, experts as bytes. */
function microBatch(random: Random): unknown {
  const length = 60_000
  const ids = many(length, random, () => random.below(150_000))
  const mask = many(length, random, () => random.below(2) === 1)
  const floats = many(length, random, () => random.unit() - 1)
  return [ids, mask, floats, floats, [Buffer.alloc(length * 400, 7), [length, 50, 8], 'uint8'], null, 'rl']
}

const VALUES: readonly (readonly [name: string, make: () => unknown])[] = [
  ['a micro-batch of 60k tokens, 24 MB of experts', () => microBatch(new Random(1))],
  ...['8 rollouts of 60k tokens', '16 rollouts', '200 rollouts', 'chat, ASCII', 'chat, CJK', 'one string']
    .concat(['10⁶ doubles', '10⁶ small integers', '1,500 spans', '2·10⁴ objects with dates', 'twitter-like'])
    .map((name) => [name, () => SHAPES.find((shape) => shape.name === name)?.make()] as const),
]

const snake = await startSnake('msgpack.py')
const packr = new Packr({ useRecords: false, variableMapSize: true, encodeUndefinedAsNil: true })
const unpackr = new Unpackr({ useRecords: false, int64AsType: 'number' })
const sections = [
  `Busy is the mean of the loop's time for a call, collections included; relief is the sum of the faster of the two packages ÷ ours. msgspec: CPU time of its encoder on what it read from our bytes, of which it makes the same bytes, in the same rounds (${snake?.versions ?? 'no Python'}). \`capture\` is disposed at once.`,
  table(await rows()),
]
snake?.stop()
const beside = await besideHeap(
  VALUES.map(([name, make]) => ({
    name,
    make: () => {
      const value = make()
      return {
        plain: { name: 'msgpackr', run: async () => packr.pack(value) },
        ours: { name: 'encodeMsgpack', run: () => encodeMsgpack(value) },
      }
    },
  })),
)
report('MessagePack and snapshots', [...sections, ...beside])

async function rows(): Promise<string[][]> {
  const lines = [
    [
      'value',
      'MB',
      'msgpackr busy ms',
      '@msgpack/msgpack busy ms',
      'encodeMsgpack busy ms',
      'relief',
      'relief, minima',
      'latency ms',
      'msgspec ms',
      'msgspec ÷ latency',
      'encode busy ms',
      'capture busy ms',
    ],
  ]
  for (const [name, make] of VALUES) {
    const value = make()
    const bytes = await encodeMsgpack(value)
    if (!isDeepStrictEqual(unpackr.unpack(bytes), plain(value))) throw new Error(`${name}: other values`)
    if (snake !== undefined) {
      const path = join(snake.folder, 'document')
      writeFileSync(path, bytes)
      await snake.ask(path)
    }
    const ours: Contender = { name: 'encodeMsgpack', run: () => encodeMsgpack(value) }
    const contenders: readonly Contender[] = [
      { name: 'msgpackr', run: async () => packr.pack(value) },
      { name: '@msgpack/msgpack', run: async () => encodeTheirs(value, { maxDepth: 10_000 }) },
      ours,
      { name: 'encode', run: () => encode(value) },
      { name: 'capture', run: async () => capture(value)[Symbol.dispose]() },
    ]
    const [first, second, own, json, kept] = await takeTurns(contenders, TURNS)
    if (first === undefined || second === undefined || own === undefined) throw new Error('contenders are missing')
    const faster = mean(first.busyMs) < mean(second.busyMs) ? first : second
    const { latency, snakeMs } = await inRounds(ours)
    lines.push([
      name,
      (bytes.length / 1e6).toFixed(2),
      mean(first.busyMs).toFixed(3),
      mean(second.busyMs).toFixed(3),
      mean(own.busyMs).toFixed(3),
      `${(mean(faster.busyMs) / mean(own.busyMs)).toFixed(1)}×`,
      `${(Math.min(...faster.busyMs) / Math.min(...own.busyMs)).toFixed(1)}×`,
      latency.toFixed(2),
      snakeMs === undefined ? '' : snakeMs.toFixed(2),
      snakeMs === undefined ? '' : `${(snakeMs / latency).toFixed(2)}×`,
      mean(json?.busyMs ?? []).toFixed(3),
      mean(kept?.busyMs ?? []).toFixed(3),
    ])
  }
  return lines
}

/** As it comes back: dates are texts, what has no JSON is gone. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(plain)
  if (value instanceof Date) return value.toJSON()
  const members = Object.entries(value).filter(([, item]) => item !== undefined)
  return Object.fromEntries(members.map(([key, item]) => [key, plain(item)]))
}

/** A call of ours, calls of theirs, and so on. */
async function inRounds(ours: Contender): Promise<{ readonly latency: number; readonly snakeMs: number | undefined }> {
  const own: number[] = []
  const theirs: number[] = []
  for (let round = 0; round < SNAKE_RUNS; round += 1) {
    own.push((await runOf(ours, 1)).wallMs)
    if (snake !== undefined) theirs.push(Number(await snake.ask('run')))
  }
  return { latency: median(own), snakeMs: theirs.length === 0 ? undefined : median(theirs) }
}
