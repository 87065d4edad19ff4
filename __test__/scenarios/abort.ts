/** Tasks that are stopped while they run: what they have done by then is counted, in looks at the flag and in bytes. */

import {
  Base64Alphabet,
  Base64Decoder,
  Base64Mode,
  decodeBase64 as decodeInTask,
  decodeBase64InPlace,
  decodeBase64Part,
  encodeBase64 as encodeInTask,
  InputBytes,
  Stop,
  type Failure,
} from '../../binding.js'
import { decodeBase64, encode, encodeBase64, parse, readJsonl, stats } from '../../src/index.ts'
import { ABORTED } from '../../src/runtime/native.ts'
import { makeFile } from '../fixtures/folder.ts'
import { loadHooks } from '../fixtures/hooks.ts'
import { expect, play } from '../fixtures/scenario.ts'
import { inChunks } from '../fixtures/text.ts'

const hooks = loadHooks()
/** As in the addon: what is decoded, encoded or cleared between two looks. */
const PIECE = 3 << 18
const CLEARED = 1 << 20
const { Forgiving } = Base64Mode
const { Standard } = Base64Alphabet
/** What no result here holds. */
const UNTOUCHED = 0xaa

function sourceOf(...parts: readonly Uint8Array[]): InputBytes {
  const source = new InputBytes()
  for (const part of parts) source.copy(part)
  return source
}

/** Runs a task that is stopped at a look: it must write exactly the first `size` bytes of its memory, in the pieces before that. */
async function stopped(
  what: string,
  look: number,
  size: number,
  memory: Buffer,
  launch: (memory: Buffer, stop: Stop) => Promise<number | Failure>,
): Promise<void> {
  const before = Buffer.from(memory)
  hooks.stopAtLook(look)
  const outcome = await launch(memory, new Stop())
  expect(typeof outcome === 'object' && outcome.code === ABORTED, `${what} to be stopped`)
  expect(hooks.looksLeft() === 0, `${what} to have looked ${look} times`)
  expect(memory.subarray(size).equals(before.subarray(size)), `${what} to end with the piece under way`)
  const last = memory.subarray(Math.max(0, size - 1000), size)
  expect(!last.equals(before.subarray(Math.max(0, size - 1000), size)), `${what} to go on until then`)
}

/** Memory for a result. */
function room(size: number): Buffer {
  return Buffer.alloc(size, UNTOUCHED)
}

/** Behind a short result: white space is decoded, in eight looks, and leaves nearly all of its memory to be cleared. */
async function clears(): Promise<void> {
  const text = Buffer.alloc(8 * PIECE, 'QUJD'.padEnd(PIECE))
  const size = 3 * 8
  const part = (memory: Buffer, stop: Stop): Promise<number | Failure> =>
    decodeBase64Part(new Base64Decoder(Forgiving, Standard), sourceOf(text), memory, true, stop)
  for (const [what, launch] of [
    ['clearing', (memory, stop) => decodeInTask(sourceOf(text), memory, Forgiving, Standard, stop)],
    ['clearing behind parts', part],
  ] satisfies readonly [string, (memory: Buffer, stop: Stop) => Promise<number | Failure>][]) {
    await stopped(what, 8 + 1, size, room(6 * PIECE), launch)
    await stopped(what, 8 + 3, size + 2 * CLEARED, room(6 * PIECE), launch)
  }
}

/** Two pieces are done when the third look finds the flag raised. */
async function ends(): Promise<void> {
  const text = Buffer.alloc(8 * PIECE, 'QUJD')
  const decoded = 2 * PIECE * (3 / 4)
  await stopped('decoding', 3, decoded, room(6 * PIECE), (memory, stop) =>
    decodeInTask(sourceOf(text), memory, Forgiving, Standard, stop),
  )
  await stopped('decoding chunks', 3, decoded, room(6 * PIECE), (memory, stop) => {
    const source = sourceOf(text.subarray(0, PIECE))
    source.take(new Uint8Array(text.subarray(PIECE)))
    return decodeInTask(source, memory, Forgiving, Standard, stop)
  })
  await stopped('decoding in place', 3, decoded, Buffer.from(text), (memory, stop) =>
    decodeBase64InPlace(memory, Forgiving, Standard, stop),
  )
  await stopped('decoding a second part', 2, 5 * PIECE * (3 / 4), room(6 * PIECE), async (memory, stop) => {
    const decoder = new Base64Decoder(Forgiving, Standard)
    const [first, second] = [text.subarray(0, 4 * PIECE), text.subarray(4 * PIECE)]
    expect((await decodeBase64Part(decoder, sourceOf(first), memory, false)) === 3 * PIECE, 'the first part')
    return decodeBase64Part(decoder, sourceOf(second), memory, true, stop)
  })
  await stopped('encoding', 3, 2 * PIECE * (4 / 3), room(8 * PIECE * (4 / 3)), (memory, stop) =>
    encodeInTask(sourceOf(text), memory, Standard, true, stop),
  )
}

async function countRows(batches: AsyncIterable<readonly unknown[]>): Promise<number> {
  let count = 0
  for await (const rows of batches) count += rows.length
  return count
}

/** More looks than any call takes. */
const MANY = 1_000_000

/** Whichever of its looks finds the flag raised, a call is stopped by it; and it has as many looks as its work has pieces. */
async function calls(): Promise<void> {
  const text = Buffer.alloc(8 * PIECE, 'QUJD')
  const spaces = Buffer.alloc(8 * PIECE, 'QUJD'.padEnd(PIECE))
  const body = Buffer.from(`{"a":"${spaces.toString('latin1')}"}`)
  const numbers = Array.from({ length: 400_000 }, (_, index) => index / 3)
  const { signal } = new AbortController()
  const owned = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes)
  const clearing = Math.floor((6 * PIECE) / CLEARED)
  // Looked through for marks, copied, and read, 64 KiB at a time.
  const path = makeFile(`{"text":"${'#'.repeat(CLEARED)}number:","score":NaN}\n`)
  for (const [what, least, call] of [
    ['bytes', 8, () => decodeBase64(text, { signal })],
    ['white space', 8 + clearing, () => decodeBase64(spaces, { signal })],
    ['taken bytes', 8, () => decodeBase64(owned(text), { signal, transfer: true })],
    ['chunks', 8, () => decodeBase64([text.subarray(0, PIECE), text.subarray(PIECE)], { signal })],
    ['a stream', 8, () => decodeBase64(inChunks(text, PIECE / 2), { signal })],
    ['a string', 8, () => decodeBase64(text.toString('latin1'), { signal })],
    ['a string of white space', 8 + clearing, () => decodeBase64(spaces.toString('latin1'), { signal })],
    ['bytes to be encoded', 8, () => encodeBase64(text, { signal })],
    ['taken bytes to be encoded', 8, () => encodeBase64(owned(text), { signal, transfer: true })],
    ['white space in a body', 8 + clearing, () => parse(body, { signal, lift: { '/a': 'base64' } })],
    ['a value', 2, () => encode(numbers, { signal })],
    ['a row of a file', 48, () => countRows(readJsonl(path, { as: 'value', signal }))],
    ['a field of a row', 48, () => countRows(readJsonl(path, { fields: ['/score'], signal }))],
    ['a row with a lift', 48, () => countRows(readJsonl(path, { as: 'value', lift: { '/text': 'drop' }, signal }))],
  ] satisfies readonly [string, number, () => Promise<unknown>][]) {
    hooks.stopAtLook(MANY)
    await call()
    const looks = MANY - hooks.looksLeft()
    expect(least <= looks, `${what} to be given ${least} looks, not ${looks}`)
    for (let look = 1; look <= looks; look += 1) {
      hooks.stopAtLook(look)
      // The signal has not aborted: what the call is rejected with is the reason it has not.
      const isStopped = await call().then(
        () => false,
        (reason: unknown) => reason === undefined,
      )
      // The parts of a string are as large as time allows, so its pieces may be fewer now.
      const isOver = least < look && hooks.looksLeft() !== 0
      expect(isStopped || isOver, `${what} to be stopped at look ${look} of ${looks}`)
      expect(stats().running === 0, 'no slot to be held')
    }
  }
}

await play({ clears, ends, calls })
