/**
 * Encodes one value again and again, from the first call of a process on, and sends it to a sink. A process for each
 * value, sink, way and heap; `json-calls.ts` starts it. A process of its own compares outputs.
 */

import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Piscina } from 'piscina'
import { encode, encodeSync, release } from '../../src/index.ts'
import { answerTo } from '../channel.ts'
import { many, Random } from '../documents.ts'
import { fillHeap } from '../heap.ts'
import { mean, median } from '../measure.ts'
import type { CallTimes, Sink, Way } from './report.ts'
import { openSink, type Output, type Send } from './sinks.ts'
import { CALL_SHAPES, SYNC_SHAPES, type CallShape, type SyncShape } from './values.ts'

export interface CallsOrder {
  readonly shape: string
  readonly sink: Sink
  readonly way: Way
  readonly heapMb: number
  /** Most calls. */
  readonly calls: number
}

/** Result of a check. */
export interface Checked {
  /** Bytes of the JSON. */
  readonly size: number
  /** Whether the receiver got the bytes of JSON.stringify. */
  readonly isSame: boolean
}

/** Makes an output and lets it go. */
type Call = (isHashed: boolean) => unknown

/** Least loop time that a turn with put-off work takes more than an empty turn. A smaller difference is noise. */
const PUT_OFF_MS = 0.2
const EARLY = 20
const SYNC_VALUES = 16

answerTo('check', (order: CallsOrder): Promise<Checked> => (order.sink === 'sync' ? checkSync(order) : check(order)))
answerTo('measure', async (order: CallsOrder): Promise<CallTimes> => {
  return timesOf(order.sink === 'sync' ? await measureSync(order) : await measure(order))
})

async function measure(order: CallsOrder): Promise<number[]> {
  const { calls = order.calls, isTiny = false } = callShapeOf(order)
  const call = await openCall(order)
  fill(order)
  const most = Math.min(order.calls, calls)
  return isTiny && order.sink === 'bytes' ? await measureGroups(call, most) : await measureEach(call, most)
}

async function measureSync(order: CallsOrder): Promise<number[]> {
  const call = syncCall(syncShapeOf(order), order.way, order.calls)
  fill(order)
  return await measureGroups(call, order.calls)
}

function fill({ heapMb }: CallsOrder): void {
  if (heapMb !== 0) fillHeap(heapMb)
}

function callShapeOf({ shape }: CallsOrder): CallShape {
  const found = CALL_SHAPES.find(({ name }) => name === shape)
  if (found === undefined) throw new Error(`no shape '${shape}'`)
  return found
}

function syncShapeOf({ shape }: CallsOrder): SyncShape {
  const found = SYNC_SHAPES.find(({ name }) => name === shape)
  if (found === undefined) throw new Error(`no shape '${shape}' of encodeSync`)
  return found
}

// ───────────────────────────── outputs ─────────────────────────────

async function check(order: CallsOrder): Promise<Checked> {
  const shape = callShapeOf(order)
  const expected = Buffer.from(stringify(shape.make(), shape))
  const size = expected.length
  try {
    const call = await openCall(order)
    return { size, isSame: (await call(true)) === createHash('sha256').update(expected).digest('hex') }
  } catch (error) {
    // A worker cannot get values that have functions.
    if (order.way === 'worker') return { size, isSame: false }
    throw error
  }
}

async function checkSync(order: CallsOrder): Promise<Checked> {
  const values = many(SYNC_VALUES, new Random(40), syncShapeOf(order).make)
  const isSame = values.every((value) => encodeSync(value).equals(Buffer.from(JSON.stringify(value))))
  return { size: encodeSync(values[0]).length, isSame }
}

// ───────────────────────────── calls ─────────────────────────────

async function openCall(order: CallsOrder): Promise<Call> {
  const shape = callShapeOf(order)
  const value = shape.make()
  const send = await openSink(order.sink)
  if (order.way === 'offloop') return offloopCall(value, shape, send)
  if (order.way === 'worker') return await workerCall(value, shape, send)
  const isText = order.sink !== 'bytes'
  return (isHashed) => {
    return send(async () => (isText ? stringify(value, shape) : Buffer.from(stringify(value, shape))), isHashed)
  }
}

function offloopCall(value: unknown, { typedArrays }: CallShape, send: Send): Call {
  const options = typedArrays === undefined ? undefined : { typedArrays }
  return async (isHashed) => {
    let made: Output | undefined
    const hash = await send(async () => (made = await encode(value, options)), isHashed)
    if (typeof made === 'object') release(made)
    return hash
  }
}

/** The worker is running before the first call. */
async function workerCall(value: unknown, { typedArrays }: CallShape, send: Send): Promise<Call> {
  const filename = new URL('stringify-worker.mjs', import.meta.url).href
  const pool = new Piscina<unknown, Uint8Array<ArrayBuffer>>({ filename, minThreads: 1, maxThreads: 1, execArgv: [] })
  const areArrays = typedArrays === 'array'
  await pool.run({ value: null, areArrays })
  return (isHashed) => send(() => pool.run({ value, areArrays }), isHashed)
}

function syncCall({ make, isUnseen = false }: SyncShape, way: Way, calls: number): Call {
  const values = many(isUnseen ? calls : SYNC_VALUES, new Random(40), make)
  let index = 0
  const next = (): unknown => values[index++ % values.length]
  return way === 'offloop' ? () => encodeSync(next()) : () => Buffer.from(JSON.stringify(next()))
}

function stringify(value: unknown, { typedArrays }: CallShape): string {
  return JSON.stringify(value, typedArrays === 'array' ? asArray : undefined)
}

function asArray(_: string, value: unknown): unknown {
  return value instanceof Int32Array || value instanceof Uint8Array || value instanceof Uint16Array
    ? Array.from(value)
    : value
}

// ───────────────────────────── times ─────────────────────────────

/** Returns the loop time of each call, until the loop is idle again: what was put off until then counts too. */
async function measureEach(call: Call, calls: number): Promise<number[]> {
  await settle()
  const costs: number[] = []
  for (let index = 0; index < calls; index += 1) {
    const before = performance.eventLoopUtilization()
    await call(false)
    await sleep(1)
    costs.push(performance.eventLoopUtilization(before).active)
  }
  return costs
}

/**
 * Returns the loop time of each call, where a turn of the loop takes longer than a call: the first call, and means of the
 * groups behind it. Work that was put off counts where it is more than an empty turn.
 */
async function measureGroups(call: Call, calls: number): Promise<number[]> {
  const turnMs = await settle()
  const half = Math.floor(calls / 2)
  const ends = [1, Math.min(EARLY, half), half, calls]
  const costs: number[] = []
  for (const end of ends) {
    const count = end - costs.length
    const before = performance.eventLoopUtilization()
    for (let index = 0; index < count; index += 1) {
      const done = call(false)
      if (done instanceof Promise) await done
    }
    const { active } = performance.eventLoopUtilization(before)
    const putOff = (await turnOfLoop()) - turnMs
    const cost = active + (PUT_OFF_MS < putOff ? putOff : 0)
    for (let index = 0; index < count; index += 1) costs.push(cost / count)
  }
  return costs
}

/** Waits until V8 is done with the value; returns the loop time of an empty turn. */
async function settle(): Promise<number> {
  const turns: number[] = []
  for (let turn = 0; turn < 15; turn += 1) turns.push(await turnOfLoop())
  return median(turns.slice(5))
}

async function turnOfLoop(): Promise<number> {
  const before = performance.eventLoopUtilization()
  await sleep(1)
  return performance.eventLoopUtilization(before).active
}

function timesOf(costs: readonly number[]): CallTimes {
  return {
    first: costs[0] ?? Number.NaN,
    twenty: mean(costs.slice(0, EARLY)),
    warm: mean(costs.slice(Math.floor(costs.length / 2))),
  }
}
