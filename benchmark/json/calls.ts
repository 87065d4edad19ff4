/**
 * Encodes one value again and again, from the first call of a process on. A process for each value, way and heap;
 * `cold.ts` starts it.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { encode, release } from '../../src/index.ts'
import { answerTo } from '../channel.ts'
import { fillHeap } from '../heap.ts'
import { COLD_SHAPES } from './values.ts'

export interface CallsOrder {
  readonly name: string
  readonly way: 'plain' | 'offloop'
  readonly heapMb: number
  readonly calls: number
}

/** Milliseconds of loop time of each call, in order: until the loop is idle again. */
export type CallsCost = readonly number[]

answerTo('measure', async ({ name, way, heapMb, calls }: CallsOrder): Promise<CallsCost> => {
  const shape = COLD_SHAPES.find((one) => one.name === name)
  if (shape === undefined) throw new Error(`no shape '${name}'`)
  const value = shape.make()
  if (heapMb !== 0) fillHeap(heapMb)
  const options = shape.typedArrays === undefined ? undefined : { typedArrays: shape.typedArrays }
  const replacer = options === undefined ? undefined : plainArrays
  // The loop's own code, and what V8 has to do for the value above.
  for (let turn = 0; turn < 5; turn += 1) await sleep(2)
  const costs: number[] = []
  for (let call = 0; call < calls; call += 1) {
    const before = performance.eventLoopUtilization()
    if (way === 'plain') await encodePlainly(value, replacer)
    else release(await encode(value, options))
    // What was put off until the loop is idle counts too.
    await sleep(1)
    costs.push(performance.eventLoopUtilization(before).active)
  }
  return costs
})

async function encodePlainly(value: unknown, replacer: ((key: string, value: unknown) => unknown) | undefined): Promise<Buffer> {
  return Buffer.from(JSON.stringify(value, replacer))
}

function plainArrays(_: string, value: unknown): unknown {
  return ArrayBuffer.isView(value) ? Array.from(value as Uint8Array) : value
}
