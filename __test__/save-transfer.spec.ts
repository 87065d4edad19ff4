/** Files of values whose bytes are handed over. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { encodeMsgpack, saveFile } from '../src/index.ts'

const LARGE = 300_000

const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
test.after.always(() => rmSync(folder, { recursive: true }))

function bytesOf(size: number, seed = 0): Buffer<ArrayBuffer> {
  return Buffer.from(Uint8Array.from({ length: size }, (_, index) => (index * 31 + seed) & 255).buffer)
}

async function saved(name: string, value: unknown, options: Parameters<typeof saveFile>[2]): Promise<Buffer> {
  const path = join(folder, name)
  const { bytes } = await saveFile(path, value, { durability: 'none', ...options })
  const content = readFileSync(path)
  if (content.length !== bytes) throw new Error('another size')
  return content
}

test('large bytes within a value are taken, the file is the same', async (t) => {
  const make = (): { large: Buffer; small: Buffer; ints: Int32Array; text: string } => ({
    large: bytesOf(LARGE),
    small: bytesOf(1000),
    ints: Int32Array.from({ length: LARGE }, (_, index) => index),
    text: 'ü'.repeat(LARGE),
  })
  const expected = await encodeMsgpack(make())
  const value = make()
  const pending = saved('value', value, { format: 'msgpack', transfer: true })
  t.is(value.large.length, 0)
  t.is(value.ints.length, 0)
  t.is(value.small.length, 1000)
  t.true(expected.equals(await pending))
})

test('the same of JSON', async (t) => {
  const value = { a: bytesOf(LARGE), b: 1 }
  const expected = JSON.stringify({ a: value.a.toString('base64'), b: 1 })
  const json = await saved('json', value, { transfer: true, encode: { typedArrays: 'base64' } })
  t.is(json.toString(), expected)
  t.is(value.a.length, 0)
})

test('what stands in a value twice, covers a part of its memory, or cannot be taken is copied', async (t) => {
  const twice = bytesOf(LARGE, 1)
  const part = bytesOf(LARGE * 2, 2).subarray(1, LARGE)
  const shared = new Uint8Array(new SharedArrayBuffer(LARGE)).fill(3)
  const value = [twice, part, twice, shared, bytesOf(LARGE, 4)]
  const expected = await encodeMsgpack(value)
  t.true(expected.equals(await saved('copied', value, { format: 'msgpack', transfer: true })))
  t.deepEqual(
    value.map(({ length }) => length),
    [LARGE, LARGE - 1, LARGE, LARGE, 0],
  )
})

test('a call that rejects before it starts takes nothing', async (t) => {
  const value = { bytes: bytesOf(LARGE), toJSON: (): never => t.fail() }
  const wrong = {
    bytes: value.bytes,
    get later(): never {
      throw new Error('thrown')
    },
  }
  await t.throwsAsync(saved('wrong', wrong, { format: 'msgpack', transfer: true }), { message: 'thrown' })
  const signal = AbortSignal.abort(new Error('aborted'))
  await t.throwsAsync(saved('wrong', value, { format: 'msgpack', transfer: true, signal }), { message: 'aborted' })
  // @ts-expect-error no boolean
  await t.throwsAsync(saved('wrong', value.bytes, { format: 'bytes', transfer: 1 }), { code: 'ERR_INVALID_ARG_TYPE' })
  t.is(value.bytes.length, LARGE)
  t.false(readdirSync(folder).some((name) => name.startsWith('wrong')))
})

test('bytes are taken as they are; rows are copied', async (t) => {
  const bytes = bytesOf(LARGE)
  const expected = Buffer.from(bytes)
  t.true(expected.equals(await saved('bytes', bytes, { format: 'bytes', transfer: true })))
  t.is(bytes.length, 0)
  const row = { bytes: bytesOf(LARGE) }
  const encode = { typedArrays: 'base64' } as const
  await saved('rows', [row], { format: 'jsonl', transfer: true, encode })
  t.is(row.bytes.length, LARGE)
})

test('an encoder that took bytes copies them in its next call', async (t) => {
  const value = { bytes: bytesOf(LARGE) }
  await saved('first', value, { format: 'msgpack', transfer: true })
  value.bytes = bytesOf(LARGE)
  await saved('second', value, { format: 'msgpack' })
  t.is(value.bytes.length, LARGE)
  t.true(readFileSync(join(folder, 'first')).equals(readFileSync(join(folder, 'second'))))
})
