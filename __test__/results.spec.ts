/** The result pool: memory that comes back is used again, and nobody ever sees what others put into it. */

import { Blob } from 'node:buffer'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MessageChannel, Worker } from 'node:worker_threads'
import test from 'ava'
import {
  capture,
  concatExperts,
  configure,
  createEncoder,
  decodeBase64,
  decodeExperts,
  encode,
  encodeBase64,
  encodeLines,
  encodeMsgpack,
  encodeSync,
  openJsonl,
  parse,
  readJsonl,
  release,
  saveFile,
  split,
  stats,
  type Bytes,
  type RoutedExperts,
} from '../src/index.ts'
import { trimMemory } from '../src/kit/index.ts'
import { checkMemory, OWN } from './fixtures/results.ts'
import { runScenario } from './fixtures/child.ts'
import { isFull } from './fixtures/extent.ts'
import { tuning } from '../src/capture/tuning.ts'

// A value that changes its way takes other memory. What costs 10 ms here changes it at some time or other.
tuning.learnFromMs = Infinity

const folder = mkdtempSync(join(tmpdir(), 'offloop-results-'))
test.after.always(() => rmSync(folder, { recursive: true, force: true }))

const ROWS = Array.from({ length: 4000 }, (_, id) => ({ id, text: `row ${id}`, score: id / 7 }))
const BYTES = Buffer.from(Uint8Array.from({ length: 300_000 }, (_, index) => (index * 7) % 251))
const TEXT = BYTES.toString('base64')
const NUMBERS = Array.from({ length: 40_000 }, (_, index) => index)
const BODY = Buffer.from(JSON.stringify({ text: TEXT, raw: NUMBERS, ids: NUMBERS, rest: ROWS }))
const EXPERTS = { data: BYTES, shape: [3000, 10, 10], dtype: 'uint8' } as const

/** A copy in an ArrayBuffer of its own. */
function copyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(bytes)
}

/** Calls that return one result, and what it must hold. */
const CALLS: Readonly<Record<string, readonly [call: () => Promise<Bytes> | Bytes, expected: Uint8Array]>> = {
  encode: [() => encode(ROWS), Buffer.from(JSON.stringify(ROWS))],
  'encode, indented': [() => encode(ROWS, { space: 1 }), Buffer.from(JSON.stringify(ROWS, null, 1))],
  encodeSync: [() => encodeSync(ROWS), Buffer.from(JSON.stringify(ROWS))],
  'encodeSync of a string': [() => encodeSync(TEXT), Buffer.from(JSON.stringify(TEXT))],
  encodeLines: [() => encodeLines(ROWS), Buffer.from(ROWS.map((row) => `${JSON.stringify(row)}\n`).join(''))],
  snapshot: [
    async () => {
      using snapshot = capture(ROWS)
      return await snapshot.json()
    },
    Buffer.from(JSON.stringify(ROWS)),
  ],
  'decodeBase64 of text': [() => decodeBase64(TEXT), BYTES],
  'decodeBase64 of bytes': [() => decodeBase64(Buffer.from(TEXT)), BYTES],
  'decodeBase64 of chunks': [() => decodeBase64([Buffer.from(TEXT), Buffer.from('')]), BYTES],
  'decodeBase64 in place': [() => decodeBase64(copyOf(Buffer.from(TEXT)), { transfer: true }), BYTES],
  encodeBase64: [() => encodeBase64(BYTES), Buffer.from(TEXT)],
  decodeExperts: [async () => (await decodeExperts(EXPERTS)).data, BYTES],
  concatExperts: [async () => (await concatExperts([{ experts: EXPERTS }], { tokens: 3000 })).data, BYTES],
  'split: rest': [
    async () => (await split(BODY, { lift: { '/rest/0/id': 'raw' } })).json,
    Buffer.from(BODY.toString().replace('"id":0', '"id":null')),
  ],
  'parse: base64': [async () => (await parse<{ text: Bytes }>(BODY, { lift: { '/text': 'base64' } })).text, BYTES],
  'parse: raw': [
    async () => (await parse<{ raw: Bytes }>(BODY, { lift: { '/raw': 'raw' } })).raw,
    Buffer.from(JSON.stringify(NUMBERS)),
  ],
  'parse: int32': [
    async () => {
      const { ids } = await parse<{ ids: Int32Array<ArrayBuffer> }>(BODY, { lift: { '/ids': 'int32' } })
      return Buffer.from(ids.buffer, ids.byteOffset, ids.byteLength)
    },
    Buffer.from(Int32Array.from(NUMBERS).buffer),
  ],
}

/** Fills all memory of a result, also what lies behind it. */
function soil(result: Bytes): void {
  new Uint8Array(result.buffer).fill(0xa5)
}

for (const [name, [call, expected]] of Object.entries(CALLS)) {
  test.serial(`${name}: released memory is used again, and nothing shows what was in it`, async (t) => {
    for (let round = 0; round < 3; round += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one result after the other
      const result = await call()
      soil(result)
      release(result)
    }
    const before = stats().results
    for (let round = 0; round < 5; round += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one result after the other
      const result = await call()
      t.true(result.equals(expected))
      // Memory that was taken from the caller is the caller's.
      if (name !== 'decodeBase64 in place') checkMemory(t, result)
      soil(result)
      release(result)
      t.is(result.length, 0)
    }
    const { made, returned } = stats().results
    t.is(made, before.made)
    t.is(returned - before.returned, 5)
  })
}

test.serial('a round of a pipeline makes no ArrayBuffer once it is warm', async (t) => {
  const body = Buffer.from(JSON.stringify({ experts: { ...EXPERTS, data: TEXT }, ids: NUMBERS, more: ROWS }))
  const path = join(folder, 'round')
  const round = async (): Promise<void> => {
    const turns = []
    for (const start of [0, 3000]) {
      // oxlint-disable-next-line no-await-in-loop -- one turn after the other
      const { experts, ids } = await parse<{ experts: RoutedExperts; ids: Int32Array }>(body, {
        lift: { '/experts': 'experts', '/ids': 'int32' },
      })
      release(ids)
      turns.push({ experts, start })
    }
    const experts = await concatExperts(turns, { tokens: 6000, transfer: true })
    const { bytes } = await saveFile(path, { experts }, { format: 'msgpack', durability: 'none', transfer: true })
    t.true(600_000 < bytes)
    t.is(experts.data.length, 0)
    release(await encode(ROWS), await encodeMsgpack({ all: ROWS }))
  }
  for (let warm = 0; warm < 3; warm += 1) await round()
  const { made } = stats().results
  for (let times = 0; times < 5; times += 1) await round()
  t.is(stats().results.made, made)
})

test.serial('calls that fail give the memory of their results back', async (t) => {
  const wrong = `${TEXT.slice(0, -4)}!!!!`
  const fails = [
    () => decodeBase64(wrong),
    () => decodeBase64(Buffer.from(wrong)),
    () => parse(Buffer.from(JSON.stringify({ a: TEXT, b: wrong })), { lift: { '/a': 'base64', '/b': 'base64' } }),
    () => decodeExperts(`nrlre1:uint8:3000x10x10:${wrong}`),
  ]
  for (const [index, fail] of fails.entries()) {
    await t.throwsAsync(fail)
    await t.throwsAsync(fail)
    const { made } = stats().results
    await t.throwsAsync(fail)
    t.is(stats().results.made, made, `call ${index}`)
  }
})

test.serial('release empties whole results, of every type of view', async (t) => {
  const [first, second, third] = [await encode(ROWS), await encode(ROWS), await encode(ROWS)]
  const views = [
    first,
    new DataView(second.buffer, 0, second.length),
    new Uint8ClampedArray(third.buffer, 0, third.length),
  ]
  const { returned } = stats().results
  release(...views)
  t.is(stats().results.returned - returned, 3)
  for (const bytes of [first, second, third]) t.is(bytes.length, 0)
  const experts = await decodeExperts(EXPERTS)
  release(experts)
  t.is(experts.data.length, 0)
  release(experts, ...views)
  t.is(stats().results.returned - returned, 4)
})

test.serial('release leaves alone what is no whole result, and never throws', async (t) => {
  const result = await encode(ROWS)
  const own = new Uint8Array(OWN * 2).fill(1)
  const small = await encode('small')
  const { ids } = await parse<{ ids: Int32Array }>(
    Buffer.from(JSON.stringify({ ids: NUMBERS.slice(0, 9000), x: TEXT })),
    {
      lift: { '/ids': 'int32' },
    },
  )
  const { returned } = stats().results
  const detached = new Uint8Array(8)
  const view = new DataView(detached.buffer)
  structuredClone(detached.buffer, { transfer: [detached.buffer] })
  const evil = {
    get data(): never {
      throw new Error('read')
    },
  }
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  const shared = new Uint8Array(new SharedArrayBuffer(OWN))
  const resizable = Reflect.construct(ArrayBuffer, [OWN, { maxByteLength: OWN * 2 }])
  const odd: unknown[] = [
    result.subarray(0, OWN),
    result.subarray(1),
    new DataView(result.buffer, 8),
    own,
    small,
    ids,
    detached,
    undefined,
    null,
    1,
    'text',
    {},
    [],
    evil,
    proxy,
    () => 1,
    shared,
    new Uint8Array(resizable),
    view,
  ]
  t.notThrows(() => Reflect.apply(release, undefined, odd))
  t.notThrows(() => release())
  t.true(result.equals(Buffer.from(JSON.stringify(ROWS))))
  t.true(own.every((byte) => byte === 1))
  t.is(small.toString(), '"small"')
  t.deepEqual([...ids], NUMBERS.slice(0, 9000))
  t.is(stats().results.returned, returned)
})

test.serial('nobody has a view of what later results use', async (t) => {
  const made: { readonly views: ArrayBufferView[]; readonly name: string; readonly bytes: Buffer }[] = []
  const channel = new MessageChannel()
  const posted: Promise<unknown>[] = []
  const ways: Readonly<Record<string, (result: Bytes) => ArrayBufferView[] | Promise<ArrayBufferView[]>>> = {
    'the result': (result) => [result],
    'sub-views': (result) => [result.subarray(5), new DataView(result.buffer), new Uint8Array(result.buffer, 8, 1000)],
    transferred: (result) => [new Uint8Array(structuredClone(result.buffer, { transfer: [result.buffer] })), result],
    cloned: (result) => [structuredClone(result), result],
    posted: (result) => {
      posted.push(new Promise((resolve) => channel.port2.once('message', resolve)))
      channel.port1.postMessage(result, [result.buffer])
      return [result]
    },
    'in a Blob': async (result) => {
      const blob = new Blob([result])
      return [result, new Uint8Array(await blob.arrayBuffer())]
    },
    'in a stream': async (result) => {
      const stream = new ReadableStream({ start: (controller) => controller.enqueue(result) })
      const { value } = await stream.getReader().read()
      return [result, value]
    },
    'in a Response': async (result) => {
      const response = new Response(result)
      return [result, new Uint8Array(await response.arrayBuffer())]
    },
    'twice in a call': async (result) => {
      const twice = await encodeMsgpack([result, result], { transfer: true })
      return [result, twice]
    },
    'in two calls': async (result) => {
      const both = [encodeMsgpack({ result }, { transfer: true }), encodeMsgpack({ result }, { transfer: true })]
      return [result, ...(await Promise.all(both))]
    },
    'handed over': async (result) => [result, await encodeBase64(result, { transfer: true })],
    'handed over in chunks': async (result) => [
      result,
      (await split([result, Buffer.from(' ')], { transfer: true, lift: {} })).json,
    ],
    'handed over and aborted': async (result) => {
      const controller = new AbortController()
      const call = encodeBase64(result, { transfer: true, signal: controller.signal })
      controller.abort()
      await call.catch(() => undefined)
      return [result]
    },
    released: (result) => {
      const views = [result, new Uint8Array(result.buffer), result.subarray(9)]
      release(result)
      return views
    },
  }
  const rounds = isFull ? 12 : 3
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, keep] of Object.entries(ways)) {
      const value = { round, name, text: 'x'.repeat(200_000 + ((round * 37 + name.length * 1013) % 60_000)) }
      // oxlint-disable-next-line no-await-in-loop -- one result after the other
      const result = await encode(value)
      t.is(result.toString(), JSON.stringify(value))
      const views = await keep(result)
      for (const view of views) made.push({ name, views: [view], bytes: Buffer.from(bytesOf(view)) })
      // Some of all that is kept is released, while others still look.
      if (round % 2 === 1) for (const one of made.splice(0, 3)) release(...one.views)
    }
  }
  for (const { name, views, bytes } of made) {
    for (const view of views) {
      const now = bytesOf(view)
      t.true(now.length === 0 || bytes.equals(now), name)
    }
  }
  for (const message of await Promise.all(posted.slice(0, 1))) t.true(message instanceof Uint8Array)
  channel.port1.close()
})

function bytesOf(view: ArrayBufferView): Uint8Array {
  try {
    return new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
  } catch {
    // TypeError: the memory is gone.
    return new Uint8Array(0)
  }
}

test.serial('a result that was shortened by its owner is not taken for a whole one', async (t) => {
  const result = await encode(ROWS)
  const part = result.subarray(0, OWN)
  const text = await encodeBase64(part, { transfer: true })
  t.is(part.length, OWN)
  t.is(text.toString(), part.toString('base64'))
})

const FLOATS = Float64Array.from({ length: 20_000 }, (_, index) => index / 3)
const TYPED = [
  ['msgpack', (value: unknown, transfer: boolean) => encodeMsgpack(value, { transfer })],
  ['array', (value: unknown, transfer: boolean) => encode(value, { typedArrays: 'array', transfer })],
  ['base64', (value: unknown, transfer: boolean) => encode(value, { typedArrays: 'base64', transfer })],
  ['encodeSync', async (value: unknown, transfer: boolean) => encodeSync(value, { typedArrays: 'base64', transfer })],
  ['lines', (value: unknown, transfer: boolean) => encodeLines([value, value], { typedArrays: 'array', transfer })],
  [
    'lines of a stream',
    (value: unknown, transfer: boolean) =>
      encodeLines(
        (async function* rows() {
          await Promise.resolve()
          yield value
        })(),
        { typedArrays: 'array', transfer },
      ),
  ],
  [
    'encoder',
    (value: unknown, transfer: boolean) => createEncoder({ typedArrays: 'base64' }).encode(value, { transfer }),
  ],
  [
    'snapshot',
    async (value: unknown, transfer: boolean) => {
      using snapshot = capture(value, { typedArrays: 'array', transfer })
      const [json] = [await snapshot.json(), await snapshot.msgpack()]
      return json
    },
  ],
] as const

/** Memory of WebAssembly, which cannot be transferred. The types of Node lack it. */
function wasmMemory(): ArrayBuffer {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of Node lack WebAssembly
  const { WebAssembly } = globalThis as unknown as {
    readonly WebAssembly: { readonly Memory: new (options: object) => { readonly buffer: ArrayBuffer } }
  }
  return new WebAssembly.Memory({ initial: 2 }).buffer
}

function typedValue(): { readonly value: object; readonly large: Uint8Array[]; readonly kept: Uint8Array[] } {
  const [bytes, floats, small] = [copyOf(BYTES), FLOATS.slice(), copyOf(BYTES.subarray(0, 1000))]
  const whole = Buffer.from(copyOf(BYTES).buffer)
  const part = copyOf(BYTES).subarray(1)
  const shared = new Uint8Array(new SharedArrayBuffer(OWN))
  const wasm = new Uint8Array(wasmMemory()).fill(5)
  return {
    value: { bytes, deep: [{ floats, small, part, shared, wasm, whole }] },
    large: [bytes, new Uint8Array(floats.buffer), whole],
    kept: [small, part, shared, wasm],
  }
}

for (const [name, call] of TYPED) {
  test.serial(`${name}: typed arrays that are handed over give the same bytes, and are empty afterwards`, async (t) => {
    const expected = await call(typedValue().value, false)
    const { value, large, kept } = typedValue()
    const sizes = kept.map(({ length }) => length)
    const result = call(value, true)
    // Rule 2: the call has read everything when it returns. Rows of a stream are read as they come.
    if (name !== 'lines of a stream') for (const bytes of large) t.is(bytes.length, 0)
    t.true((await result).equals(expected))
    for (const bytes of large) t.is(bytes.length, 0)
    t.deepEqual(
      kept.map(({ length }) => length),
      sizes,
    )
  })
}

test.serial('results that are handed over to an encoder are used again', async (t) => {
  const round = async (): Promise<Bytes> => {
    const data = await decodeBase64(TEXT)
    const packed = await encodeMsgpack({ data, ids: 1 }, { transfer: true })
    t.is(data.length, 0)
    return packed
  }
  const expected = await encodeMsgpack({ data: BYTES, ids: 1 })
  for (let warm = 0; warm < 3; warm += 1) release(await round())
  const { made } = stats().results
  for (let times = 0; times < 5; times += 1) {
    const packed = await round()
    t.true(packed.equals(expected))
    soil(packed)
    release(packed)
  }
  t.is(stats().results.made, made)
})

test.serial('memory that a snapshot took comes back when it is disposed, once no task reads it', async (t) => {
  const data = await decodeBase64(TEXT)
  const snapshot = capture({ data }, { typedArrays: 'base64', transfer: true })
  const json = snapshot.json()
  const { returned } = stats().results
  snapshot[Symbol.dispose]()
  t.is(stats().results.returned, returned)
  t.is((await json).toString(), JSON.stringify({ data: TEXT }))
  t.is(stats().results.returned, returned + 1)
})

test.serial('a value that is refused, or throws, keeps its bytes', async (t) => {
  const bytes = copyOf(BYTES)
  const typedArrays = 'base64'
  const refused: readonly (() => Promise<unknown>)[] = [
    () => encode({ bytes, bad: 1n }, { typedArrays, transfer: true }),
    () =>
      encode(
        {
          bytes,
          get bad() {
            throw new Error('mine')
          },
        },
        { typedArrays, transfer: true },
      ),
    () => encodeLines([{ bytes }, undefined], { typedArrays, transfer: true }),
    () => encode({ bytes }, { typedArrays, transfer: true, space: 1, maxDepth: 0 }),
    () => Reflect.apply(encode, undefined, [{ bytes }, { typedArrays, transfer: 1 }]),
    () => encodeMsgpack({ bytes, bad: 1n << 80n }, { transfer: true }),
    () => saveFile(join(folder, 'refused'), { bytes, bad: 1n }, { transfer: true }),
    () => saveFile(join(folder, 'refused'), [{ bytes }, undefined], { format: 'jsonl', transfer: true }),
  ]
  for (const call of refused) {
    await t.throwsAsync(call)
    t.true(BYTES.equals(bytes))
  }
  const aborted = AbortSignal.abort()
  await t.throwsAsync(encodeBase64(bytes, { transfer: true, signal: aborted }), { any: true, name: 'AbortError' })
})

test.serial('bytes that code of the value detaches are told of', async (t) => {
  const bytes = copyOf(BYTES)
  const value = {
    bytes,
    get more() {
      structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
      return 1
    },
  }
  await t.throwsAsync(encodeMsgpack(value, { transfer: true }), { code: 'ERR_INVALID_ARG_VALUE', message: /detached/ })
})

test.serial('rows that share bytes are written whole, and files hold what was handed over', async (t) => {
  const bytes = copyOf(BYTES)
  const alone = copyOf(BYTES)
  const path = join(folder, 'rows.jsonl')
  const row = JSON.stringify({ bytes: TEXT })
  {
    await using log = await openJsonl(path, {
      durability: 'none',
      encode: { typedArrays: 'base64' },
      maxBatchBytes: 1000,
    })
    await log.appendMany([{ bytes }, { bytes }, { bytes: alone }], { transfer: true })
    t.is(alone.length, 0)
    const { bad, written } = await log.appendMany([{ bytes: copyOf(BYTES) }, undefined], { transfer: true })
    t.deepEqual([bad.length, written], [1, 1])
    const own = copyOf(BYTES)
    const appended = log.append({ bytes: own }, { transfer: true })
    t.is(own.length, 0)
    await appended
    await t.throwsAsync(log.append({ bytes: BYTES, bad: 1n }, { transfer: true }))
  }
  t.is(readFileSync(path, 'utf8'), `${row}\n`.repeat(5))
  const shared = copyOf(BYTES)
  const rows = Array.from({ length: 30 }, () => ({ bytes: shared }))
  await saveFile(path, rows, { format: 'jsonl', durability: 'none', encode: { typedArrays: 'base64' }, transfer: true })
  t.is(readFileSync(path, 'utf8'), `${row}\n`.repeat(30))
  const whole = copyOf(BYTES)
  const saved = saveFile(path, whole, { format: 'bytes', durability: 'none', transfer: true })
  t.is(whole.length, 0)
  await saved
  t.true(readFileSync(path).equals(BYTES))
})

test.serial('batches of rows are read into the same memory, valid until the next is asked for', async (t) => {
  const path = join(folder, 'batches.jsonl')
  await saveFile(
    path,
    Array.from({ length: 60_000 }, (_, id) => ({ id, text: `row ${id}` })),
    { format: 'jsonl', durability: 'none' },
  )
  const read = async (reuse: boolean): Promise<string[]> => {
    const texts: string[] = []
    let before: Bytes | undefined
    for await (const rows of readJsonl(path, { reuse })) {
      if (before !== undefined) t.is(before.length === 0, reuse)
      for (const { bytes } of rows) texts.push(bytes.toString())
      before = rows[0]?.bytes
      // Less than 64 KiB, at the end of the file, is memory of no pool.
      if (before !== undefined && before.buffer.byteLength < OWN) before = undefined
    }
    return texts
  }
  const plain = await read(false)
  t.is(plain.length, 60_000)
  t.deepEqual(await read(true), plain)
  const { made } = stats().results
  t.deepEqual(await read(true), plain)
  t.is(stats().results.made, made)
  await t.throwsAsync(
    async () => {
      const both = { fields: ['/id'] as const, reuse: true }
      for await (const rows of readJsonl(path, both)) t.fail(`${rows.length} rows`)
    },
    { code: 'ERR_INVALID_ARG_VALUE' },
  )
})

test.serial('idle results count as idle, are bounded, and are let go', async (t) => {
  const most = 4 << 20
  await trimMemory()
  configure({ maxIdleBytes: most })
  try {
    const results = await Promise.all(Array.from({ length: 40 }, () => decodeBase64(TEXT)))
    await trimMemory()
    t.is(stats().idleBytes, 0)
    release(...results)
    const { idleBytes } = stats()
    t.true(most / 2 < idleBytes && idleBytes <= most, `${idleBytes}`)
    await trimMemory()
    t.is(stats().idleBytes, 0)
    const { made } = stats().results
    const again = await decodeBase64(TEXT)
    t.is(stats().results.made, made + 1)
    configure({ maxIdleBytes: 0 })
    release(again)
    t.is(again.length, 0)
    t.is(stats().idleBytes, 0)
  } finally {
    configure({ maxIdleBytes: 128 << 20 })
  }
})

if (isFull) {
  test.serial('idle results are let go after a while without use', async (t) => {
    t.timeout(60_000)
    release(await decodeBase64(TEXT))
    t.true(0 < stats().idleBytes)
    // The library's own timer keeps no process alive.
    while (stats().idleBytes !== 0) await new Promise((resolve) => setTimeout(resolve, 500))
    const { made } = stats().results
    await decodeBase64(TEXT)
    t.is(stats().results.made, made + 1)
  })
}

test.serial('what a worker keeps idle goes with it', async (t) => {
  await trimMemory()
  const before = stats().idleBytes
  const worker = new Worker(new URL('scenarios/idle-worker.ts', import.meta.url))
  const idle = await new Promise<number>((resolve, reject) => worker.once('message', resolve).once('error', reject))
  t.true(1 << 20 <= idle - before, `${idle}`)
  await worker.terminate()
  t.true(stats().idleBytes < idle - (1 << 20))
})

test.serial(
  'bytes that a socket still writes: release keeps the process whole, and what is sent is not promised',
  async (t) => {
    const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve))
    const client = connect(port, '127.0.0.1')
    // A write before that would wait in JavaScript, and then find an empty result.
    await new Promise<void>((resolve) => client.once('connect', resolve))
    const value = 'a'.repeat(24 << 20)
    const result = await encode(value)
    const { length } = result
    const sent = new Promise((resolve) => client.write(result, resolve))
    const socket = await accepted
    // The write is under way: the other side does not read.
    release(result)
    t.is(result.length, 0)
    const other = await encode('b'.repeat(24 << 20))
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk)).resume()
    await sent
    client.end()
    await new Promise((resolve) => socket.once('close', resolve))
    const arrived = Buffer.concat(chunks)
    // As many bytes as were given to the socket, from the same memory: the result's own, or those of its later user.
    t.is(arrived.length, length)
    t.true(arrived.every((byte) => byte === 97 || byte === 98 || byte === 34))
    t.true(other.equals(Buffer.from(JSON.stringify('b'.repeat(24 << 20)))))
    server.close()
  },
)

for (const [name, what] of [
  ['arrays', 'methods of arrays that were replaced see no memory of later results'],
  ['decoder', 'a TextDecoder that was replaced sees no memory of later results'],
  ['behind', 'what lies behind the body of a request is zero'],
  ['channels', 'subscribers of undici’s channels see copies'],
] as const) {
  test.serial(what, async (t) => {
    const ended = await runScenario('results', name)
    t.is(ended.stdout, 'played\n', `${ended.signal} ${ended.stderr}`)
    t.is(ended.code, 0, ended.stderr)
  })
}

test.serial('a call that code of its value aborts takes nothing', async (t) => {
  const typedArrays = 'base64'
  const calls: readonly ((bytes: Uint8Array, controller: AbortController) => Promise<unknown>)[] = [
    (bytes, controller) => {
      const { signal } = controller
      return encode(valueOf(bytes, controller), { typedArrays, transfer: true, signal })
    },
    (bytes, controller) => {
      const { signal } = controller
      return encodeLines([{ bytes }, valueOf(bytes, controller)], { typedArrays, transfer: true, signal })
    },
    (bytes, controller) => {
      const { signal } = controller
      return encodeMsgpack(valueOf(bytes, controller), { transfer: true, signal })
    },
    (bytes, controller) => {
      const { signal } = controller
      return saveFile(join(folder, 'aborted'), valueOf(bytes, controller), { transfer: true, signal })
    },
    (bytes, controller) => {
      const { signal } = controller
      const wire = {
        ...EXPERTS,
        get data() {
          controller.abort()
          return bytes
        },
      }
      return decodeExperts(wire, { transfer: true, signal })
    },
  ]
  for (const call of calls) {
    const bytes = copyOf(BYTES)
    await t.throwsAsync(call(bytes, new AbortController()), { any: true, name: 'AbortError' })
    t.true(BYTES.equals(bytes))
  }
})

function valueOf(bytes: Uint8Array, controller: AbortController): object {
  return {
    bytes,
    get more() {
      controller.abort()
      return 1
    },
  }
}

test.serial('rows of a generator are read before it goes on, whatever it does with their bytes', async (t) => {
  const path = join(folder, 'generated.jsonl')
  const row = JSON.stringify({ bytes: TEXT })
  function* rows(): Generator<object> {
    const bytes = copyOf(BYTES)
    yield { bytes }
    release(bytes)
    const again = copyOf(BYTES)
    yield { bytes: again }
    t.is(again.length, 0)
    if (0 < again.length) structuredClone(again.buffer, { transfer: [again.buffer] })
    yield { bytes: copyOf(BYTES) }
  }
  {
    await using log = await openJsonl(path, { durability: 'none', encode: { typedArrays: 'base64' } })
    const before = log.append({ before: 1 })
    await log.appendMany(rows(), { transfer: true })
    await before
    await log.append({ after: 1 })
  }
  t.is(readFileSync(path, 'utf8'), `{"before":1}\n${`${row}\n`.repeat(3)}{"after":1}\n`)
  await saveFile(path, rows(), {
    format: 'jsonl',
    durability: 'none',
    transfer: true,
    encode: { typedArrays: 'base64' },
  })
  t.is(readFileSync(path, 'utf8'), `${row}\n`.repeat(3))
})

test.serial('a log goes on after code of a row has detached bytes of an earlier row', async (t) => {
  const path = join(folder, 'detached.jsonl')
  const bytes = copyOf(BYTES)
  const detacher = {
    get more() {
      structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
      return 1
    },
  }
  await using log = await openJsonl(path, { durability: 'none', encode: { typedArrays: 'base64' } })
  const before = log.append({ before: 1 })
  await t.throwsAsync(log.appendMany([{ bytes }, detacher], { transfer: true }), { code: 'ERR_INVALID_ARG_VALUE' })
  await before
  await log.append({ after: 1 })
  await log.flush()
  t.is(readFileSync(path, 'utf8').split('\n')[0], '{"before":1}')
  t.true(readFileSync(path, 'utf8').endsWith('{"after":1}\n'))
})
