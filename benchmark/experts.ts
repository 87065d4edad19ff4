/**
 * Routed experts of a rollout, turn by turn, in one: `concatExperts` against what one writes with Buffers, and against
 * numpy over pybase64. Every result is checked before it is timed. `npm run bench -- experts`
 */

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { concatExperts, type ExpertsTurn, type RoutedExperts } from '../src/index.ts'
import {
  besideHeap,
  inRows,
  mean,
  median,
  report,
  runOf,
  swept,
  table,
  type Contender,
  type HeapPair,
} from './measure.ts'
import { startSnake } from './snake.ts'

const ROUNDS = 8
/** In a row: a 32 MB rollout each. */
const CALLS = 5
const SNAKE_RUNS = 15
/** Results that both sides keep, as a trainer's batch does: memory that is freed at once is warm for the next call. */
const KEPT = 4
const [LAYERS, TOPK] = [48, 8]

interface Rollout {
  readonly tokens: number
  readonly turns: readonly Turn[]
}

interface Turn {
  readonly start: number
  readonly rows: number
  readonly dtype: 'uint8' | 'uint16'
  /** Of base64, one byte a character: what comes in a body. */
  readonly text: Buffer
}

/** So many turns of as many rows each, one in `every` of two bytes an element. */
function rollout(count: number, tokens: number, every = Infinity): Rollout {
  const rows = Math.floor((tokens - 1) / count)
  const turns = Array.from({ length: count }, (_, index): Turn => {
    const dtype = index % every === every - 1 ? 'uint16' : 'uint8'
    const data = Buffer.alloc(rows * LAYERS * TOPK * (dtype === 'uint16' ? 2 : 1))
    for (let at = 0; at < data.length; at += 1)
      data[at] = dtype === 'uint16' && at % 2 === 1 ? 0 : (at * 31 + index) & 127
    return { start: index * rows, rows, dtype, text: Buffer.from(data.toString('base64'), 'latin1') }
  })
  return { tokens: count * rows + 1, turns }
}

const CASES: readonly { readonly name: string; readonly make: () => Rollout }[] = [
  { name: '50 turns to 60,000 tokens', make: () => rollout(50, 60_000) },
  { name: '1,000 turns to 60,000 tokens', make: () => rollout(1000, 60_000) },
  { name: '1 turn of 60,000 tokens', make: () => rollout(1, 60_000) },
  { name: '50 turns, one of them of uint16', make: () => rollout(50, 60_000, 50) },
]

type Made = readonly { readonly experts: RoutedExperts | ExpertsTurn['experts']; readonly start: number }[]

function made(turns: readonly Turn[], dataOf: (turn: Turn) => string | Uint8Array): Made {
  return turns.map((turn) => {
    const { start, rows, dtype } = turn
    return { start, experts: { data: dataOf(turn), encoding: 'base64', shape: [rows, LAYERS, TOPK], dtype } }
  })
}

function decoded(turns: readonly Turn[]): Made {
  return turns.map(({ start, rows, dtype, text }) => {
    const data = Buffer.from(Uint8Array.from(Buffer.from(text.toString('latin1'), 'base64')).buffer)
    return { start, experts: { data, shape: [rows, LAYERS, TOPK], dtype, start: 0 } }
  })
}

/** What a program without offloop has: the strings that JSON.parse made. */
function strings(turns: readonly Turn[]): string[] {
  return turns.map(({ text }) => text.toString('latin1'))
}

/** One Buffer, every turn written to its place in it. The last row is zero. */
function written({ turns, tokens }: Rollout, texts: readonly string[]): Buffer {
  const row = LAYERS * TOPK
  const all = Buffer.allocUnsafe(tokens * row)
  for (const [index, { start }] of turns.entries()) all.write(texts[index] ?? '', start * row, 'base64')
  return all.fill(0, (tokens - 1) * row)
}

/** A Buffer for every turn, and one of all. */
function joined(_: Rollout, texts: readonly string[]): Buffer {
  const parts = texts.map((text) => Buffer.from(text, 'base64'))
  return Buffer.concat([...parts, Buffer.alloc(LAYERS * TOPK)])
}

/** The same where elements have two bytes. */
function widened({ turns, tokens }: Rollout, texts: readonly string[]): Buffer {
  const row = LAYERS * TOPK
  const all = new Uint16Array(tokens * row)
  for (const [index, { start, dtype }] of turns.entries()) {
    const { buffer, byteOffset, length } = Buffer.from(texts[index] ?? '', 'base64')
    const [kind, count] = dtype === 'uint8' ? [Uint8Array, length] : [Uint16Array, length / 2]
    all.set(new kind(buffer, byteOffset, count), start * row)
  }
  return Buffer.from(all.buffer)
}

const snake = await startSnake('experts.py')
const sections = [
  `Busy is the time of the loop of one call in the median; in brackets the least, and the mean. Calls follow each other, five in a row, on inputs that were made before, and what making them left is collected before, so that each pays for its own collections alone. Each turn tells where it starts, as prime-rl's do; ${LAYERS} layers, ${TOPK} experts each. Python: CPU time of numpy.concatenate of numpy.frombuffer of pybase64.b64decode_as_bytearray, in the same rounds (${snake?.versions ?? 'no Python'}).`,
  ...(await cases()),
]
snake?.stop()
if (existsSync('/proc/self/clear_refs')) sections.push('## Memory', peak())
const beside = await besideHeap(CASES.map(({ name, make }) => ({ name, make: () => heapPair(make()) })))
report('Routed experts', [...sections, ...beside])

/** The first way of each side. */
function heapPair(given: Rollout): HeapPair {
  const { plainly, bytes } = waysOf(given)
  const [plain] = plainly
  if (plain === undefined) throw new Error('there is no plain way')
  return { plain, ours: bytes }
}

async function cases(): Promise<string[]> {
  const parts: string[] = []
  for (const { name, make } of CASES) {
    parts.push(`## ${name}`, await compared(make()))
  }
  return parts
}

/** What one writes without offloop, from strings; and ours, from text as bytes. */
function waysOf(given: Rollout): { readonly plainly: readonly Contender[]; readonly bytes: Contender } {
  const { turns, tokens } = given
  const isMixed = turns.some(({ dtype }) => dtype === 'uint16')
  const plainly: Readonly<Record<string, typeof written>> = isMixed
    ? { 'Buffer.from for each, set into one Uint16Array': widened }
    : { "one Buffer, write(…, 'base64') for each": written, 'Buffer.from for each, Buffer.concat': joined }
  return {
    plainly: Object.entries(plainly).map(([name, run]) => ({
      name,
      prepare: () => strings(turns),
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `prepare` made strings
      run: async (own) => run(given, own as string[]),
    })),
    bytes: {
      name: 'concatExperts, text as bytes, handed over',
      prepare: () => made(turns, ({ text }) => Uint8Array.from(text)),
      run: (own) => concat(own, tokens, true),
    },
  }
}

async function concat(own: unknown, tokens: number, transfer: boolean): Promise<Buffer> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `prepare` made it
  const { data } = await concatExperts(own as Made, { tokens, transfer })
  return data
}

async function compared(given: Rollout): Promise<string> {
  const { turns, tokens } = given
  const isMixed = turns.some(({ dtype }) => dtype === 'uint16')
  const expected = (isMixed ? widened : written)(given, strings(turns))
  const { plainly, bytes } = waysOf(given)
  const contenders: Contender[] = [
    bytes,
    { name: 'concatExperts, bytes of experts, handed over', prepare: () => decoded(turns), run: bytes.run },
    { ...bytes, name: 'concatExperts, text as bytes, copied', run: (own) => concat(own, tokens, false) },
    {
      name: 'concatExperts, strings',
      prepare: () => made(turns, ({ text }) => text.toString('latin1')),
      run: (own) => concat(own, tokens, false),
    },
    ...plainly,
  ]
  for (const contender of contenders) {
    const { result } = await runOf(contender, 1)
    if (!(result instanceof Uint8Array) || !expected.equals(result)) throw new Error(`${contender.name}: other experts`)
  }
  const runs = await inRows(contenders, ROUNDS, CALLS)
  const first = median(runs[0]?.busyMs ?? [])
  const { own, theirs } = await inRounds(bytes, given, expected)
  const rows = [['way', 'busy ms', 'ours ÷ this', 'wall ms', 'CPU ms, all threads, results kept']]
  for (const [index, { name, busyMs, wallMs }] of runs.entries()) {
    rows.push([
      name,
      `${median(busyMs).toFixed(3)} (${Math.min(...busyMs).toFixed(3)}, ${mean(busyMs).toFixed(3)})`,
      `1/${(median(busyMs) / first).toFixed(1)}`,
      median(wallMs).toFixed(2),
      index === 0 ? own.toFixed(2) : '',
    ])
  }
  if (theirs !== undefined)
    rows.push([`numpy over pybase64: ours ${(own / theirs).toFixed(2)} of it`, '', '', '', theirs.toFixed(2)])
  return table(rows)
}

/** CPU time: a call of ours, one of theirs, and so on. */
async function inRounds(
  ours: Contender,
  { turns }: Rollout,
  expected: Buffer,
): Promise<{ readonly own: number; readonly theirs: number | undefined }> {
  const kept: unknown[] = []
  const own: number[] = []
  const theirs: number[] = []
  if (snake !== undefined) {
    const path = join(snake.folder, 'turns')
    writeFileSync(path, turns.map(({ dtype, text }) => `${dtype} ${text.toString('latin1')}\n`).join(''))
    const hash = createHash('sha256')
      .update(expected.subarray(0, -expected.length / (last(turns).start + last(turns).rows + 1)))
      .digest('hex')
    if ((await snake.ask(path)) !== `ready ${hash}`) throw new Error('numpy has other experts')
  }
  for (let round = 0; round < SNAKE_RUNS; round += 1) {
    const prepared = await ours.prepare?.()
    await swept()
    const before = process.cpuUsage()
    kept[round % KEPT] = await ours.run(prepared)
    const { user, system } = process.cpuUsage(before)
    own.push((user + system) / 1000)
    if (snake !== undefined) theirs.push(Number(await snake.ask('run')))
  }
  return { own: median(own), theirs: snake === undefined ? undefined : median(theirs) }
}

function last<T>(list: readonly T[]): T {
  const item = list.at(-1)
  if (item === undefined) throw new Error('nothing in it')
  return item
}

/** Of a process of its own. */
function peak(): string {
  const path = fileURLToPath(new URL('peak.mjs', import.meta.url))
  const shape = ['50', '1199', String(LAYERS), String(TOPK)]
  const flags = ['--expose-gc', '--import', '@oxc-node/core/register']
  const beyond = Array.from({ length: 5 }, () =>
    Number(execFileSync(process.execPath, [...flags, path, ...shape], { encoding: 'utf8' })),
  )
  return `50 turns to 59,951 tokens, text as bytes, handed over: peak of resident memory beyond inputs and result, in five processes: ${beyond.map((bytes) => `${(bytes / 2 ** 20).toFixed(2)} MiB`).join(', ')}.`
}
