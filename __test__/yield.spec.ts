/** Streams whose chunks are there already: the loop turns between them. */

import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers'
import test from 'ava'
import { decodeBase64, encodeLines } from '../src/index.ts'

const CHUNKS = 40

/** Each takes a while to make, and none has to be waited for. */
async function* chunksOf<T>(chunk: T): AsyncGenerator<T> {
  for (let index = 0; index < CHUNKS; index += 1) {
    const end = performance.now() + 2
    while (performance.now() < end) continue
    yield chunk
  }
}

/** How often the loop turned meanwhile. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let [turns, isOver] = [0, false]
  const count = (): void => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  await work()
  isOver = true
  return turns
}

const quads = (): Buffer => Buffer.from('QUJD')

test('an async iterable', async (t) => {
  t.true(5 < (await turnsOf(async () => t.is((await decodeBase64(chunksOf(quads()))).length, CHUNKS * 3))))
})

test('a stream of the web', async (t) => {
  const body = ReadableStream.from(chunksOf(quads()))
  t.true(5 < (await turnsOf(async () => t.is((await decodeBase64(body)).length, CHUNKS * 3))))
})

test("a stream of Node's", async (t) => {
  const body = Readable.from(chunksOf(quads()))
  t.true(5 < (await turnsOf(async () => t.is((await decodeBase64(body)).length, CHUNKS * 3))))
})

test('several at once share a turn', async (t) => {
  const body = (): Promise<unknown> => decodeBase64(chunksOf(quads()))
  t.true(10 < (await turnsOf(() => Promise.all(Array.from({ length: 4 }, body)))))
})

test('rows', async (t) => {
  t.true(5 < (await turnsOf(async () => t.is((await encodeLines(chunksOf(1))).length, CHUNKS * 2))))
})

test('an abort while it waits for its turn ends it', async (t) => {
  const ending = new AbortController()
  const pending = decodeBase64(chunksOf(quads()), { signal: ending.signal })
  setImmediate(() => ending.abort(new Error('aborted')))
  await t.throwsAsync(pending, { message: 'aborted' })
})
