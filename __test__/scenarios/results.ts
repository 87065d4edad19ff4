/** Built-ins that were replaced after import look for memory that later results use; and what lies behind request bodies. */

import { subscribe } from 'node:diagnostics_channel'
import { createServer } from 'node:http'
import { TextDecoder } from 'node:util'
import { createClient } from '../../src/http/index.ts'
import { concatExperts, encode, encodeBase64, encodeMsgpack, parse, release, type Bytes } from '../../src/index.ts'
import { expect, play } from '../fixtures/scenario.ts'

const kept = new Set<unknown>()

/** Keeps memory that code which replaces a built-in can see. */
function look(value: unknown): void {
  if (value instanceof ArrayBuffer) kept.add(value)
  if (ArrayBuffer.isView(value)) kept.add(value.buffer)
}

const ARRAY_METHODS = ['push', 'map', 'filter', 'slice', 'concat', 'fill', 'some', 'at', 'indexOf'] as const

/** Replaces what code of the library might call with its private memory. Returns a function that restores all. */
function replaceArrays(): () => void {
  const restores = [...ARRAY_METHODS, Symbol.iterator].map((name) => {
    const original: unknown = Reflect.get(Array.prototype, name)
    // oxlint-disable-next-line no-extend-native -- replaced built-ins are tested
    Object.defineProperty(Array.prototype, name, {
      configurable: true,
      writable: true,
      value(this: unknown[], ...args: unknown[]): unknown {
        for (let index = 0; index < this.length; index += 1) look(this[index])
        for (let index = 0; index < args.length; index += 1) look(args[index])
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each of them is a function
        return Reflect.apply(original as () => unknown, this, args)
      },
    })
    return { name, original }
  })
  return () => {
    for (let index = 0; index < restores.length; index += 1) {
      const { name = '', original } = restores[index] ?? {}
      // oxlint-disable-next-line no-extend-native -- replaced built-ins are tested
      Object.defineProperty(Array.prototype, name, { configurable: true, writable: true, value: original })
    }
  }
}

const SIZE = 300_000

async function make(): Promise<Bytes> {
  return await encodeBase64(Buffer.alloc(SIZE, 1))
}

/** Makes results until all that came back is used again, and looks whose memory they have. */
async function checkLater(what: string): Promise<void> {
  for (const size of [SIZE, SIZE, SIZE, SIZE * 0.75, SIZE * 0.75, SIZE * 0.75]) {
    const later = await encodeBase64(Buffer.alloc(size, 2))
    expect(!kept.has(later.buffer), `${what} to keep memory that a later result uses`)
  }
}

async function serveBodies(): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.end(Buffer.alloc(SIZE, 99)))
  }).listen(0, '127.0.0.1')
  server.unref()
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
}

await play({
  arrays: async () => {
    const [data, other, again] = [await make(), await make(), await make()]
    const body = Buffer.from(JSON.stringify({ a: data.toString(), b: 'x'.repeat(SIZE) }))
    const shape = [data.length / 4, 2, 2]
    const restore = replaceArrays()
    try {
      await concatExperts([{ experts: { data, shape, dtype: 'uint8' } }], { tokens: data.length / 4, transfer: true })
      await encodeMsgpack([other, { other }], { transfer: true })
      await encode([again], { transfer: true, typedArrays: 'base64' })
      const { a } = await parse<{ a: Bytes }>(body, { lift: { '/a': 'base64' } })
      release(a)
    } finally {
      restore()
    }
    await checkLater('replaced methods of arrays')
  },

  decoder: async () => {
    const url = await serveBodies()
    // oxlint-disable-next-line typescript/unbound-method -- it is called with its decoder
    const { decode } = TextDecoder.prototype
    TextDecoder.prototype.decode = function replaced(bytes, options) {
      look(bytes)
      return decode.call(this, bytes, options)
    }
    const client = createClient()
    const { body } = await client.request(url)
    expect((await body.text()) === 'c'.repeat(SIZE), 'the text')
    TextDecoder.prototype.decode = decode
    await checkLater('a replaced decoder')
    await client.destroy()
  },

  /** Memory that held other results shows nothing of them behind the body of a request. */
  behind: async () => {
    const url = await serveBodies()
    let bodies = 0
    subscribe('undici:request:create', (message) => {
      const bytes: unknown = Reflect.get(Reflect.get(Object(message), 'request'), 'body')
      if (!Buffer.isBuffer(bytes)) return
      bodies += 1
      const rest = Buffer.from(bytes.buffer, bytes.byteOffset + bytes.length)
      expect(rest.length === 0 || bytes.length < 65_536 || rest.every((byte) => byte === 0), 'nothing behind the body')
    })
    const client = createClient()
    for (const body of [Buffer.alloc(270_000, 5), 'y'.repeat(270_000)]) {
      release(await make(), await make())
      const response = await client.request(url, { method: 'POST', body })
      await response.body.discard()
    }
    expect(bodies === 2, 'two bodies')
    await client.destroy()
  },

  /** Subscribers of undici's channels see copies: memory that is read again is none of theirs. */
  channels: async () => {
    const url = await serveBodies()
    const heads: unknown[] = []
    subscribe('undici:request:headers', (message) => {
      const headers: unknown = Reflect.get(Reflect.get(Object(message), 'response'), 'headers')
      if (Array.isArray(headers) && Buffer.isBuffer(headers[0])) heads.push(headers[0].buffer)
    })
    const client = createClient({ agent: { connections: 1 } })
    for (let round = 0; round < 6; round += 1) {
      const { body } = await client.request(url)
      expect((await body.bytes()).equals(Buffer.alloc(SIZE, 99)), 'the body')
    }
    expect(heads.length === 6 && new Set(heads).size === 6, 'memory of its own for each head')
    for (const head of heads) {
      if (head instanceof ArrayBuffer) structuredClone(head, { transfer: [head] })
    }
    const { body } = await client.request(url)
    expect((await body.bytes()).equals(Buffer.alloc(SIZE, 99)), 'the body after memory was taken')
    await client.destroy()
  },
})
