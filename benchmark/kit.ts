/**
 * What the kit itself costs: CPU time of a monitor beside an idle process, a sample, a summary, deferred work, a store's calls, a
 * trim. `npm run bench -- kit`
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { createDeferQueue, createRolloutStore, monitorLoop, trimMemory } from '../src/kit/index.ts'
import { Alarm } from '../src/kit/alarm.ts'
import { SampleWindow } from '../src/kit/window.ts'
import { besideHeap, longestBlocks, median, report, table, type HeapCase } from './measure.ts'

const ROUNDS = 5
const IDLE_MS = 10_000
const WINDOW = 10_000
const CALLS = 20_000
const GOAL_PERCENT = 0.1
/** As prime-rl has them. */
const WARN = { p90: 1000, p99: 5000, max: 30_000 }

report('The kit', [
  `## A monitor\n\nCPU time of the process, user and system, in ${IDLE_MS / 1000} s in which it does nothing else; medians of ${ROUNDS} rounds that take turns, in % of a core. Goal: under ${GOAL_PERCENT} % more.`,
  table(await monitors()),
  '## Calls\n\nCPU time of one, collections included.',
  table(await calls()),
  '## trimMemory\n\nAfter 200 MB were freed in pieces of 50 KB, each tenth of which stays. The longest block is of the loop, which is idle but for that.',
  table(await trims()),
  ...(await besideHeap(heapCases())),
])

/** Calls that make objects, and so collections. */
function heapCases(): HeapCase[] {
  const queue = createDeferQueue()
  const store = createRolloutStore<number>()
  const map = new Map<string, number>()
  const times = async (call: (index: number) => unknown): Promise<void> => {
    await Promise.all(Array.from({ length: CALLS }, (_, index) => call(index)))
  }
  return [
    {
      name: `${CALLS} deferred calls`,
      make: () => ({
        plain: { name: '`setImmediate`', run: () => times(() => new Promise((resolve) => setImmediate(resolve))) },
        ours: { name: '`defer`', run: () => times(() => queue.defer(() => 1)) },
      }),
    },
    {
      name: `${CALLS} values put and delivered`,
      make: () => ({
        plain: {
          name: 'a Map',
          run: () => times((index) => (map.set(`${index}`, index), map.get(`${index}`), map.delete(`${index}`))),
        },
        ours: {
          name: '`put` and `deliver`',
          run: () => times((index) => (store.put(`${index}`, index, { bytes: 1 }), store.deliver(`${index}`))),
        },
      }),
    },
  ]
}

async function monitors(): Promise<string[][]> {
  const contenders = [
    { name: 'none', start: () => undefined },
    { name: 'every 100 ms', start: () => monitorLoop() },
    { name: 'every 100 ms, with thresholds', start: () => monitorLoop({ warn: WARN }) },
    { name: 'an empty timer every 100 ms, for comparison', start: emptyTimer },
  ]
  const percents = contenders.map((): number[] => [])
  await idle()
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [index, { start }] of contenders.entries()) {
      const monitor = start()
      percents[index]?.push(await idle())
      monitor?.[Symbol.dispose]()
    }
  }
  const none = median(percents[0] ?? [])
  const rows = contenders.map(({ name }, index) => {
    const percent = median(percents[index] ?? [])
    return [name, percent.toFixed(4), index === 0 ? '' : (percent - none).toFixed(4)]
  })
  return [['monitor', '% of a core', 'more than none'], ...rows]
}

function emptyTimer(): Disposable {
  const timer = setInterval(() => {}, 100)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

/** CPU time of a while, in per cent. */
async function idle(): Promise<number> {
  const before = process.cpuUsage()
  const start = performance.now()
  await sleep(IDLE_MS)
  return spentSince(before) / 10 / (performance.now() - start)
}

async function calls(): Promise<string[][]> {
  const window = new SampleWindow(WINDOW)
  const alarm = new Alarm(window, WARN)
  const add = (sample: number): boolean => alarm.isDue(sample, window.add(sample))
  const store = createRolloutStore<number>()
  const queue = createDeferQueue()
  const rows = [
    ['a sample, with thresholds', timed((index) => add(index % 97), CALLS)],
    ['`lag()` of 10,000 samples', timed(() => window.summarize(), 100)],
    [
      '`put` and `deliver`',
      timed((index) => (store.put(`${index}`, index, { bytes: 1 }), store.deliver(`${index}`)), CALLS),
    ],
    ['`defer`, to the end of its work', await deferred(() => queue.defer(() => 1))],
    ['`defer` inside work', await queue.defer(() => deferred(() => queue.defer(() => 1)))],
    [
      '`setImmediate` and a promise, for comparison',
      await deferred(() => new Promise((resolve) => setImmediate(resolve))),
    ],
  ] as const
  return [['call', 'µs'], ...rows.map(([name, microseconds]) => [name, microseconds.toFixed(2)])]
}

/** CPU time of one call, the median of five stretches, in microseconds. */
function timed(call: (index: number) => unknown, count: number): number {
  const stretches = Array.from({ length: 6 }, () => {
    const before = process.cpuUsage()
    for (let index = 0; index < count; index += 1) call(index)
    return spentSince(before) / count
  })
  return median(stretches.slice(1))
}

async function deferred(call: () => Promise<unknown>): Promise<number> {
  const stretches: number[] = []
  for (let stretch = 0; stretch < 6; stretch += 1) {
    const before = process.cpuUsage()
    await Promise.all(Array.from({ length: CALLS }, call))
    stretches.push(spentSince(before) / CALLS)
  }
  return median(stretches.slice(1))
}

/** Microseconds. */
function spentSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return user + system
}

async function trims(): Promise<string[][]> {
  const rows = [['took, ms', 'longest block, ms', 'RSS before, MB', 'RSS after, MB']]
  for (let round = 0; round < 3; round += 1) {
    const rest = scatter(200 * 2 ** 20)
    globalThis.gc?.()
    await sleep(50)
    let trimmed = { rssBefore: 0, rssAfter: 0 }
    const contender = { name: 'trim', run: async () => (trimmed = await trimMemory()) }
    const [block] = await longestBlocks([contender], 1)
    rows.push([
      (block?.wallMs[0] ?? 0).toFixed(1),
      (block?.firstMs ?? 0).toFixed(1),
      (trimmed.rssBefore / 1e6).toFixed(0),
      (trimmed.rssAfter / 1e6).toFixed(0),
    ])
    if (rest.length === 0) throw new Error('something stays')
  }
  return rows
}

function scatter(bytes: number): Buffer[] {
  const size = 50_000
  const pieces = Array.from({ length: bytes / size }, () => Buffer.allocUnsafeSlow(size).fill(1))
  return pieces.filter((_, index) => index % 10 === 0)
}
