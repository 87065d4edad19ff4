/**
 * JSON out against JSON.stringify, v8.serialize, a worker thread, safe-stable-stringify, orjson and msgspec: busy time of the
 * loop, latency, throughput. Every output is checked before it is timed. `npm run bench -- json`
 *
 * OFFLOOP_BENCH_QUICK=1: few rounds; OFFLOOP_BENCH_ONLY=span: the shapes of such names. Both print, and keep no results.
 */

import { pbkdf2 } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { serialize } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { configure } from 'safe-stable-stringify'
import { createEncoder, encode, encodeLines, encodeSync, stats } from '../src/index.ts'
import { many, Random, rollouts, SHAPES, SMALL_SHAPES, type Shape, type SmallShape } from './documents.ts'
import {
  besideHeap,
  longestBlocks,
  median,
  report,
  runOf,
  sum,
  table,
  takeTurns,
  type Contender,
  type HeapCase,
  type Runs,
  type Turns,
} from './measure.ts'
import { startSnake } from './snake.ts'

const isQuick = process.env['OFFLOOP_BENCH_QUICK'] === '1'
const only = process.env['OFFLOOP_BENCH_ONLY']

const PAIRS: Turns = {
  budgetMs: isQuick ? 300 : 2000,
  leastRounds: isQuick ? 1 : 2,
  leastRunMs: 1,
  warmMs: isQuick ? 100 : 300,
}
const PEERS: Turns = { budgetMs: isQuick ? 50 : 400, leastRounds: 1, leastRunMs: 1, warmMs: 50 }
const TRANSCODER = { budgetMs: isQuick ? 150 : 1500, leastRounds: isQuick ? 2 : 5, leastRunMs: 10 }
/** A peer that takes longer is called once. */
const SLOW_MS = 500
/** An encoder is at its best after some ten thousand calls: V8 takes its time. */
const SYNC = {
  budgetMs: isQuick ? 100 : 2000,
  leastRounds: isQuick ? 10 : 60,
  leastRunMs: 0.4,
  warmMs: isQuick ? 50 : 900,
}
/** Different values of a small shape, one after the other. */
const SMALL_VALUES = 16
/** 100 MB. */
const BATCH = 250
const BATCH_CALLS = isQuick ? 3 : 9

const WORKER = `
const { parentPort } = require('node:worker_threads')
const encoder = new TextEncoder()
parentPort.on('message', (value) => {
  const bytes = encoder.encode(JSON.stringify(value))
  parentPort.postMessage(bytes, [bytes.buffer])
})
`

/** Of each thread of this process, on Linux. */
const TASKS = '/proc/self/task'
const derive = promisify(pbkdf2)
const stringifyUnsorted = configure({ deterministic: false })

interface Tables {
  readonly pairs: string[][]
  readonly peers: string[][]
  readonly transcoder: string[][]
}

/** Of one shape, in the main process. */
interface Pair {
  readonly shape: Shape
  readonly value: unknown
  readonly expected: Buffer
  readonly reference: Runs
  readonly ours: Runs
}

const worker = startWorker()
const snake = await startSnake('json.py')
const clock = await findPool()
const blocks = only === undefined ? await blocksOfBatch() : []
const tables = await measureShapes()
const small = await measureSmall()
await worker.stop()
snake?.stop()

const sections = [
  `## Busy time\n\nOf the loop, from the call to the settled promise, against an async function around \`Buffer.from(JSON.stringify(value))\`, in the same process, in turns of four calls or runs, after one that is not counted, as V8 may collect there what the other side left. Busy is the mean of all calls, collections included, and one turn of the loop after the call, where V8 goes on with them; relief is JSON.stringify's sum ÷ encode's. Latency is the median.`,
  table(tables.pairs),
  ...blocks,
  `## Others\n\nMedians; one call of what takes longer than ${SLOW_MS} ms. v8.serialize makes other bytes, and is here for its time. The worker thread gets the value by postMessage and transfers the bytes of JSON.stringify back. safe-stable-stringify does not sort keys here, and is followed by \`Buffer.from\`.`,
  table(tables.peers),
  `## Transcoder\n\nGB/s of JSON. The pool's threads do nothing but print what was captured, into new memory: their CPU time is compared with that of \`dumps\` of the same document (${snake?.versions ?? 'no Python'}), which writes to memory that it has just freed, and keeps the UTF-8 of strings that are not ASCII. Dictionaries and ever-new shapes are printed by JSON.stringify on the loop, the pool copies them; what is small needs no task.`,
  table(tables.transcoder),
  `## encodeSync\n\nAgainst \`Buffer.from(JSON.stringify(value))\`: ${SMALL_VALUES} values of a shape in turn, in random order of the ways; ratios of sums and of minima. \`createEncoder\`: an encoder for each shape.`,
  table(small),
]
report('JSON out', [...sections, ...(await besideHeap(heapCases()))])

/** Shapes with an idle time before each call are about caches, not about collections. */
function heapCases(): HeapCase[] {
  const shapes = SHAPES.filter(({ name, idleMs }) => isWanted(name) && idleMs === undefined)
  return shapes.map(({ name, make, lines = false }) => ({
    name,
    make: () => {
      const [plain, ours] = lines ? lineWays(make()) : wholeWays(make())
      return { plain, ours }
    },
  }))
}

async function measureShapes(): Promise<Tables> {
  const made: Tables = {
    pairs: [
      [
        'shape',
        'MB',
        'JSON.stringify busy ms',
        'encode busy ms',
        'relief',
        'relief, minima',
        'JSON.stringify latency ms',
        'encode latency ms',
        'encode GB/s',
        'calls or runs',
      ],
    ],
    peers: [
      [
        'shape',
        'JSON.stringify busy ms',
        'v8.serialize busy ms',
        'worker busy ms',
        'safe-stable busy ms',
        'encode busy ms',
        'worker latency ms',
        'encode latency ms',
      ],
    ],
    transcoder: [['shape', 'encode, whole latency', 'encode, CPU of the pool', 'orjson', 'msgspec', 'pool ÷ orjson']],
  }
  for (const shape of SHAPES) {
    if (!isWanted(shape.name)) continue
    show(shape.name)
    const pair = await measurePair(shape)
    made.pairs.push(pairRow(pair))
    if (shape.lines === true || shape.idleMs !== undefined) continue
    made.peers.push(await measurePeers(pair))
    made.transcoder.push(await measureTranscoder(pair))
  }
  return made
}

async function measurePair(shape: Shape): Promise<Pair> {
  const { idleMs = 0, lines = false } = shape
  const value = shape.make()
  const prepare = (): unknown => (idleMs === 0 ? undefined : sleep(idleMs))
  const contenders = (lines ? lineWays(value) : wholeWays(value)).map(({ name, run }): Contender => ({
    name,
    run,
    prepare,
  }))
  const expected = Buffer.from(lines ? linesOf(value) : JSON.stringify(value))
  for (const contender of contenders) {
    const { result } = await runOf(contender, 1)
    if (!isSame(result, expected)) throw new Error(`${shape.name}: ${contender.name} gives other bytes`)
  }
  const [reference, ours] = await takeTurns(contenders, idleMs === 0 ? PAIRS : { ...PAIRS, leastRunMs: 0 })
  if (reference === undefined || ours === undefined) throw new Error('a pair is two')
  return { shape, value, expected, reference, ours }
}

type Ways = readonly [plain: Contender, ours: Contender]

function wholeWays(value: unknown): Ways {
  return [
    { name: 'JSON.stringify', run: async () => Buffer.from(JSON.stringify(value)) },
    { name: 'encode', run: () => encode(value) },
  ]
}

function lineWays(value: unknown): Ways {
  if (!Array.isArray(value)) throw new TypeError('rows are an array')
  const rows: readonly unknown[] = value
  return [
    { name: 'JSON.stringify', run: async () => Buffer.from(linesOf(rows)) },
    { name: 'encodeLines', run: () => encodeLines(rows) },
  ]
}

function linesOf(rows: unknown): string {
  if (!Array.isArray(rows)) throw new TypeError('rows are an array')
  let text = ''
  for (const row of rows) text += `${JSON.stringify(row)}\n`
  return text
}

function pairRow({ shape, expected, reference, ours }: Pair): string[] {
  const count = ours.busyMs.length
  const [referenceMs, oursMs] = [sum(reference.busyMs), sum(ours.busyMs)]
  const latencyMs = median(ours.wallMs)
  return [
    shape.name,
    megabytes(expected.length),
    ms(referenceMs / count),
    ms(oursMs / count),
    times(referenceMs / oursMs),
    times(Math.min(...reference.busyMs) / Math.min(...ours.busyMs)),
    ms(median(reference.wallMs)),
    ms(latencyMs),
    speed(expected.length, latencyMs),
    String(count),
  ]
}

async function measurePeers({ shape, value, expected, reference, ours }: Pair): Promise<string[]> {
  const serialized = await measurePeer({ name: 'v8.serialize', run: () => serialize(value) }, undefined)
  const sent = await measurePeer({ name: 'worker', run: () => worker.stringify(value) }, expected)
  const safe = await measurePeer({ name: 'safe-stable', run: () => safely(value) }, expected)
  return [
    shape.name,
    ms(median(reference.busyMs)),
    serialized.busy,
    sent.busy,
    safe.busy,
    ms(median(ours.busyMs)),
    sent.wall,
    ms(median(ours.wallMs)),
  ]
}

/** Peers may give other bytes, or nothing: then there is nothing to time. */
async function measurePeer(peer: Contender, expected: Buffer | undefined): Promise<{ busy: string; wall: string }> {
  try {
    const { busyMs, wallMs, result } = await runOf(peer, 1)
    if (expected !== undefined && !isSame(result, expected)) return { busy: 'other bytes', wall: '' }
    if (SLOW_MS < wallMs) return { busy: ms(busyMs), wall: ms(wallMs) }
    const [runs] = await takeTurns([peer], PEERS)
    return { busy: ms(median(runs?.busyMs ?? [])), wall: ms(median(runs?.wallMs ?? [])) }
  } catch (error) {
    return { busy: error instanceof Error ? error.name : String(error), wall: '' }
  }
}

function isSame(result: unknown, expected: Buffer): boolean {
  return result instanceof Uint8Array && expected.equals(result)
}

function safely(value: unknown): Buffer {
  const text = stringifyUnsorted(value)
  if (text === undefined) throw new TypeError('no JSON')
  return Buffer.from(text)
}

/** The same document in rounds: calls of encode, calls of Python's printers. */
async function measureTranscoder({ shape, value, expected, ours }: Pair): Promise<string[]> {
  const problem = await loadSnake(expected)
  const calls = Math.ceil(TRANSCODER.leastRunMs / median(ours.wallMs))
  const samples = { wall: [0].slice(1), pool: [0].slice(1), orjson: [0].slice(1), msgspec: [0].slice(1) }
  const start = performance.now()
  for (let round = 0; round < TRANSCODER.leastRounds || performance.now() - start < TRANSCODER.budgetMs; round += 1) {
    const before = clock?.()
    const { completed } = stats()
    const begun = performance.now()
    for (let call = 0; call < calls; call += 1) await encode(value)
    samples.wall.push((performance.now() - begun) / calls)
    if (clock !== undefined && before !== undefined && completed < stats().completed) {
      // The kernel adds up a thread's time when it goes to sleep.
      await sleep(2)
      samples.pool.push((clock() - before) / calls)
    }
    if (snake === undefined || problem !== undefined) continue
    const [orjson = Number.NaN, msgspec = Number.NaN] = (await snake.ask('run')).split(' ').map(Number)
    samples.orjson.push(orjson)
    samples.msgspec.push(msgspec)
  }
  const [pool, orjson] = [median(samples.pool), median(samples.orjson)]
  return [
    shape.name,
    speed(expected.length, median(samples.wall)),
    Number.isNaN(pool) ? '' : speed(expected.length, pool),
    problem?.split(':')[0] ?? speed(expected.length, orjson),
    problem === undefined ? speed(expected.length, median(samples.msgspec)) : '',
    Number.isNaN(orjson / pool) ? '' : times(orjson / pool),
  ]
}

/** A section of the report. */
async function blocksOfBatch(): Promise<string[]> {
  show(`${BATCH} rollouts`)
  const batch = rollouts(BATCH)
  const ways = wholeWays(batch).toReversed()
  const size = Buffer.byteLength(JSON.stringify(batch))
  const head = [
    'way',
    'MB',
    'first call of the process ms',
    'later calls, median ms',
    'later calls, longest ms',
    'latency ms',
  ]
  const body = (await longestBlocks(ways, BATCH_CALLS)).map(({ name, firstMs, laterMs, wallMs }) => [
    name,
    megabytes(size),
    ms(firstMs),
    ms(median(laterMs)),
    ms(Math.max(...laterMs)),
    ms(median(wallMs)),
  ])
  return [
    '## The longest single block of the JS thread\n\nFor a batch of rollouts, while the loop turns without pause.',
    table([head, ...body]),
  ]
}

async function measureSmall(): Promise<string[][]> {
  const rows = [
    [
      'shape',
      'bytes',
      'JSON.stringify µs',
      'encodeSync µs',
      'createEncoder µs',
      'encodeSync: sums',
      'minima',
      'createEncoder: sums',
      'minima',
    ],
  ]
  for (const shape of SMALL_SHAPES) {
    if (!isWanted(shape.name)) continue
    show(`encodeSync, ${shape.name}`)
    rows.push(measureSync(shape))
    await nextTurn()
  }
  return rows
}

interface SyncWay {
  readonly print: (value: unknown) => Uint8Array
  readonly runs: number[]
}

function measureSync({ name, make }: SmallShape): string[] {
  const values = many(SMALL_VALUES, new Random(1), make)
  const encoder = createEncoder()
  const reference: SyncWay = { print: (value) => Buffer.from(JSON.stringify(value)), runs: [] }
  const shared: SyncWay = { print: (value) => encodeSync(value), runs: [] }
  const own: SyncWay = { print: (value) => encoder.encodeSync(value), runs: [] }
  const ways = [reference, shared, own]
  for (const value of values) {
    const expected = Buffer.from(JSON.stringify(value))
    for (const { print } of ways) if (!expected.equals(print(value))) throw new Error(`${name}: other bytes`)
  }
  const random = new Random(2)
  const start = performance.now()
  let passes = 1
  while (printAll(reference, values, passes) < SYNC.leastRunMs) passes *= 2
  for (let round = 0; round < SYNC.leastRounds || performance.now() - start < SYNC.budgetMs;) {
    const isWarm = SYNC.warmMs < performance.now() - start
    for (const way of shuffle(ways, random)) {
      const perValueMs = printAll(way, values, passes) / passes / SMALL_VALUES
      if (isWarm) way.runs.push(perValueMs)
    }
    if (isWarm) round += 1
  }
  const sizes = values.map((value) => Buffer.byteLength(JSON.stringify(value)))
  const sums = ({ runs }: SyncWay): string => times(sum(reference.runs) / sum(runs))
  const minima = ({ runs }: SyncWay): string => times(Math.min(...reference.runs) / Math.min(...runs))
  return [
    name,
    (sum(sizes) / SMALL_VALUES).toFixed(0),
    ...ways.map(({ runs }) => ((sum(runs) / runs.length) * 1000).toFixed(2)),
    sums(shared),
    minima(shared),
    sums(own),
    minima(own),
  ]
}

function printAll({ print }: SyncWay, values: readonly unknown[], passes: number): number {
  const start = performance.now()
  for (let pass = 0; pass < passes; pass += 1) for (const value of values) print(value)
  return performance.now() - start
}

function shuffle<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => ({ item, place: random.unit() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ item }) => item)
}

/** A thread that calls JSON.stringify for this one. */
function startWorker(): { stringify: (value: unknown) => Promise<unknown>; stop: () => Promise<number> } {
  const thread = new Worker(WORKER, { eval: true, execArgv: [] })
  let settle: (bytes: unknown) => void = () => undefined
  thread.on('message', (bytes: unknown) => settle(bytes))
  return {
    stringify: (value) =>
      new Promise((resolve) => {
        settle = resolve
        thread.postMessage(value)
      }),
    stop: () => thread.terminate(),
  }
}

/** Why it cannot take the document, if it cannot. */
async function loadSnake(document: Buffer): Promise<string | undefined> {
  if (snake === undefined) return undefined
  const path = join(snake.folder, 'document.json')
  writeFileSync(path, document)
  const said = await snake.ask(path)
  return said === 'ready' ? undefined : said
}

/** A clock of the CPU ms of libuv's pool; undefined where the kernel does not tell them. */
async function findPool(): Promise<(() => number) | undefined> {
  const cpuMs = (id: string): number => Number(readFileSync(`${TASKS}/${id}/schedstat`, 'utf8').split(' ')[0]) / 1e6
  try {
    const size = Number(process.env['UV_THREADPOOL_SIZE'] ?? 4)
    const before = new Map(readdirSync(TASKS).map((id) => [id, cpuMs(id)]))
    // Gives every thread of the pool the same to do, and no other thread as much.
    await Promise.all(Array.from({ length: size }, () => derive('', '', 100_000, 64, 'sha512')))
    await sleep(10)
    const busiest = readdirSync(TASKS)
      .filter((id) => id !== String(process.pid))
      .map((id) => ({ id, gainMs: cpuMs(id) - (before.get(id) ?? 0) }))
      .toSorted((a, b) => b.gainMs - a.gainMs)
    const pool = busiest.slice(0, size).map(({ id }) => id)
    return () => sum(pool.map(cpuMs))
  } catch (error) {
    console.log(`left out: CPU of the pool (${error instanceof Error ? error.message : String(error)})`)
    return undefined
  }
}

function isWanted(name: string): boolean {
  return only === undefined || name.includes(only)
}

function show(name: string): void {
  console.error(`${(performance.now() / 1000).toFixed(0).padStart(4)} s  ${name}`)
}

function megabytes(size: number): string {
  return (size / 1e6).toPrecision(size < 1e4 ? 2 : 3)
}

function ms(milliseconds: number): string {
  return milliseconds < 1 ? milliseconds.toPrecision(3) : milliseconds.toFixed(2)
}

function times(ratio: number): string {
  return `${ratio.toFixed(ratio < 10 ? 2 : 1)}×`
}

function speed(size: number, milliseconds: number): string {
  return (size / milliseconds / 1e6).toFixed(2)
}
