/**
 * What garbage costs the event loop beside live objects of the program: a pipeline round, bodies over HTTP, and `encode`, each
 * case in a process of its own. `npm run bench -- gc`
 *
 * OFFLOOP_BENCH_QUICK=1: small sizes, few calls; OFFLOOP_BENCH_ONLY=doubles: the rows of such names. Both keep no results.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Child } from './channel.ts'
import type { EncodeCost, EncodeOrder } from './gc/encode.ts'
import type { ReceiveOrder } from './gc/receive.ts'
import type { RoundCost, RoundOrder } from './gc/round.ts'
import { VALUES } from './gc/shapes.ts'
import { median, report, table } from './measure.ts'

const isQuick = process.env['OFFLOOP_BENCH_QUICK'] === '1'
const only = process.env['OFFLOOP_BENCH_ONLY']

/** MB of live objects. */
const LIVE_MB = isQuick ? 16 : 260
const HEAPS = [0, LIVE_MB]
const ROUND = isQuick ? { tokens: 4000, warmRounds: 2, rounds: 3 } : { tokens: 60_000, warmRounds: 15, rounds: 40 }
const BODIES = isQuick ? { size: 1e6, count: 4, atOnce: 2 } : { size: 23e6, count: 32, atOnce: 8 }
const CALLS = isQuick ? { calls: 6, counted: 3 } : { calls: 60, counted: 40 }
/** Processes of a case that takes seconds; the median counts. */
const REPEATS = isQuick ? 1 : 3

const sections: string[] = []
if (isWanted('pipeline')) sections.push(...(await rounds()))
if (isWanted('bodies')) sections.push(...(await bodies()))
const values = Object.keys(VALUES).filter(isWanted)
if (values.length !== 0) sections.push(...(await encoded(values)))
report('Garbage beside live objects', sections)

async function rounds(): Promise<string[]> {
  const rows = [['live MB', 'loop ms of a round', '÷ without a heap', 'new ArrayBuffers']]
  let none = Number.NaN
  for (const heapMb of HEAPS) {
    show(`pipeline, ${heapMb} MB`)
    const costs = await repeat(() => costOfRound(heapMb))
    const loopMs = median(costs.map((cost) => cost.loopMs))
    if (heapMb === 0) none = loopMs
    const made = costs.map((cost) => cost.made).join(', ')
    rows.push([String(heapMb), loopMs.toFixed(2), (loopMs / none).toFixed(2), made])
  }
  return [
    `## A pipeline round\n\nFour bodies of a sample of ${ROUND.tokens} tokens are parsed, their experts concatenated, the sample saved, the next request encoded and released. Mean of ${ROUND.rounds} rounds after ${ROUND.warmRounds} that warm up, median of ${REPEATS} processes. New ArrayBuffers: results that were made after the warm-up, in each process. Goals: at most 1.2 times the loop time without a heap, and no new ArrayBuffer.`,
    table(rows),
  ]
}

async function costOfRound(heapMb: number): Promise<RoundCost> {
  const folder = mkdtempSync(join(tmpdir(), 'offloop-gc-'))
  try {
    return await ask<RoundCost>('gc/round', { heapMb, folder, ...ROUND } satisfies RoundOrder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function bodies(): Promise<string[]> {
  const { size, count, atOnce } = BODIES
  const rows = [['live MB', 'fetch, loop ms', 'client, loop ms', 'fetch ÷ client']]
  const server = new Child('gc/server')
  try {
    const port = await server.ask<number>('start', size)
    for (const heapMb of HEAPS) {
      const cost = async (way: ReceiveOrder['way']): Promise<number> => {
        show(`bodies, ${heapMb} MB, ${way}`)
        const order = { way, port, heapMb, ...BODIES } satisfies ReceiveOrder
        return median(await repeat(() => ask<number>('gc/receive', order)))
      }
      const [fetched, ours] = [await cost('fetch'), await cost('client')]
      rows.push([String(heapMb), fetched.toFixed(0), ours.toFixed(0), ratio(fetched, ours)])
    }
  } finally {
    await server.kill()
  }
  return [
    `## Bodies over HTTP\n\n${count} bodies of ${size / 1e6} MB, ${atOnce} at a time, over loopback from another process; median of ${REPEATS} processes. fetch reads the chunks of \`response.body\` and drops them; the client gives the whole bytes, which are released; its maxIdleBytes is 1 GiB, as eight bodies and their results are more than the default. Every byte of the first ${atOnce} is compared, of the others a sample. Goals with ${LIVE_MB} MB: at least 8 on Node 24, 4 on Node 26, 1.8 on Node 20.`,
    table(rows),
  ]
}

async function encoded(names: readonly string[]): Promise<string[]> {
  const rows = [['value', 'MB', 'live MB', 'plain, loop ms', 'encode, loop ms', 'plain ÷ encode']]
  for (const name of names) {
    for (const heapMb of HEAPS) {
      show(`${name}, ${heapMb} MB`)
      const order = { name, heapMb, ...CALLS }
      const plain = await ask<EncodeCost>('gc/encode', { ...order, way: 'plain' } satisfies EncodeOrder)
      const ours = await ask<EncodeCost>('gc/encode', { ...order, way: 'offloop' } satisfies EncodeOrder)
      rows.push([
        name,
        (ours.size / 1e6).toFixed(2),
        String(heapMb),
        plain.loopMs.toFixed(2),
        ours.loopMs.toFixed(2),
        ratio(plain.loopMs, ours.loopMs),
      ])
    }
  }
  return [
    `## encode\n\nAgainst \`Buffer.from(JSON.stringify(value))\`, whose results are dropped; ours are released. Mean of the loop time of a call, collections included, over the last ${CALLS.counted} of ${CALLS.calls} calls. Goals with ${LIVE_MB} MB on Node 24 / 26: doubles 40 / 10, chat 18 / 5, 16 rollouts 12 / 5.`,
    table(rows),
  ]
}

/** The answer of a process that is started for one question. */
async function ask<A>(name: string, order: object): Promise<A> {
  const child = new Child(name)
  try {
    return await child.ask<A>('measure', order)
  } finally {
    await child.kill()
  }
}

async function repeat<T>(measure: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let index = 0; index < REPEATS; index += 1) results.push(await measure())
  return results
}

function ratio(plain: number, ours: number): string {
  return `${(plain / ours).toFixed(1)}×`
}

function isWanted(name: string): boolean {
  return only === undefined || name.includes(only)
}

function show(name: string): void {
  console.error(`${(performance.now() / 1000).toFixed(0).padStart(4)} s  ${name}`)
}
