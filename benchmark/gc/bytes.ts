/** The body that `server.ts` sends and `receive.ts` checks: each process makes its own. Runs on their JS threads. */

/** Bytes that tell their place: a chunk that is missing, doubled or moved is noticed. */
export function makeBody(size: number): Buffer {
  const body = Buffer.allocUnsafeSlow(size)
  for (let index = 0; index < size; index += 1) body[index] = byteAt(index)
  return body
}

export function byteAt(index: number): number {
  return (index + (index >>> 8) * 7 + (index >>> 16) * 13) & 0xff
}
