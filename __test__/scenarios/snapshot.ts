import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { capture, encode, encodeMsgpack } from '../../src/index.ts'
import { expect, play } from '../fixtures/scenario.ts'

async function patched(): Promise<void> {
  Buffer.prototype.toJSON = function toJSON(this: Buffer): never {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the patched method returns something else
    return `base64:${this.toString('base64')}` as never
  }
  const make = (): unknown => ({ a: Buffer.from('abc'), b: [Buffer.from('d')], c: new Map([[1, Buffer.from('e')]]) })
  const json = '{"a":"base64:YWJj","b":["base64:ZA=="],"c":{}}'
  const msgpack = '83a161c403616263a16291c40164a1638101c40165'
  expect((await encode(make())).toString() === json, 'what encode makes of it')
  expect((await encodeMsgpack(make())).toString('hex') === msgpack, 'what encodeMsgpack makes of it')
  using snapshot = capture(make())
  expect((await snapshot.json()).toString() === json, `the JSON, not ${(await snapshot.json()).toString()}`)
  expect((await snapshot.msgpack()).toString('hex') === msgpack, 'the MessagePack')
  using replaced = capture(make(), {
    replacer: (_, value: unknown) => (typeof value === 'string' ? 'replaced' : value),
  })
  expect((await replaced.json()).toString() === '{"a":"replaced","b":["replaced"],"c":{}}', 'the JSON, replaced')
  expect((await replaced.msgpack()).toString('hex').startsWith('83a161a87265706c61636564'), 'the MessagePack, replaced')
}

const LIMIT = 400 * 2 ** 20

/** Each holds more than 30 MB; two hundred of them are six gigabytes. */
async function memory(): Promise<void> {
  const rows = Array.from({ length: 100_000 }, (_, index) => ({ index, text: 'a text of twenty four ch' }))
  const value = { rows, text: 'x'.repeat(20_000_000), bytes: Buffer.alloc(5_000_000) }
  for (let round = 0; round < 100; round += 1) {
    const snapshot = capture(value)
    expect(snapshot.byteLength > 25_000_000, 'so many bytes to be held')
    snapshot[Symbol.dispose]()
    const { rss } = process.memoryUsage()
    expect(rss < LIMIT, `memory to go back when it is disposed: ${rss} in round ${round}`)
  }
  for (let round = 0; round < 100; round += 1) {
    capture(value)
    // Finalizers run between tasks of the loop.
    if (round % 4 === 0) await sleep(1)
    const { rss } = process.memoryUsage()
    expect(rss < 2 * LIMIT, `memory to go back when it is forgotten: ${rss} in round ${round}`)
  }
  // The engine knows of it by itself; nobody called the collector.
}

/** In a worker: snapshots that are being read, disposed and forgotten. */
function work(): void {
  const rows = Array.from({ length: 30_000 }, (_, index) => ({ index, text: 'a text of twenty four ch' }))
  const snapshots = Array.from({ length: 8 }, () => capture([rows, Buffer.alloc(500_000), 'x'.repeat(400_000)]))
  for (const snapshot of snapshots) void Promise.all([snapshot.json({ sortKeys: true }), snapshot.msgpack()])
  for (const snapshot of snapshots.slice(4)) snapshot[Symbol.dispose]()
  parentPort?.postMessage('begun')
}

async function terminated(): Promise<void> {
  for (let round = 0; round < 6; round += 1) {
    const worker = new Worker(new URL(import.meta.url), { argv: ['worker'] })
    await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
    await sleep(round * 5)
    await worker.terminate()
  }
  expect((await capture([1]).msgpack()).toString('hex') === '9101', 'the bytes of others')
}

if (isMainThread) await play({ patched, memory, terminated })
else work()
