/** Segments that tasks print during a capture: without memory for their JSON, and in workers that are terminated. */

import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { encode, encodeSync, stats } from '../../src/index.ts'
import { loadHooks } from '../fixtures/hooks.ts'
import { expect, play } from '../fixtures/scenario.ts'

const NUMBERS = Array.from({ length: 2_000_000 }, (_, index) => index)
const SIZE = JSON.stringify(NUMBERS).length

async function codeOf(call: () => unknown): Promise<unknown> {
  try {
    await call()
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error
  }
  return undefined
}

/** There is no memory for the JSON of a segment. */
async function exhausted(): Promise<void> {
  const hooks = loadHooks()
  for (let round = 0; round < 5; round += 1) {
    hooks.limitMemory(2 ** 20)
    // With a bound of its own, encodeSync does not try the engine.
    for (const call of [() => encode(NUMBERS), () => encodeSync(NUMBERS, { maxDepth: 10 })]) {
      const code = await codeOf(call)
      expect(code === 'ERR_OFFLOOP_TOO_LARGE', `too little memory, not ${String(code)}`)
    }
    hooks.limitMemory(2 ** 40)
    expect((await encode(NUMBERS)).length === SIZE, 'all to be well again')
  }
  expect(stats().running === 0, 'no slot to be held')
}

/** Workers end while tasks print the segments of their tapes. */
async function terminated(): Promise<void> {
  for (let round = 0; round < 8; round += 1) {
    const worker = new Worker(new URL(import.meta.url), { argv: ['worker'] })
    await new Promise((resolve) => worker.once('message', resolve))
    await new Promise((resolve) => setTimeout(resolve, round * 7))
    await worker.terminate()
    expect((await encode(NUMBERS)).length === SIZE, 'this thread to be well')
  }
  expect(stats().running === 0, 'no slot to be held')
}

async function encodeOn(): Promise<void> {
  parentPort?.postMessage('begun')
  for (;;) await Promise.all([encode(NUMBERS), encode(NUMBERS)])
}

if (isMainThread) await play({ exhausted, terminated })
else await encodeOn()
