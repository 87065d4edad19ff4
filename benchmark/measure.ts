/**
 * Shared by the benchmarks: loop time of calls, with an empty heap and beside live objects, tables, and results that say where
 * they are from. Runs on the JS thread of a benchmark.
 */

import { stat } from 'node:fs/promises'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { Bench } from 'tinybench'
import { origin } from '../scripts/machine.mjs'
import { emptyHeap, fillHeap, LIVE_MB } from './heap.ts'

export interface Contender {
  readonly name: string
  /** Made anew before each run, outside what is measured. */
  readonly prepare?: () => unknown
  readonly run: (prepared: unknown) => unknown
}

export interface Measured {
  readonly name: string
  /** Medians of one call. */
  readonly busyMs: number
  readonly wallMs: number
  readonly cpuMs: number
}

export interface Effort {
  /** Contenders take turns this many times. */
  readonly rounds: number
  /** Runs of a contender in its turn. */
  readonly runs: number
  /** Calls within a run, for calls that take microseconds. */
  readonly calls: number
}

/** Lets the contenders take turns, so that a slow moment of the machine hits all of them. */
export async function compare(contenders: readonly Contender[], { rounds, runs, calls }: Effort): Promise<Measured[]> {
  const samples = contenders.map(() => ({ busy: [0].slice(1), wall: [0].slice(1), cpu: [0].slice(1) }))
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, contender] of contenders.entries()) {
      const sample = samples[index]
      if (sample === undefined) continue
      const bench = new Bench({ iterations: runs, time: 0, warmup: round === 0, warmupIterations: 3, warmupTime: 0 })
      let prepared: unknown[] = []
      bench.add(
        contender.name,
        async () => {
          const cpu = process.cpuUsage()
          const start = performance.now()
          const before = performance.eventLoopUtilization()
          for (const input of prepared) await contender.run(input)
          sample.busy.push(performance.eventLoopUtilization(before).active / calls)
          sample.wall.push((performance.now() - start) / calls)
          const { user, system } = process.cpuUsage(cpu)
          sample.cpu.push((user + system) / 1000 / calls)
        },
        {
          beforeEach: () => {
            prepared = Array.from({ length: calls }, () => contender.prepare?.())
          },
        },
      )
      await bench.run()
      for (const task of bench.tasks) if (task.result.state === 'errored') throw task.result.error
      await sleep(1)
    }
  }
  return contenders.map(({ name }, index) => {
    const { busy = [], wall = [], cpu = [] } = samples[index] ?? {}
    return { name, busyMs: median(busy), wallMs: median(wall), cpuMs: median(cpu) }
  })
}

/** All runs of a contender, each as what it took for one call. */
export interface Runs {
  readonly name: string
  readonly busyMs: number[]
  readonly wallMs: number[]
}

export interface Turns {
  /** Rounds go on for this long, and are at least `leastRounds`. */
  readonly budgetMs: number
  readonly leastRounds: number
  /** A run repeats its call until the first contender takes this long. */
  readonly leastRunMs: number
  /** What comes before is not counted. */
  readonly warmMs: number
}

/**
 * Contenders take turns, in the opposite order in the next round. Collections count. V8 goes on with them while the loop turns,
 * that is in the runs that come next: so a turn is several runs in a row, and the first of them, which may pay for what the
 * other contender left, is not counted. Calls are awaited one by one.
 */
export async function takeTurns(contenders: readonly Contender[], turns: Turns): Promise<Runs[]> {
  const { budgetMs, leastRounds } = turns
  const calls = await warm(contenders, turns)
  const taken = contenders.map((contender) => ({
    contender,
    runs: { name: contender.name, busyMs: [0].slice(1), wallMs: [0].slice(1) },
  }))
  const start = performance.now()
  for (let round = 0; round < leastRounds || performance.now() - start < budgetMs; round += 1) {
    for (const { contender, runs } of round % 2 === 0 ? taken : taken.toReversed()) {
      await runOf(contender, calls)
      for (let run = 0; run < RUNS_IN_A_ROW; run += 1) {
        const { busyMs, wallMs } = await runOf(contender, calls)
        runs.busyMs.push(busyMs / calls)
        runs.wallMs.push(wallMs / calls)
      }
    }
  }
  return taken.map(({ runs }) => runs)
}

/**
 * For calls that take what was made for them. Contenders take turns, each of several calls in a row on inputs made before,
 * the first not counted. What making them left is collected before the calls, so that each pays for its own collections.
 */
export async function inRows(contenders: readonly Contender[], rounds: number, calls: number): Promise<Runs[]> {
  const runs = contenders.map(({ name }): Runs => ({ name, busyMs: [], wallMs: [] }))
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, { name, prepare, run }] of contenders.entries()) {
      const inputs: unknown[] = []
      for (let call = 0; call <= calls; call += 1) inputs.push(await prepare?.())
      await swept()
      for (const [call, input] of inputs.entries()) {
        const { busyMs, wallMs } = await runOf({ name, run: () => run(input) }, 1)
        inputs[call] = undefined
        if (round === 0 || call === 0) continue
        runs[index]?.busyMs.push(busyMs)
        runs[index]?.wallMs.push(wallMs)
      }
    }
  }
  return runs
}

/** With nothing to collect left; where the process may say so. */
export async function swept(): Promise<void> {
  globalThis.gc?.()
  await sleep(5)
}

const RUNS_IN_A_ROW = 4
const WARM_ROUNDS = 2

/** Tells how many calls make a run. */
async function warm(contenders: readonly Contender[], { leastRunMs, warmMs }: Turns): Promise<number> {
  let calls = 1
  const start = performance.now()
  for (let round = 0; ; round += 1) {
    let firstMs = 0
    for (const [index, contender] of contenders.entries()) {
      const { wallMs } = await runOf(contender, calls)
      if (index === 0) firstMs = wallMs
    }
    if (round < WARM_ROUNDS) continue
    if (firstMs < leastRunMs) calls *= 2
    else if (warmMs <= performance.now() - start) return calls
  }
}

/** Calls one after the other: what all of them took, and the result of the last. */
export async function runOf(
  { prepare, run }: Contender,
  calls: number,
): Promise<{ readonly busyMs: number; readonly wallMs: number; readonly result: unknown }> {
  const prepared = await prepare?.()
  let result: unknown
  const before = performance.eventLoopUtilization()
  const start = performance.now()
  for (let call = 0; call < calls; call += 1) result = await run(prepared)
  const wallMs = performance.now() - start
  // V8's tasks run when the loop turns, which it does within a call of some contenders only.
  await nextTurn()
  return { busyMs: performance.eventLoopUtilization(before).active, wallMs, result }
}

/** The longest single blocks of the JS thread. */
export interface Blocks {
  readonly name: string
  /** Of the first call of the process, and of each later one. */
  readonly firstMs: number
  readonly laterMs: number[]
  readonly wallMs: number[]
}

/** Contenders take turns, a call each, while the loop turns without pause. */
export async function longestBlocks(contenders: readonly Contender[], calls: number): Promise<Blocks[]> {
  const taken = contenders.map(({ name, run }) => ({ name, run, longest: [0].slice(1), wallMs: [0].slice(1) }))
  for (let call = 0; call < calls; call += 1) {
    for (const { run, longest, wallMs } of taken) {
      const start = performance.now()
      longest.push(await longestOf(run))
      wallMs.push(performance.now() - start)
    }
  }
  return taken.map(({ name, longest: [firstMs = Number.NaN, ...laterMs], wallMs }) => ({
    name,
    firstMs,
    laterMs,
    wallMs,
  }))
}

/** The longest single block while `run` is under way. */
export async function longestOf(run: Contender['run']): Promise<number> {
  // The call begins where the loop calls back for I/O: `note` comes right behind, and then what the call waits for.
  await stat('.')
  let longest = 0
  let isSettled = false
  let last = performance.now()
  const note = (): void => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    if (!isSettled) setImmediate(note)
  }
  setImmediate(note)
  await run(undefined)
  isSettled = true
  note()
  return longest
}

/** A row of the table that `besideHeap` makes. */
export interface HeapCase {
  readonly name: string
  /** Called when its row is due, so that values of other rows are no part of the heap. */
  readonly make: () => HeapPair | Promise<HeapPair>
}

export interface HeapPair {
  readonly plain: Contender
  readonly ours: Contender
  /** Ends what `make` started. */
  readonly stop?: () => unknown
}

const isQuick = process.env['OFFLOOP_BENCH_QUICK'] === '1'
/** Less than benchmarks take for an empty heap: this table shows what a heap adds, not microseconds. */
const HEAP_TURNS: Turns = isQuick
  ? { budgetMs: 50, leastRounds: 1, leastRunMs: 1, warmMs: 10 }
  : { budgetMs: 600, leastRounds: 2, leastRunMs: 1, warmMs: 100 }
const HEAP_ROWS = isQuick ? { rounds: 2, calls: 1 } : { rounds: 3, calls: 3 }
const HEAP_MB = isQuick ? 16 : LIVE_MB

/**
 * A section of a report: loop time beside live objects, as every real program has them. A benchmark calls it once, at its end:
 * the heap is made once, and leaves V8 with another idea of how much memory the program needs.
 */
export async function besideHeap(cases: readonly HeapCase[]): Promise<string[]> {
  const rows = [['what', 'plain', 'plain, loop ms', 'longest', 'offloop', 'loop ms', 'longest', 'plain ÷ offloop']]
  fillHeap(HEAP_MB)
  for (const { name, make } of cases) {
    const { plain, ours, stop } = await make()
    const [theirs, own] = await takeBesideHeap([plain, ours])
    await stop?.()
    if (theirs === undefined || own === undefined) throw new Error('a pair is two')
    rows.push([
      name,
      ...meanAndLongest(theirs),
      ...meanAndLongest(own),
      ratioOf(mean(theirs.busyMs) / mean(own.busyMs)),
    ])
  }
  emptyHeap()
  return [
    `## With ${HEAP_MB} MB of live objects\n\nTranscripts of other rollouts: messages, token ids, logprobs. Loop time of a call, mean and longest, collections included; fewer rounds than above.`,
    table(rows),
  ]
}

/** Inputs that are made for each call are made before the clock runs. */
function takeBesideHeap(pair: readonly Contender[]): Promise<Runs[]> {
  if (pair.every(({ prepare }) => prepare === undefined)) return takeTurns(pair, HEAP_TURNS)
  return inRows(pair, HEAP_ROWS.rounds, HEAP_ROWS.calls)
}

function meanAndLongest({ name, busyMs }: Runs): string[] {
  return [name, showMs(mean(busyMs)), showMs(Math.max(...busyMs))]
}

function showMs(ms: number): string {
  return ms < 100 ? ms.toPrecision(3) : ms.toFixed(0)
}

function ratioOf(ratio: number): string {
  return `${ratio.toFixed(ratio < 10 ? 2 : 1)}×`
}

export function mean(numbers: readonly number[]): number {
  return sum(numbers) / numbers.length
}

export function sum(numbers: readonly number[]): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}

export function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN
}

export function table(rows: readonly (readonly string[])[]): string {
  const [head = [], ...body] = rows
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...body.map(line)].join('\n')
}

/** Prints a report: sections under what was measured where. `scripts/bench.mjs` keeps it. */
export function report(title: string, sections: readonly string[]): void {
  const head = `# ${title}\n\n${origin(`Node ${process.version}`)}`
  console.log([head, ...sections].join('\n\n'))
}
