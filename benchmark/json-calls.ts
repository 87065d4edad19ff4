/**
 * First and warm calls of `encode` and `encodeSync`, against JSON.stringify, against the string handed to a sink, and
 * against a worker thread. Each way has a process of its own; ways take turns. `npm run bench -- json-calls`
 *
 * `--report <path>` also writes the figures as JSON, for `scripts/performance.mjs`.
 * OFFLOOP_BENCH_QUICK=1: few calls, small heaps; OFFLOOP_BENCH_ONLY=chat: the shapes of such names;
 * OFFLOOP_BENCH_SINKS=bytes,sync: those sinks; OFFLOOP_BENCH_HEAPS=0: those heaps.
 */

import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { callSections } from '../scripts/calls-table.mjs'
import { day, machine, revision } from '../scripts/machine.mjs'
import { Child } from './channel.ts'
import { LIVE_MB } from './heap.ts'
import type { CallsOrder, Checked } from './json/calls.ts'
import type { CallReport, CallRow, CallTimes, Sink, Way } from './json/report.ts'
import { CALL_SHAPES, SYNC_SHAPES } from './json/values.ts'
import { median, report } from './measure.ts'

const isQuick = process.env['OFFLOOP_BENCH_QUICK'] === '1'
const only = process.env['OFFLOOP_BENCH_ONLY']

const HEAPS = process.env['OFFLOOP_BENCH_HEAPS']?.split(',').map(Number) ?? [0, isQuick ? 16 : LIVE_MB]
/** Processes of each way; medians count. */
const REPEATS = isQuick ? 1 : 3
const CALLS = isQuick ? 6 : 200
/** A call to a sink takes milliseconds whatever the value. */
const SINK_CALLS = isQuick ? 4 : 60

const WAYS: Readonly<Record<Sink, readonly Way[]>> = {
  bytes: ['plain', 'worker', 'offloop'],
  sync: ['plain', 'offloop'],
  response: ['plain', 'offloop'],
  file: ['plain', 'offloop'],
  fetch: ['plain', 'offloop'],
}
const SINKS: readonly Sink[] = ['bytes', 'sync', 'response', 'file', 'fetch']
const wantedSinks = process.env['OFFLOOP_BENCH_SINKS']?.split(',')

const rows: CallRow[] = []
for (const sink of SINKS) {
  if (wantedSinks !== undefined && !wantedSinks.includes(sink)) continue
  const shapes = sink === 'sync' ? SYNC_SHAPES : CALL_SHAPES
  for (const { name } of shapes) if (only === undefined || name.includes(only)) rows.push(...(await rowsOf(sink, name)))
}
const figures: CallReport = { node: process.versions.node, day: day(), commit: revision(), machine: machine(), rows }
const { values } = parseArgs({ options: { report: { type: 'string' } } })
if (values.report !== undefined) writeFileSync(values.report, `${JSON.stringify(figures)}\n`)
report('First and warm calls', callSections([figures]))

/** Compares the outputs of all ways, then measures each way with each heap. */
async function rowsOf(sink: Sink, shape: string): Promise<CallRow[]> {
  const calls = sink === 'bytes' || sink === 'sync' ? CALLS : SINK_CALLS
  const checks = new Map<Way, Checked>()
  for (const way of WAYS[sink]) {
    show(`${sink}, ${shape}, ${way}: compare`)
    checks.set(way, await ask('check', { shape, sink, way, heapMb: 0, calls }))
  }
  const sound = WAYS[sink].filter((way) => checks.get(way)?.isSame === true)
  for (const way of ['plain', 'offloop'] as const) {
    if (!sound.includes(way)) throw new Error(`${shape}, ${sink}: ${way} gives other bytes`)
  }
  const made: CallRow[] = []
  for (const heapMb of HEAPS) {
    const times = await measureWays(sound, { shape, sink, heapMb, calls })
    const offloop = times.get('offloop')
    if (offloop === undefined) throw new Error(`${shape}, ${sink}: no times`)
    for (const baseline of WAYS[sink]) {
      if (baseline === 'offloop') continue
      const size = checks.get(baseline)?.size ?? Number.NaN
      made.push({ sink, baseline, shape, size, heapMb, plain: times.get(baseline) ?? null, offloop })
    }
  }
  return made
}

/** Returns medians of the processes of each way. Ways take turns, in the opposite order in the next round. */
async function measureWays(ways: readonly Way[], order: Omit<CallsOrder, 'way'>): Promise<Map<Way, CallTimes>> {
  const samples = new Map<Way, CallTimes[]>(ways.map((way) => [way, []]))
  for (let repeat = 0; repeat < REPEATS; repeat += 1) {
    for (const way of repeat % 2 === 0 ? ways : ways.toReversed()) {
      show(`${order.sink}, ${order.shape}, ${way}, ${order.heapMb} MB`)
      samples.get(way)?.push(await ask<CallTimes>('measure', { ...order, way }))
    }
  }
  return new Map([...samples].map(([way, times]) => [way, medianOf(times)]))
}

function medianOf(times: readonly CallTimes[]): CallTimes {
  return {
    first: median(times.map(({ first }) => first)),
    twenty: median(times.map(({ twenty }) => twenty)),
    warm: median(times.map(({ warm }) => warm)),
  }
}

/** Returns the answer of a process that is started for one question. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- both sides are of one version
async function ask<A>(topic: 'check' | 'measure', order: CallsOrder): Promise<A> {
  const child = new Child('json/calls')
  try {
    return await child.ask<A>(topic, order)
  } finally {
    await child.kill()
  }
}

function show(name: string): void {
  console.error(`${(performance.now() / 1000).toFixed(0).padStart(5)} s  ${name}`)
}
