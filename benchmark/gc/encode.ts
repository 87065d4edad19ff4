/**
 * Encodes one value again and again beside a live heap; results are dropped (plain) or released (ours). A process for each
 * value, way and heap; `gc.ts` starts it.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { encode, release } from '../../src/index.ts'
import { answerTo } from '../channel.ts'
import { fillHeap } from '../heap.ts'
import { VALUES } from './shapes.ts'

export interface EncodeOrder {
  readonly name: string
  readonly way: 'plain' | 'offloop'
  readonly heapMb: number
  readonly calls: number
  /** Calls that count, the last ones. */
  readonly counted: number
}

export interface EncodeCost {
  readonly size: number
  /** Milliseconds of loop time of one call, the mean, collections included. */
  readonly loopMs: number
}

answerTo('measure', async ({ name, way, heapMb, calls, counted }: EncodeOrder): Promise<EncodeCost> => {
  const value = VALUES[name]?.()
  const size = await checkedSize(value)
  fillHeap(heapMb)
  let before = performance.eventLoopUtilization()
  for (let call = 0; call < calls; call += 1) {
    if (call === calls - counted) before = performance.eventLoopUtilization()
    if (way === 'plain') await encodePlainly(value)
    else release(await encode(value))
    // V8's tasks run when the loop turns.
    await nextTurn()
  }
  return { size, loopMs: performance.eventLoopUtilization(before).active / counted }
})

async function encodePlainly(value: unknown): Promise<Buffer> {
  return Buffer.from(JSON.stringify(value))
}

/** The size of the result, which both ways make alike, or this throws. */
async function checkedSize(value: unknown): Promise<number> {
  const bytes = await encode(value)
  if (!bytes.equals(await encodePlainly(value))) throw new Error('encode gives other bytes')
  return bytes.length
}
