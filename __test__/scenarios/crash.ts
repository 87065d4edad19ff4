import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import * as binding from '../../binding.js'
import { concatExperts, decodeBase64, encodeBase64, readJsonl, stats, type ExpertsWire } from '../../src/index.ts'
import { expect, play } from '../fixtures/scenario.ts'
import { noise } from '../fixtures/text.ts'

const SIZE = 3_000_000
const BYTES = noise(SIZE)
const TEXT = BYTES.toString('base64')

function owned(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(text))
}

async function transferred(): Promise<void> {
  const calls: Promise<Buffer>[] = []
  for (let round = 0; round < 20; round += 1) {
    const text = owned(TEXT)
    calls.push(decodeBase64(text), decodeBase64([text, new Uint8Array()]))
    structuredClone(text.buffer, { transfer: [text.buffer] })
    const moved = owned(TEXT)
    calls.push(decodeBase64(moved))
    const transfer: unknown = Reflect.get(moved.buffer, 'transfer')
    if (typeof transfer === 'function') Reflect.apply(transfer, moved.buffer, [0])
    const taken = owned(TEXT)
    calls.push(decodeBase64(taken, { transfer: true }))
    expect(taken.length === 0, 'the memory to be taken')
  }
  for (const result of await Promise.all(calls)) expect(result.equals(BYTES), 'the bytes as they were')
}

async function resized(): Promise<void> {
  const calls: Promise<Buffer>[] = []
  for (let round = 0; round < 20; round += 1) {
    const buffer: ArrayBuffer = Reflect.construct(ArrayBuffer, [TEXT.length, { maxByteLength: TEXT.length }])
    const text = new Uint8Array(buffer)
    text.set(Buffer.from(TEXT))
    calls.push(decodeBase64(text), decodeBase64(text, { transfer: true }), decodeBase64(buffer))
    Reflect.apply(Reflect.get(buffer, 'resize'), buffer, [0])
  }
  for (const result of await Promise.all(calls)) expect(result.equals(BYTES), 'the bytes as they were')
}

async function reused(): Promise<void> {
  const first = await encodeBase64(BYTES)
  const calls = [
    decodeBase64(first),
    decodeBase64(first.subarray(0, 1_000_000)),
    encodeBase64(first),
    decodeBase64(first, { transfer: true }),
  ]
  expect(first.length === 0, 'the result to be taken')
  const [whole, part, again, taken] = await Promise.all(calls)
  expect(whole?.equals(BYTES) === true && taken?.equals(BYTES) === true, 'the bytes')
  expect(part?.length === 750_000 && again?.toString('latin1') === Buffer.from(TEXT).toString('base64'), 'the others')
}

function start(task: string): Worker {
  return new Worker(new URL(import.meta.url), { workerData: task, argv: [task] })
}

function messageOf(worker: Worker): Promise<unknown> {
  return new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
}

const tasks: Readonly<Record<string, () => Promise<void>>> = {
  async result() {
    const results = await ofEachKind()
    parentPort?.postMessage(
      results,
      results.filter(({ length }) => SMALL < length).map(({ buffer }) => buffer),
    )
  },
  async moved() {
    const results = await ofEachKind()
    const buffers = results.map(({ buffer }) => buffer)
    const views = results.map(({ byteOffset, length }) => [byteOffset, length] as const)
    const moves = new Map([...new Set(buffers)].map((buffer) => [buffer, move(buffer)]))
    const moved = views.map(([offset, length], index) => {
      const buffer = buffers[index] ?? new ArrayBuffer()
      return new Uint8Array(moves.get(buffer) ?? buffer, offset, length)
    })
    parentPort?.postMessage(
      moved,
      [...moves.values()].filter((memory) => memory !== undefined),
    )
  },
  async queue() {
    const calls = Array.from({ length: 50 }, (_, index) =>
      index % 2 === 0 ? decodeBase64(owned(TEXT)) : decodeBase64(TEXT),
    )
    parentPort?.postMessage('queued')
    await Promise.allSettled(calls)
  },
  /** Many turns handed over at a time, and the rows of a file. */
  async chain() {
    const text = Buffer.alloc(96_000, 7).toString('base64')
    const wire = (): ExpertsWire => ({ data: owned(text), encoding: 'base64', shape: [1000, 12, 8] })
    const chain = (): Promise<unknown> =>
      concatExperts(
        Array.from({ length: 40 }, (_, index) => ({ experts: wire(), start: index * 1000 })),
        { tokens: 40_001, transfer: true },
      )
    const rows = async (): Promise<void> => {
      for await (const _ of readJsonl(fileURLToPath(import.meta.url), { onBadRow: 'skip' }));
    }
    const calls = Array.from({ length: 12 }, () => [chain(), rows()]).flat()
    parentPort?.postMessage('queued')
    await Promise.allSettled(calls)
  },
  async crowd() {
    for (let round = 0; round < 10; round += 1) {
      const result = await decodeBase64(owned(TEXT))
      if (!result.equals(BYTES)) throw new Error('wrong bytes')
    }
    parentPort?.postMessage('done')
  },
}

/** Results of up to this size share memory with others. */
const SMALL = 3000

/** Results of every kind of memory: their own, the caller's, and that which small ones share. */
async function ofEachKind(): Promise<Uint8Array<ArrayBuffer>[]> {
  const small = TEXT.slice(0, SMALL)
  return Promise.all([
    decodeBase64(TEXT),
    decodeBase64(owned(TEXT)),
    decodeBase64(owned(TEXT), { transfer: true }),
    encodeBase64(BYTES),
    encodeBase64(new Uint8Array(BYTES), { transfer: true }),
    decodeBase64(small),
    decodeBase64(Buffer.from(small)),
    encodeBase64(BYTES.subarray(0, SMALL / 2)),
  ])
}

/** What `.transfer()` makes of memory; undefined where there is no such thing, or the memory is not to be had. */
function move(buffer: ArrayBuffer): ArrayBuffer | undefined {
  const transfer: unknown = Reflect.get(buffer, 'transfer')
  if (typeof transfer !== 'function') return undefined
  try {
    return Reflect.apply(transfer, buffer, [])
  } catch (error) {
    // Newer Nodes guard their pool, and nothing else of what there is here.
    expect(buffer.byteLength < 2 ** 17 && error instanceof TypeError, 'no other error')
    return undefined
  }
}

/** Results that went from a worker to here, read after its end: `.transfer()`red before that, or not. */
async function abandoned(): Promise<void> {
  const expected = (await ofEachKind()).map((bytes) => Buffer.from(bytes))
  const kept: Uint8Array[] = []
  for (const task of ['result', 'moved', 'result', 'moved', 'moved']) {
    const worker = start(task)
    const results: unknown = await messageOf(worker)
    await worker.terminate()
    if (Array.isArray(results)) kept.push(...results)
  }
  await collect()
  // Memory that were freed with the worker would now be somebody else's.
  const others = Array.from({ length: 20 }, () => [Buffer.alloc(SIZE, 'x'), Buffer.alloc(SMALL, 'x')])
  for (const [index, bytes] of kept.entries()) {
    const kind = index % expected.length
    expect(expected[kind]?.equals(bytes) === true, `bytes of kind ${kind} of a worker that has ended`)
  }
  expect(kept.length === 5 * expected.length && others.length === 20, 'all results')
}

async function shared(): Promise<void> {
  const memory = new SharedArrayBuffer(TEXT.length)
  const text = new Uint8Array(memory)
  const code = `const bytes = new Uint8Array(require('node:worker_threads').workerData)
    for (;;) bytes.fill(Math.random() * 256)`
  const writer = new Worker(code, { eval: true, workerData: memory, execArgv: [] })
  await new Promise((resolve) => writer.once('online', resolve))
  for (let round = 0; round < 30; round += 1) {
    const results = await Promise.allSettled([
      decodeBase64(text, { mode: 'node' }),
      decodeBase64(text, { transfer: true }),
      decodeBase64(text.subarray(0, 5000), { mode: 'strict' }),
      encodeBase64(text),
    ])
    expect(results[0].status === 'fulfilled' && results[3].status === 'fulfilled', 'modes that never fail not to')
  }
  await writer.terminate()
}

async function terminated(): Promise<void> {
  for (let round = 0; round < 6; round += 1) {
    const workers = ['queue', 'chain', 'queue'].map(start)
    await Promise.all(workers.map(messageOf))
    await Promise.all(workers.map((worker) => worker.terminate()))
  }
  expect((await decodeBase64(TEXT)).equals(BYTES), 'the main thread to go on')
}

async function exits(): Promise<never> {
  for (let index = 0; index < 50; index += 1) void decodeBase64(owned(TEXT))
  const workers = [start('queue'), start('queue')]
  await Promise.all(workers.map(messageOf))
  process.exit(7)
}

async function collect(): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    globalThis.gc?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function crowded(): Promise<void> {
  const workers = Array.from({ length: 8 }, () => start('crowd'))
  await Promise.all(workers.map(messageOf))
  await Promise.all(workers.map((worker) => worker.terminate()))
  expect(stats().running === 0, 'no slot to be held')
}

/** Past the facade: what the glue does with arguments that native.ts never gives it. */
async function garbage(): Promise<void> {
  const values: readonly unknown[] = [
    undefined,
    null,
    1,
    NaN,
    'x',
    {},
    [],
    () => 1,
    new Uint16Array(2),
    new Uint8Array(2),
    Symbol('s'),
  ]
  const functions = Object.values(binding).filter((value) => typeof value === 'function')
  expect(functions.length > 10, 'the functions of the addon')
  for (const target of functions) {
    for (const value of values) {
      for (const args of [[], [value], [value, value, value], [value, value, value, value, value]]) {
        try {
          const { prototype } = target
          const result: unknown =
            prototype === undefined ? Reflect.apply(target, undefined, args) : Reflect.construct(target, args)
          await Promise.resolve(result)
        } catch {
          // Whatever it throws; it must only not crash.
        }
      }
    }
  }
  binding.setConcurrency(2, false)
  binding.setMaxIdleBytes(2 ** 27)
  binding.releaseSlot()
  expect((await decodeBase64(TEXT)).equals(BYTES), 'the addon to work still')
}

if (isMainThread) {
  await play({ transferred, resized, reused, abandoned, shared, terminated, exits, crowded, garbage })
} else {
  await tasks[String(workerData)]?.()
}
