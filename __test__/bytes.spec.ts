import { Worker } from 'node:worker_threads'
import test from 'ava'
import { decodeBase64, encodeBase64, type Bytes } from '../src/index.ts'
import { runScenario } from './fixtures/child.ts'
import { inChunks, noise } from './fixtures/text.ts'

/** Long enough for a task. */
const SIZE = 1_500_000

function textOf(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString('base64'))
}

/** Exactly its own ArrayBuffer. */
function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes)
}

test('what the caller does after the call changes nothing', async (t) => {
  const bytes = noise(SIZE)
  const text = textOf(bytes)
  const copies = [text, new Uint8Array(text), Buffer.from(text)]
  const chunks = copies.map((copy) => copy.subarray(0, 1000))
  const whole = copies.map((copy) => decodeBase64(copy))
  const parts = decodeBase64(chunks)
  const encoded = encodeBase64(bytes)
  const expected = textOf(bytes)
  for (const copy of copies) copy.fill(42)
  chunks.length = 0
  bytes.fill(0)
  for (const result of await Promise.all(whole)) t.true(result.equals(noise(SIZE)))
  t.is((await parts).length, 2250)
  t.true((await encoded).equals(expected))
})

test('without transfer the input stays the caller’s', async (t) => {
  const text = textOf(noise(SIZE))
  await decodeBase64(text)
  t.is(text.length, 2_000_000)
})

test('with transfer a view of its whole ArrayBuffer is taken and left empty', async (t) => {
  for (const size of [3, 30_000, SIZE]) {
    const bytes = noise(size)
    const text = owned(textOf(bytes))
    const decoding = decodeBase64(text, { transfer: true })
    t.is(text.byteLength, 0)
    t.true((await decoding).equals(bytes))
    const input = owned(bytes)
    const encoding = encodeBase64(input, { transfer: true })
    t.is(input.byteLength, 0)
    t.true((await encoding).equals(textOf(bytes)))
    const { buffer } = owned(textOf(bytes))
    const decodingBuffer = decodeBase64(buffer, { transfer: true })
    t.is(buffer.byteLength, 0)
    t.true((await decodingBuffer).equals(bytes))
  }
})

test('with transfer chunks are taken one by one', async (t) => {
  const bytes = noise(SIZE)
  const text = textOf(bytes)
  const chunks = [owned(text.subarray(0, 100_001)), text.subarray(100_001, 100_007), owned(text.subarray(100_007))]
  const decoding = decodeBase64(chunks, { transfer: true })
  t.deepEqual(
    chunks.map((chunk) => chunk.byteLength),
    [0, 6, 0],
  )
  t.true((await decoding).equals(bytes))
  const taken: Uint8Array[] = []
  const stream = (async function* () {
    for await (const chunk of inChunks(text, 99_999)) {
      taken.push(owned(chunk))
      yield taken.at(-1) ?? chunk
    }
  })()
  t.true((await decodeBase64(stream, { transfer: true })).equals(bytes))
  t.true(taken.every((chunk) => chunk.byteLength === 0))
})

test('with transfer memory that stands in the list twice is copied', async (t) => {
  const chunk = owned(Buffer.alloc(99_999, 'QUJD'))
  const expected = Buffer.alloc((99_999 / 4) * 9, 'ABC')
  const decoded = await decodeBase64([chunk, chunk.subarray(), new Uint8Array(chunk.buffer)], {
    transfer: true,
    mode: 'node',
  })
  t.is(chunk.byteLength, 99_999)
  t.deepEqual(decoded, Buffer.from(Buffer.concat([chunk, chunk, chunk]).toString('latin1'), 'base64'))
  t.true(decoded.length <= expected.length)
})

test('a refused call takes nothing', async (t) => {
  const text = owned(textOf(noise(SIZE)))
  const rejections = [
    decodeBase64(text, { transfer: true, signal: AbortSignal.abort() }),
    decodeBase64([text, new Uint8Array(1), JSON.parse('{}')], { transfer: true }),
    decodeBase64(text, { transfer: true, mode: JSON.parse('"none"') }),
    encodeBase64(text, { transfer: true, signal: AbortSignal.abort() }),
  ]
  for (const rejection of rejections) await t.throwsAsync(rejection, { any: true })
  t.is(text.byteLength, 2_000_000)
})

function resizableCopy(bytes: Uint8Array): Uint8Array {
  const buffer: ArrayBuffer = Reflect.construct(ArrayBuffer, [bytes.length, { maxByteLength: bytes.length * 2 }])
  const view = new Uint8Array(buffer)
  view.set(bytes)
  return view
}

function sharedCopy(bytes: Uint8Array): Uint8Array {
  const view = new Uint8Array(new SharedArrayBuffer(bytes.length))
  view.set(bytes)
  return view
}

function growableCopy(bytes: Uint8Array): Uint8Array {
  const memory: SharedArrayBuffer = Reflect.construct(SharedArrayBuffer, [
    bytes.length,
    { maxByteLength: bytes.length * 2 },
  ])
  const view = new Uint8Array(memory, 0, bytes.length)
  view.set(bytes)
  Reflect.apply(Reflect.get(memory, 'grow'), memory, [bytes.length * 2])
  return view
}

function wasmCopy(bytes: Uint8Array): Uint8Array {
  const memory: { buffer: ArrayBuffer } = Reflect.construct(
    Reflect.get(Reflect.get(globalThis, 'WebAssembly'), 'Memory'),
    [{ initial: Math.ceil(bytes.length / 65_536) }],
  )
  const view = new Uint8Array(memory.buffer, 0, bytes.length)
  view.set(bytes)
  return view
}

const COPIED: readonly (readonly [what: string, make: (bytes: Uint8Array) => Uint8Array])[] = [
  ['a partial view', (bytes) => Buffer.concat([Buffer.alloc(64), bytes, Buffer.alloc(64)]).subarray(64, -64)],
  ['a resizable buffer', resizableCopy],
  ['shared memory', sharedCopy],
  ['shared memory that grows', growableCopy],
  ['a WebAssembly memory', wasmCopy],
]

for (const [what, make] of COPIED) {
  test(`with transfer ${what} is copied`, async (t) => {
    for (const size of [300, SIZE]) {
      const bytes = noise(size)
      const text = make(textOf(bytes))
      const length = text.byteLength
      t.true((await decodeBase64(text, { transfer: true })).equals(bytes))
      t.true((await decodeBase64(text)).equals(bytes))
      t.true((await encodeBase64(make(bytes), { transfer: true })).equals(textOf(bytes)))
      t.true((await encodeBase64(make(bytes))).equals(textOf(bytes)))
      t.is(text.byteLength, length)
    }
  })
}

test('Node’s pool survives a view of all of it', async (t) => {
  const pooled = Buffer.from('QUJD')
  const wholePool = new Uint8Array(pooled.buffer)
  t.true(wholePool.length > pooled.length)
  await decodeBase64(wholePool, { transfer: true, mode: 'node' })
  await encodeBase64(wholePool, { transfer: true })
  t.is(wholePool.length, pooled.buffer.byteLength)
  t.is(Buffer.from('still there').toString(), 'still there')
})

test('memory marked as untransferable, and memory that is not V8’s, is copied', async (t) => {
  const ended = await runScenario('bytes', 'untransferable')
  t.is(ended.stdout, 'played\n', ended.stderr)
})

function isAlone(bytes: Bytes): boolean {
  const { buffer } = bytes
  const clone = structuredClone(buffer, { transfer: [buffer] })
  return bytes.byteLength === 0 && clone.byteLength > 0
}

test('results of 64 KiB or more have an ArrayBuffer of their own, which can be transferred', async (t) => {
  for (const size of [65_536, 65_537, 300_000, SIZE]) {
    const bytes = noise(size)
    const text = textOf(bytes)
    t.true(isAlone(await decodeBase64(text)))
    t.true(isAlone(await decodeBase64(text.toString('latin1'))))
    t.true(isAlone(await decodeBase64(inChunks(text, 10_000))))
    t.true(isAlone(await decodeBase64(owned(text), { transfer: true })))
    t.true(isAlone(await encodeBase64(bytes)))
  }
})

test('what lies behind a result in its ArrayBuffer is zero', async (t) => {
  const text = Buffer.from(noise(SIZE).toString('base64').replaceAll(/.{10}/g, '$& '))
  const bytes = await decodeBase64(text)
  t.true(new Uint8Array(bytes.buffer, bytes.length).every((byte) => byte === 0))
  for (const small of [Buffer.from(`QUJD${' '.repeat(120_000)}`), Buffer.from(`QUJD${' '.repeat(400_000)}`)]) {
    for (const form of [small, small.toString('latin1')]) {
      const result = await decodeBase64(form)
      t.is(result.toString(), 'ABC')
      t.true(new Uint8Array(result.buffer, 3).every((byte) => byte === 0))
    }
  }
  const own = owned(text)
  const inPlace = await decodeBase64(own, { transfer: true })
  t.true(inPlace.length < inPlace.buffer.byteLength)
  t.true(new Uint8Array(inPlace.buffer, inPlace.length).every((byte) => byte === 0))
})

test('a result can be the input of the next call', async (t) => {
  let bytes = noise(SIZE)
  const expected = Buffer.from(bytes)
  for (let round = 0; round < 5; round += 1) {
    bytes = await encodeBase64(bytes, { transfer: true })
    bytes = await decodeBase64(bytes, { transfer: true })
  }
  t.true(bytes.equals(expected))
})

test('a result transferred to a worker is read there', async (t) => {
  const bytes = await decodeBase64(textOf(noise(SIZE)))
  const code = `require('node:worker_threads').parentPort.once('message', (bytes) => {
    require('node:worker_threads').parentPort.postMessage(Buffer.from(bytes).toString('base64').length)
  })`
  const worker = new Worker(code, { eval: true, execArgv: [] })
  const answer = new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  worker.postMessage(bytes, [bytes.buffer])
  t.is(bytes.length, 0)
  t.is(await answer, 2_000_000)
  await worker.terminate()
})

test('an input that is a view of Node’s pool may reach into the place of the result', async (t) => {
  const ended = await runScenario('bytes', 'pooled')
  t.is(ended.stdout, 'played\n', ended.stderr)
})

test('a web stream is unlocked at its end, after an error and after an abort', async (t) => {
  const good = new Blob(['QUJD']).stream()
  t.is((await decodeBase64(good)).toString(), 'ABC')
  const bad = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(new Error('mine')) })
  await t.throwsAsync(decodeBase64(bad), { message: 'mine' })
  const controller = new AbortController()
  const silent = new ReadableStream<Uint8Array>()
  const call = decodeBase64(silent, { signal: controller.signal })
  controller.abort('enough')
  t.is(await call.catch((reason: unknown) => reason), 'enough')
  await new Promise((resolve) => setImmediate(resolve))
  t.deepEqual([good.locked, bad.locked, silent.locked], [false, false, false])
})

test('an iterator of plain results, or one that fails to end, is read and refused all the same', async (t) => {
  const results = [
    { done: false, value: Buffer.from('QUJD') },
    { done: true, value: undefined },
  ]
  const plain = (signal?: AbortSignal): unknown => {
    const left = [...results]
    const iterable = { [Symbol.asyncIterator]: () => ({ next: () => left.shift() }) }
    return Reflect.apply(decodeBase64, undefined, [iterable, { signal }])
  }
  t.is(String(await plain()), 'ABC')
  t.is(String(await plain(new AbortController().signal)), 'ABC')
  for (const end of [() => ({ done: true }), () => Promise.reject(new Error('end')), throwing]) {
    const iterable = { [Symbol.asyncIterator]: () => ({ next: async () => ({ value: 'text' }), return: end }) }
    const call: unknown = Reflect.apply(decodeBase64, undefined, [iterable])
    await t.throwsAsync(Promise.resolve(call), { code: 'ERR_INVALID_ARG_TYPE' })
  }
})

function throwing(): never {
  throw new Error('end')
}

test('chunks that are copied between taken ones need no large blocks', async (t) => {
  const text = Buffer.alloc(36_864, 'QUJD')
  const before = process.memoryUsage().rss
  const mixed = (async function* () {
    for (let index = 0; index < 300; index += 1) yield index % 2 === 0 ? owned(text) : text.subarray(4)
  })()
  const bytes = await decodeBase64(mixed, { transfer: true })
  t.is(bytes.length, ((150 * 36_864 + 150 * 36_860) / 4) * 3)
  t.true(process.memoryUsage().rss - before < 200e6)
})

test('a stream that fails rejects with its error', async (t) => {
  const failing = (async function* () {
    yield Buffer.from('QUJD')
    throw new RangeError('mine')
  })()
  await t.throwsAsync(decodeBase64(failing), { instanceOf: RangeError, message: 'mine' })
  const errored = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(new RangeError('web')) })
  await t.throwsAsync(decodeBase64(errored), { instanceOf: RangeError, message: 'web' })
})

test('a stream of something else is refused and ended', async (t) => {
  let isEnded = false
  const strings = (async function* () {
    try {
      yield 'QUJD'
    } finally {
      isEnded = true
    }
  })()
  await t.throwsAsync(Promise.resolve(Reflect.apply(decodeBase64, undefined, [strings])), {
    code: 'ERR_INVALID_ARG_TYPE',
  })
  t.true(isEnded)
})

test('built-ins patched after import change no bytes', async (t) => {
  const ended = await runScenario('bytes', 'patched')
  t.is(ended.stdout, 'played\n', ended.stderr)
})
