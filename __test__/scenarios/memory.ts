import { decodeBase64, encodeBase64, stats } from '../../src/index.ts'
import { expect, play } from '../fixtures/scenario.ts'
import { inChunks, noise } from '../fixtures/text.ts'

/** Long enough for a task. */
const SIZE = 450_000
const STRING = noise(SIZE).toString('base64')
const TEXT = Buffer.from(STRING)
const BAD = Buffer.from(`${STRING.slice(0, -1)}*`)
/** Decoded in parts. */
const LONG = noise(900_000).toString('base64')
const ENCODED = TEXT.toString('base64').length

/** A call of each form, the failing and the aborted among them: how long its result is, or what its error says. */
const CALLS: readonly (readonly [call: () => Promise<Uint8Array>, outcome: number | RegExp])[] = [
  [() => decodeBase64(TEXT), SIZE],
  [() => decodeBase64(owned(), { transfer: true }), SIZE],
  [() => decodeBase64([TEXT.subarray(0, 9), TEXT.subarray(9)]), SIZE],
  [() => decodeBase64([owned(), new Uint8Array()], { transfer: true }), SIZE],
  [() => decodeBase64(inChunks(TEXT, 300_000)), SIZE],
  [() => decodeBase64(new Blob([TEXT]).stream()), SIZE],
  [() => decodeBase64(LONG), 900_000],
  [() => decodeBase64('QUJD'.repeat(100)), 300],
  [() => encodeBase64(TEXT), ENCODED],
  [() => encodeBase64(owned(), { transfer: true }), ENCODED],
  [() => decodeBase64(BAD), /invalid base64 character/],
  [() => decodeBase64(`${LONG}*`), /invalid base64 character/],
  [() => decodeBase64('QUJD*'), /invalid base64 character/],
  [() => decodeBase64(JSON.parse('1')), /must be a/],
  [() => decodeBase64(failing()), /^mine$/],
  [() => decodeBase64(TEXT, { signal: AbortSignal.abort() }), /aborted/],
  [() => decodeBase64(TEXT, { signal: new AbortController().signal }), SIZE],
  [() => aborted((signal) => decodeBase64(LONG, { signal })), 0],
  [() => aborted((signal) => encodeBase64(TEXT, { signal })), 0],
  [() => aborted((signal) => decodeBase64(inChunks(TEXT, 300_000), { signal })), 0],
]

function owned(): Uint8Array<ArrayBuffer> {
  return new Uint8Array(TEXT)
}

async function* failing(): AsyncGenerator<Uint8Array> {
  yield TEXT
  throw new Error('mine')
}

/** Aborted while it waits or runs, or too late. */
async function aborted(call: (signal: AbortSignal) => Promise<Uint8Array>): Promise<Uint8Array> {
  const controller = new AbortController()
  const outcome = call(controller.signal).catch((reason: unknown) => expect(reason === 'enough', 'the reason'))
  await new Promise((resolve) => setImmediate(resolve))
  controller.abort('enough')
  await outcome
  return new Uint8Array()
}

async function one(index: number): Promise<void> {
  const [call, expected] = CALLS[index % CALLS.length] ?? [async () => owned(), SIZE]
  const outcome: unknown = await call().then(
    ({ length }) => length,
    (error: unknown) => (error instanceof Error ? error.message : error),
  )
  const isRight = typeof expected === 'number' ? outcome === expected : expected.test(String(outcome))
  expect(isRight, `call ${index} to give ${expected}, not ${String(outcome)}`)
}

/** What is used when `count` calls have come and gone, four at a time. */
async function usedAfter(count: number): Promise<NodeJS.MemoryUsage> {
  for (let index = 0; index < count; index += 4) {
    await Promise.all([one(index), one(index + 1), one(index + 2), one(index + 3)])
    if (index % 100 === 0) globalThis.gc?.()
  }
  for (let round = 0; round < 3; round += 1) {
    globalThis.gc?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return process.memoryUsage()
}

const ROUNDS = 4
/**
 * By how much each kind may grow in the round in which it grows least: what V8 and the allocator keep for once is in one
 * of them, a leak is in each. One result in a round that stays is more than that, or forty bytes of each call; of `rss`,
 * which goes up and down by megabytes, three kilobytes of each.
 */
const MOST_GROWTH = { rss: 8e6, heapUsed: 1e5, external: 1e5, arrayBuffers: 1e5 }

async function flat(): Promise<void> {
  const used = [await usedAfter(2000)]
  // oxlint-disable-next-line no-await-in-loop -- one measurement follows the other
  for (let round = 0; round < ROUNDS; round += 1) used.push(await usedAfter(10_000 / ROUNDS))
  for (const kind of ['rss', 'heapUsed', 'external', 'arrayBuffers'] as const) {
    const sizes = used.map((usage) => usage[kind])
    const growth = Math.min(...sizes.slice(1).map((size, round) => size - (sizes[round] ?? 0)))
    expect(growth < MOST_GROWTH[kind], `${kind} to stay where it is: ${sizes.join(', ')}`)
  }
  expect(stats().idleBytes < 16e6, `recycled memory of a few calls, not ${stats().idleBytes}`)
}

await play({ flat })
