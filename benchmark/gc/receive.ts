/**
 * Receives bodies over loopback beside a live heap, and says how long that kept the loop busy. A process for each way and
 * heap; `gc.ts` starts it.
 */

import { answerTo } from '../channel.ts'
import { fillHeap } from '../heap.ts'
import { byteAt, makeBody } from './bytes.ts'
import { createClient } from '../../src/http/index.ts'
import { configure, release } from '../../src/index.ts'

export interface ReceiveOrder {
  readonly way: 'fetch' | 'client'
  readonly port: number
  readonly size: number
  readonly count: number
  readonly atOnce: number
  readonly heapMb: number
}

/** Throws if a piece of the body, which begins at `from`, is wrong. */
type Check = (piece: Uint8Array, from: number) => void

/** Bytes that are looked at while the clock runs: one in so many. */
const STRIDE = 65_521

/** Answers with milliseconds of loop time for all bodies. */
answerTo('measure', async (order: ReceiveOrder): Promise<number> => {
  const { way, port, size, count, atOnce, heapMb } = order
  const receive = way === 'fetch' ? byFetch : byClient
  const url = `http://127.0.0.1:${port}/`
  const batch = (check: Check): Promise<unknown> =>
    Promise.all(Array.from({ length: atOnce }, () => receive(url, size, check)))
  fillHeap(heapMb)
  // Every byte is compared in the batch that warms up.
  await batch(wholeCheck(size))
  const before = performance.eventLoopUtilization()
  for (let done = 0; done < count; done += atOnce) await batch(checkSamples)
  return performance.eventLoopUtilization(before).active
})

async function byFetch(url: string, size: number, check: Check): Promise<void> {
  const { body } = await fetch(url)
  let from = 0
  for await (const chunk of body ?? []) {
    check(chunk, from)
    from += chunk.length
  }
  checkSize(from, size)
}

// As a program does that has eight such bodies under way: their memory and that of their results.
configure({ maxIdleBytes: 1024 * 2 ** 20 })
const client = createClient()

async function byClient(url: string, size: number, check: Check): Promise<void> {
  const { body } = await client.request(url)
  const bytes = await body.bytes()
  check(bytes, 0)
  checkSize(bytes.length, size)
  release(bytes)
}

function wholeCheck(size: number): Check {
  const expected = makeBody(size)
  return (piece, from) => {
    if (!expected.subarray(from, from + piece.length).equals(piece)) throw new Error(`wrong bytes from ${from}`)
  }
}

function checkSamples(piece: Uint8Array, from: number): void {
  for (let index = (STRIDE - (from % STRIDE)) % STRIDE; index < piece.length; index += STRIDE) {
    if (piece[index] !== byteAt(from + index)) throw new Error(`a wrong byte at ${from + index}`)
  }
}

function checkSize(received: number, size: number): void {
  if (received !== size) throw new Error(`${received} bytes of ${size}`)
}
