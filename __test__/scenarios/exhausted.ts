import { Buffer } from 'node:buffer'
import { expect, play } from '../fixtures/scenario.ts'

/** Memory for results runs out. What allocates it is put in place before offloop is imported, which keeps what it finds. */
async function results(): Promise<void> {
  const allocUnsafeSlow = Buffer.allocUnsafeSlow.bind(Buffer)
  let isExhausted = false
  const allocate = (size: number): Buffer => {
    if (isExhausted) throw new RangeError('Array buffer allocation failed')
    return allocUnsafeSlow(size)
  }
  Object.assign(Buffer, { allocUnsafeSlow: allocate })
  const { decodeBase64, encodeBase64, OffloopError, stats } = await import('../../src/index.ts')
  isExhausted = true
  const input = new Uint8Array(2_000_000).fill(65)
  for (const call of [
    decodeBase64(input),
    decodeBase64('A'.repeat(2_000_000)),
    encodeBase64(input, { transfer: true }),
  ]) {
    const error: unknown = await call.catch((reason: unknown) => reason)
    expect(error instanceof OffloopError && error.code === 'ERR_OFFLOOP_TOO_LARGE', 'TOO_LARGE')
    expect(error instanceof Error && error.cause instanceof RangeError, 'its cause')
  }
  const list: unknown = await decodeBase64([input, new Uint8Array(4).fill(65)], { transfer: true }).catch(
    (reason: unknown) => reason,
  )
  expect(list instanceof OffloopError && list.code === 'ERR_OFFLOOP_TOO_LARGE', 'TOO_LARGE of a list')
  expect(input.length === 2_000_000, 'nothing to be taken')
  expect(stats().running === 0 && stats().queued === 0, 'nothing to run')
  expect((await decodeBase64(input, { transfer: true })).length === 1_500_000, 'what needs no memory to go on')
}

await play({ results })
