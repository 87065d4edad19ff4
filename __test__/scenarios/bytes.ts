import { markAsUntransferable } from 'node:worker_threads'
import { decodeBase64, encodeBase64 } from '../../src/index.ts'
import { loadHooks } from '../fixtures/hooks.ts'
import { expect, play } from '../fixtures/scenario.ts'
import { noise } from '../fixtures/text.ts'

const SIZE = 1_500_000

function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

async function untransferable(): Promise<void> {
  for (const size of [300, SIZE]) {
    const text = new Uint8Array(Buffer.from(base64Of(noise(size))))
    markAsUntransferable(text.buffer)
    const { length } = text
    expect((await decodeBase64(text, { transfer: true })).equals(noise(size)), 'the bytes of untransferable memory')
    expect((await encodeBase64(text, { transfer: true })).equals(Buffer.from(base64Of(text))), 'the text of it')
    expect((await decodeBase64([text], { transfer: true })).equals(noise(size)), 'the bytes of a chunk')
    expect(text.length === length && Buffer.from(text).equals(Buffer.from(base64Of(noise(size)))), 'it to stay')
    const external = loadHooks().externalBytes(size * 4)
    const expected = Buffer.from(Buffer.from(external).toString('latin1'), 'base64')
    expect((await decodeBase64(external, { transfer: true })).equals(expected), 'the bytes of external memory')
    expect(external.length === size * 4 && external.every((byte) => byte === 81), 'external memory to stay')
  }
}

async function patched(): Promise<void> {
  const bytes = noise(SIZE)
  const text = bytes.toString('base64')
  const evil = (): never => {
    throw new Error('patched')
  }
  const chunk = new Uint8Array(Buffer.from(text))
  for (const [target, names] of [
    [RegExp.prototype, ['exec', 'test']],
    [String.prototype, ['slice', 'charCodeAt', 'includes']],
    [Buffer, ['from', 'allocUnsafe', 'allocUnsafeSlow']],
    [Uint8Array.prototype, ['subarray', 'set', 'fill']],
    [Buffer.prototype, ['base64Write', 'base64Slice']],
    [globalThis, ['structuredClone']],
  ] as const) {
    for (const name of names) Object.defineProperty(target, name, { value: evil, configurable: true, writable: true })
  }
  for (const name of ['length', 'byteLength', 'byteOffset', 'buffer']) {
    Object.defineProperty(chunk, name, { get: () => 2 ** 31 })
  }
  const results = [
    await decodeBase64(text),
    await decodeBase64(text.substring(0, 400)),
    await decodeBase64(chunk),
    await decodeBase64(chunk, { transfer: true }),
  ]
  expect(results.map((result) => result.length).join(' ') === `${SIZE} 300 ${SIZE} ${SIZE}`, 'the right lengths')
  expect(
    results.every((result, index) => index === 1 || result.equals(bytes)),
    'the right bytes',
  )
  expect((await encodeBase64(bytes)).toString('latin1') === text, 'the right text')
}

/** Overwrites what is in the pool: in a process of its own. */
async function pooled(): Promise<void> {
  const bytes = new Uint8Array(noise(1500))
  const text = Buffer.from(bytes).toString('base64').replaceAll(/.{60}/g, '$& \n')
  const twice = Buffer.from(text).toString('base64')
  for (let round = 0; round < 200; round += 1) {
    const next = Buffer.allocUnsafe(8)
    const start = Math.max(0, Math.min(next.byteOffset - 1500 + round * 8, next.buffer.byteLength - text.length))
    const view = Buffer.from(next.buffer, start, text.length)
    view.write(text, 'latin1')
    expect(Buffer.compare(await decodeBase64(view), bytes) === 0, 'the bytes')
    view.write(text, 'latin1')
    expect((await encodeBase64(view)).toString('latin1') === twice, 'the text')
  }
}

await play({ untransferable, patched, pooled })
