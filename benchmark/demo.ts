/**
 * `npm start`: 256 responses of 31 MB of base64, four under way at a time, decoded the plain way and with offloop, while a timer
 * that should fire every millisecond notes how late it is.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { decodeBase64, version } from '../src/index.ts'

const BODIES = Number(process.env['BODIES'] ?? 256)
const SIZE = 31_000_000
const AT_ONCE = 4

interface Felt {
  readonly busyMs: number
  readonly longestMs: number
  readonly p99Ms: number
  readonly totalMs: number
  readonly bytes: number
}

const network = new Worker(new URL('./bodies.ts', import.meta.url), { workerData: { size: SIZE } })
const waiting: ((body: Buffer) => void)[] = []
network.on('message', ({ buffer }: Uint8Array) => waiting.shift()?.(Buffer.from(buffer)))

console.log(`offloop ${version}, Node ${process.version}: ${BODIES} bodies of ${SIZE / 1e6} MB of base64`)
await nextBody()
const plain = await feel('plain', (body) => Promise.resolve(Buffer.from(body.toString('latin1'), 'base64')))
const off = await feel('offloop', (body) => decodeBase64(body, { transfer: true }))
await network.terminate()
if (plain.bytes !== off.bytes) throw new Error('the two ways do not agree')

const rows = (
  [
    ['loop held, ms in all', (felt) => felt.busyMs],
    ['longest hold, ms', (felt) => felt.longestMs],
    ['99 % of holds below, ms', (felt) => felt.p99Ms],
    ['took, ms', (felt) => felt.totalMs],
  ] satisfies [string, (felt: Felt) => number][]
).map(([what, of]) => [what, of(plain).toFixed(1), of(off).toFixed(1), `${(of(plain) / of(off)).toFixed(1)}x`])
print([['', 'Buffer.from', 'offloop', ''], ...rows])

async function feel(name: string, decode: (body: Buffer) => Promise<Uint8Array>): Promise<Felt> {
  const lags: number[] = []
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    lags.push(Math.max(0, now - last - 1))
    last = now
  }, 1)
  const start = performance.now()
  const before = performance.eventLoopUtilization()
  let [bytes, done] = [0, 0]
  const take = async (): Promise<void> => {
    while (done < BODIES) {
      done += 1
      show(name, done)
      const { length } = await decode(await nextBody())
      bytes += length
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, take))
  const totalMs = performance.now() - start
  const busyMs = performance.eventLoopUtilization(before).active
  clearInterval(timer)
  lags.sort((a, b) => a - b)
  const at = (share: number): number => lags[Math.ceil(share * lags.length) - 1] ?? 0
  return { busyMs, longestMs: at(1), p99Ms: at(0.99), totalMs, bytes }
}

async function nextBody(): Promise<Buffer> {
  network.postMessage('next')
  const body = await new Promise<Buffer>((resolve) => waiting.push(resolve))
  // A port hands over all messages that are there in one turn; a network would not.
  await nextTurn()
  return body
}

function show(name: string, done: number): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${name} ${done}/${BODIES} ${done === BODIES ? '\n' : ''}`)
}

function print(table: readonly (readonly string[])[]): void {
  for (const [what = '', ...cells] of table) {
    console.log(what.padEnd(26) + cells.map((cell) => cell.padStart(12)).join(''))
  }
}
