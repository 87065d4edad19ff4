/** Random calls, many at once, with aborts, transfers and releases: no result ever shows the bytes of another. */

import { createHash } from 'node:crypto'
import test from 'ava'
import {
  array,
  assert,
  asyncProperty,
  boolean,
  constantFrom,
  integer,
  nat,
  oneof,
  record,
  type Arbitrary,
} from 'fast-check'
import {
  capture,
  concatExperts,
  decodeBase64,
  encode,
  encodeBase64,
  encodeLines,
  encodeMsgpack,
  encodeSync,
  parse,
  release,
  split,
  type Bytes,
} from '../src/index.ts'
import { isFull } from './fixtures/extent.ts'

/** Bytes that only this seed gives. */
function bytesOf(seed: number, size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size)
  const key = createHash('sha256').update(String(seed)).digest()
  for (let index = 0; index < size; index += 1) bytes[index] = (key[index % key.length] ?? 0) ^ (index >> 5)
  return bytes
}

interface Kept {
  readonly bytes: Bytes
  readonly expected: Buffer
}

/** What calls make of bytes; each may take its input. */
const CALLS: readonly ((
  input: Uint8Array<ArrayBuffer>,
  options: { transfer: boolean; signal: AbortSignal },
) => Kept | Promise<Kept>)[] = [
  async (input, options) => {
    const expected = Buffer.from(Buffer.from(input).toString('base64'))
    return { bytes: await encodeBase64(input, options), expected }
  },
  async (input, options) => {
    const text = Buffer.from(Buffer.from(input).toString('base64'))
    const expected = Buffer.from(input)
    return { bytes: await decodeBase64(text, options), expected }
  },
  async (input, { signal }) => {
    const expected = Buffer.from(input)
    return { bytes: await decodeBase64(expected.toString('base64'), { signal }), expected }
  },
  async (input, options) => {
    const expected = Buffer.from(JSON.stringify([Buffer.from(input).toString('base64')]))
    return { bytes: await encode([input], { ...options, typedArrays: 'base64' }), expected }
  },
  async (input, { transfer }) => {
    const expected = Buffer.from(JSON.stringify(Array.from(input)))
    return { bytes: encodeSync(input, { typedArrays: 'array', transfer }), expected }
  },
  async (input, options) => {
    const row = JSON.stringify(Buffer.from(input).toString('base64'))
    const expected = Buffer.from(`${row}\n${row}\n`)
    return { bytes: await encodeLines([input, input], { ...options, typedArrays: 'base64' }), expected }
  },
  async (input, options) => {
    const isShort = input.length < 65_536
    const head = Buffer.alloc(isShort ? 3 : 5)
    head[0] = isShort ? 0xc5 : 0xc6
    head.writeUIntBE(input.length, 1, isShort ? 2 : 4)
    const expected = Buffer.concat([head, input])
    return { bytes: await encodeMsgpack(input, options), expected }
  },
  async (input, { transfer, signal }) => {
    const expected = Buffer.from(JSON.stringify([Buffer.from(input).toString('base64')]))
    using snapshot = capture([input], { typedArrays: 'base64', transfer })
    return { bytes: await snapshot.json({ signal }), expected }
  },
  async (input, options) => {
    const expected = Buffer.from(input)
    const body = Buffer.from(JSON.stringify({ a: expected.toString('base64'), b: [1, 2] }))
    const { a } = await parse<{ a: Bytes }>(body, { ...options, lift: { '/a': 'base64' } })
    return { bytes: a, expected }
  },
  async (input, options) => {
    const expected = Buffer.from(JSON.stringify([Buffer.from(input).toString('base64'), 'é', 1]))
    const { json } = await split([expected.subarray(0, 100), copyOf(expected.subarray(100))], { ...options, lift: {} })
    return { bytes: json, expected }
  },
  async (input, options) => {
    const rows = Math.floor(input.length / 6)
    const expected = Buffer.from(input.subarray(0, rows * 6))
    const data = copyOf(expected)
    const turn = { experts: { data, shape: [rows, 2, 3], dtype: 'uint8' } }
    const { data: bytes } = await concatExperts([turn], { ...options, tokens: rows })
    return { bytes, expected }
  },
]

function copyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(bytes)
}

/** A call, the size of its input, and what happens to it and to earlier results. */
const step = record({
  call: nat(CALLS.length - 1),
  size: oneof(integer({ min: 65_000, max: 66_000 }), integer({ min: 40_000, max: 400_000 })),
  transfer: boolean(),
  isOwn: boolean(),
  abort: constantFrom('never', 'never', 'never', 'at once', 'in a turn'),
  waits: boolean(),
  after: constantFrom('keep', 'release', 'soil and release', 'hand over', 'part', 'transfer away'),
})

type Step = typeof step extends Arbitrary<infer T> ? T : never

class Run {
  readonly #kept: Kept[] = []
  readonly #pending: Promise<void>[] = []
  #seed: number

  constructor(seed: number) {
    this.#seed = seed
  }

  async take({ call, size, transfer, isOwn, abort, waits, after }: Step): Promise<void> {
    this.#seed += 1
    // A result that was kept may become the input of the next call.
    const earlier = isOwn ? this.#kept.pop() : undefined
    const input = earlier !== undefined && 0 < earlier.bytes.length ? earlier.bytes : bytesOf(this.#seed, size)
    const controller = new AbortController()
    const made = CALLS[call]?.(input, { transfer, signal: controller.signal })
    if (abort === 'at once') controller.abort()
    if (abort === 'in a turn') setImmediate(() => controller.abort())
    const ended = Promise.resolve(made).then(
      (kept) => this.#end(kept, after),
      (error: unknown) => {
        if (abort === 'never') throw error
      },
    )
    this.#pending.push(ended)
    if (waits) await ended
    this.check()
  }

  #end(kept: Kept | undefined, after: Step['after']): void {
    if (kept === undefined) return
    const { bytes, expected } = kept
    if (!bytes.equals(expected)) throw new Error('a result has other bytes')
    if (bytes.buffer.byteLength !== bytes.length && 65_536 <= bytes.length && !isClear(bytes)) {
      throw new Error('there is something behind a result')
    }
    if (after === 'soil and release') new Uint8Array(bytes.buffer).fill(0xee)
    if (after === 'soil and release' || after === 'release') release(bytes)
    else if (after === 'part') release(bytes.subarray(0, 70_000))
    else if (after === 'transfer away') structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
    if (after === 'keep' || after === 'hand over' || after === 'part') this.#kept.push(kept)
  }

  check(): void {
    for (const { bytes, expected } of this.#kept) {
      if (bytes.length !== 0 && !bytes.equals(expected)) throw new Error('a kept result has changed')
    }
  }

  async end(): Promise<void> {
    await Promise.all(this.#pending)
    this.check()
  }
}

function isClear(bytes: Bytes): boolean {
  return new Uint8Array(bytes.buffer, bytes.length).every((byte) => byte === 0)
}

test('no result shows the bytes of another', async (t) => {
  let seed = 0
  const steps = array(step, { minLength: 10, maxLength: 60 })
  await assert(
    asyncProperty(steps, async (list) => {
      const run = new Run((seed += 1000))
      // oxlint-disable-next-line no-await-in-loop -- some steps wait for those before
      for (const one of list) await run.take(one)
      await run.end()
    }),
    { numRuns: isFull ? 150 : 15 },
  )
  t.pass()
})
