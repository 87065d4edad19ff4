/** How much memory a result takes: that of its own bytes, whatever was encoded before it. */

import test from 'ava'
import { createEncoder, stats, type Bytes, type Encoder } from '../src/index.ts'
import { isFull } from './fixtures/extent.ts'

const ROWS = Array.from({ length: 6000 }, (_, id) => ({ id, text: `row ${id}`, score: id / 7, tags: ['a', 'b'] }))

function nested(levels: number): unknown {
  let value: unknown[] = []
  for (let level = 1; level < levels; level += 1) value = [value]
  return value
}

const CONFIG = Array.from({ length: 600 }, (_, index) => ({ a: { b: { c: { d: { e: [index, [index, [index]]] } } } } }))

/** Values whose results are much longer, or much shorter, than most. */
const UNUSUAL: Readonly<Record<string, unknown>> = {
  'control characters': '\u0001'.repeat(150_000),
  'deep arrays': nested(3000),
  'nested objects': CONFIG,
  'small objects': Array.from({ length: 30_000 }, () => ({ a: 1 })),
  zeros: new Float64Array(30_000).fill(0.5),
  emoji: Array.from({ length: 2000 }, () => '😀'.repeat(50)),
}
const ORDINARY: Readonly<Record<string, unknown>> = {
  rows: ROWS,
  doubles: Array.from({ length: 20_000 }, (_, index) => index / 3),
  text: 'some text, nothing else. '.repeat(16_000),
  integers: Array.from({ length: 70_000 }, (_, index) => index),
}

/** Results of one kind, until the unusual one is forgotten. */
const CALLS = isFull ? 12 : 3

const WAYS: Readonly<Record<string, (encoder: Encoder, value: unknown) => Promise<Bytes> | Bytes>> = {
  encode: (encoder, value) => encoder.encode(value),
  encodeSync: (encoder, value) => encoder.encodeSync(value),
  async snapshot(encoder, value) {
    using snapshot = encoder.capture(value)
    return await snapshot.json()
  },
  async msgpack(encoder, value) {
    using snapshot = encoder.capture(value)
    return await snapshot.msgpack()
  },
}

function mostFor({ length }: Bytes): number {
  return length * 1.5 + 64 * 1024
}

for (const space of [undefined, 2]) {
  for (const [way, run] of Object.entries(WAYS)) {
    test(`a result takes at most 1.5 times its length: ${way}, space ${space ?? 'not given'}`, async (t) => {
      for (const [unusual, before] of Object.entries(UNUSUAL)) {
        for (const [ordinary, value] of Object.entries(ORDINARY)) {
          for (const times of isFull ? [1, 12] : [1]) {
            const encoder = createEncoder({ space })
            for (let call = 0; call < times; call += 1) await run(encoder, before)
            for (let call = 0; call < CALLS; call += 1) {
              const result = await run(encoder, value)
              const size = result.buffer.byteLength
              t.true(
                size <= mostFor(result),
                `${ordinary} after ${unusual}, call ${call}: ${size} for ${result.length}`,
              )
            }
          }
        }
      }
    })
  }
}

test('a value that is printed indented does not change what compact results take', async (t) => {
  const encoder = createEncoder()
  using deep = encoder.capture(nested(8000))
  await deep.json({ space: 2 })
  const result = await encoder.encode(ROWS)
  t.true(result.buffer.byteLength <= mostFor(result))
})

test.serial('results of one kind are written to memory of their own, without a copy', async (t) => {
  const wide = ROWS.map((row) => ({ ...row, text: '\u4e2d' }))
  const kinds: [Encoder, unknown, number[]][] = [
    // A text of ASCII characters has as many bytes.
    [createEncoder(), ROWS, [1, 1]],
    // A second task copies the first result; the length of the second is guessed.
    [createEncoder(), wide, [2, 1]],
  ]
  for (const [encoder, value, expected] of kinds) {
    const tasks: number[] = []
    for (let call = 0; call < 2; call += 1) {
      const { completed } = stats()
      await encoder.encode(value)
      tasks.push(stats().completed - completed)
    }
    t.deepEqual(tasks, expected)
  }
})
