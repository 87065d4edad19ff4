/** `offloop/http` against servers of Node and raw sockets. `http8.spec.ts` runs all of it with undici 8. */

import { getEventListeners } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import net from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import { gzipSync, gunzipSync } from 'node:zlib'
import * as zlib from 'node:zlib'
import test from 'ava'
import { createClient, type Client, type RequestOptions } from '../src/http/index.ts'
import { encode, OffloopError, parse, rawJson, stats } from '../src/index.ts'
import { runScenario } from './fixtures/child.ts'
import { isFull } from './fixtures/extent.ts'
import { bodyOf, makeCertificate, onRequest, serve, serveRaw, socketPath, trickle, until } from './fixtures/http.ts'
import { Random } from './fixtures/values.ts'

const certificate = makeCertificate()
const MIB = 1024 * 1024

/** Sizes around those of reads, of small chunks and of pauses. */
const SIZES = [1, 4095, 4096, 4097, 65_536, 262_144, 262_145, 1_000_003, 5 * MIB + 7]
if (isFull) SIZES.push(23_000_001)

function sizeIn(url: string | undefined): number {
  return Number(/\d+/.exec(url ?? '')?.[0] ?? 0)
}

/** Answers a body in the framing that the path names. */
const bodies: RequestListener = (request, response) => {
  request.resume()
  // A proxy may forward an absolute URL.
  const { pathname } = new URL(request.url ?? '', 'http://localhost')
  const body = bodyOf(sizeIn(pathname))
  const [, framing] = pathname.split('/')
  if (framing === 'length') response.writeHead(200, { 'content-length': body.length }).end(body)
  if (framing === 'close') {
    response.useChunkedEncodingByDefault = false
    response.shouldKeepAlive = false
    response.end(body)
  }
  if (framing === 'chunked') {
    const random = new Random(body.length)
    for (let at = 0; at < body.length;) {
      const end = at + 1 + random.int(70_000)
      response.write(body.subarray(at, end))
      at = end
    }
    response.addTrailers({ 'x-trailer': 'y' })
    response.end()
  }
}

async function bytesOf(client: Client, url: string, options?: RequestOptions): Promise<Buffer> {
  const { body } = await client.request(url, options)
  return await body.bytes()
}

const servers = [
  ['http', {}, {}],
  ['a Unix socket', { path: socketPath }, { socketPath }],
  ...(certificate === undefined ? [] : [['https', { certificate }, { ca: certificate.cert }] as const]),
] as const

for (const [name, options, connect] of servers) {
  for (const framing of ['length', 'chunked', 'close']) {
    test(`bodies over ${name}, framed by ${framing}`, async (t) => {
      const path = 'path' in options ? `${options.path}-${framing}` : undefined
      const served = await serve(bodies, path === undefined ? options : { path })
      const client = createClient({ agent: { connect: path === undefined ? connect : { socketPath: path } } })
      for (const size of SIZES) {
        const received = await bytesOf(client, `${served.url}/${framing}/${size}`)
        t.true(received.equals(bodyOf(size)), `${size} bytes`)
      }
      await client.close()
      if (framing !== 'close') t.is(served.connections, 1)
      await served.close()
    })
  }
}

test('many bodies at once, on few connections', async (t) => {
  const served = await serve(bodies)
  const client = createClient({ agent: { connections: 3 } })
  const sizes = Array.from({ length: 40 }, (_, index) => SIZES[index % 8] ?? 0)
  const received = await Promise.all(
    sizes.map((size, index) => bytesOf(client, `${served.url}/${index % 2 === 0 ? 'length' : 'chunked'}/${size}`)),
  )
  for (const [index, bytes] of received.entries()) t.true(bytes.equals(bodyOf(sizes[index] ?? 0)))
  t.is(served.connections, 3)
  await client.destroy()
  await served.close()
})

test('every size of the read buffer gives the same bytes', async (t) => {
  const served = await serve(bodies)
  for (const readBytes of [4096, 4097, 65_536, MIB]) {
    const client = createClient({ readBytes })
    for (const framing of ['length', 'chunked']) {
      const received = await bytesOf(client, `${served.url}/${framing}/2000003`)
      t.true(received.equals(bodyOf(2_000_003)), `${framing}, ${readBytes}`)
    }
    await client.close()
  }
  await served.close()
})

test('parse, split, bytes and text give what fetch would', async (t) => {
  const value = { a: ['ä', 1.5, null], b: 'x'.repeat(100_000), c: { d: Buffer.from('abc').toString('base64') } }
  const served = await serve((_, response) => response.end(JSON.stringify(value)))
  const client = createClient()
  const get = async () => (await client.request(served.url)).body
  t.deepEqual(await (await get()).parse(), value)
  t.deepEqual(await (await get()).parse({ lift: { '/c/d': 'base64' } }), { ...value, c: { d: Buffer.from('abc') } })
  const { json, lifted } = await (await get()).split({ lift: { '/c/d': 'base64' } })
  t.deepEqual(JSON.parse(json.toString()), { ...value, c: { d: null } })
  t.deepEqual(lifted, [{ pointer: '/c/d', value: Buffer.from('abc') }])
  t.is(await (await get()).text(), JSON.stringify(value))
  t.is((await (await get()).bytes()).toString(), JSON.stringify(value))
  await client.close()
  await served.close()
})

test('text strips a byte order mark and replaces invalid bytes, as that of fetch', async (t) => {
  const texts = ['\uFEFFabc', '', 'a\uFEFF', 'ä'].map((text) => Buffer.from(text))
  const all = [...texts, Buffer.of(0xff, 0x61, 0xe2, 0x82), Buffer.of(0xef, 0xbb), Buffer.alloc(100_000, 0xc3)]
  const served = await serve((request, response) => response.end(all[sizeIn(request.url)]))
  const client = createClient()
  for (const index of all.keys()) {
    const url = `${served.url}/${index}`
    t.is(await (await client.request(url)).body.text(), await (await fetch(url)).text())
  }
  await client.close()
  await served.close()
})

test.serial('nothing is left behind a result whose memory was used before', async (t) => {
  const served = await serve(bodies)
  const client = createClient()
  // The texts give their memory back.
  for (let turn = 0; turn < 8; turn += 1) await (await client.request(`${served.url}/length/300000`)).body.text()
  const bytes = await bytesOf(client, `${served.url}/length/299000`)
  t.true(bytes.equals(bodyOf(299_000)))
  t.true(Buffer.from(bytes.buffer, bytes.length).every((byte) => byte === 0))
  await client.close()
  await served.close()
})

test('a body that is not JSON rejects as parse does, and the connection is used again', async (t) => {
  const served = await serve((_, response) => response.end('{"a":1,}'))
  const client = createClient({ agent: { connections: 1 } })
  for (let turn = 0; turn < 2; turn += 1) {
    const { body } = await client.request(served.url)
    await t.throwsAsync(body.parse(), { instanceOf: OffloopError, code: 'ERR_OFFLOOP_JSON' })
  }
  t.is(served.connections, 1)
  await client.close()
  await served.close()
})

test('each body once', async (t) => {
  const served = await serve((_, response) => response.end('[]'))
  const client = createClient()
  for (const first of ['parse', 'bytes', 'text', 'discard'] as const) {
    const { body } = await client.request(served.url)
    await body[first]()
    const refused = { instanceOf: OffloopError, code: 'ERR_OFFLOOP_CLOSED' }
    await t.throwsAsync(body.parse(), refused)
    await t.throwsAsync(body.split({ lift: {} }), refused)
    await t.throwsAsync(body.bytes(), refused)
    await t.throwsAsync(body.text(), refused)
    await body.discard()
  }
  await client.close()
  await served.close()
})

test('wrong options leave the body as it is', async (t) => {
  const served = await serve((_, response) => response.end('[1]'))
  const client = createClient()
  const { body } = await client.request(served.url)
  // @ts-expect-error -- wrong arguments are tested
  await t.throwsAsync(body.parse({ transfer: true }), { code: 'ERR_INVALID_ARG_VALUE' })
  await t.throwsAsync(body.parse({ lift: { a: 'raw' } }), { code: 'ERR_INVALID_ARG_VALUE' })
  // @ts-expect-error -- wrong arguments are tested
  await t.throwsAsync(body.split({}), { code: 'ERR_INVALID_ARG_TYPE' })
  await t.throwsAsync(body.parse({ signal: AbortSignal.abort(new Error('mine')) }), { message: 'mine' })
  t.deepEqual(await body.parse(), [1])
  await client.close()
  await served.close()
})

// ───────────────────────────── framing ─────────────────────────────

const HEAD = 'HTTP/1.1 200 OK\r\n'

/** Responses, the method of their request, and their bodies. */
const RESPONSES: readonly (readonly [name: string, text: string, body: string, method?: string])[] = [
  ['content-length', `${HEAD}Content-Length: 5\r\n\r\nhello`, 'hello'],
  ['content-length 0', `${HEAD}content-length: 0\r\n\r\n`, ''],
  ['chunks', `${HEAD}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n`, 'hello!'],
  [
    'chunks of hexadecimal sizes',
    `${HEAD}transfer-encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n`,
    '0123456789',
  ],
  ['chunk extensions', `${HEAD}transfer-encoding: chunked\r\n\r\n2;a=b\r\nhi\r\n0;c\r\n\r\n`, 'hi'],
  ['trailers', `${HEAD}transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nDigest: abc\r\nX-Y: z\r\n\r\n`, 'hi'],
  ['no chunks', `${HEAD}transfer-encoding: chunked\r\n\r\n0\r\n\r\n`, ''],
  ['the end of the connection', `${HEAD}connection: close\r\n\r\nhello`, 'hello'],
  ['the end of the connection, HTTP/1.0', 'HTTP/1.0 200 OK\r\n\r\nhello', 'hello'],
  ['102 before', `HTTP/1.1 102 Processing\r\n\r\n${HEAD}content-length: 2\r\n\r\nhi`, 'hi'],
  [
    '103 before, twice',
    `${'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(2)}${HEAD}content-length: 2\r\n\r\nhi`,
    'hi',
  ],
  ['204', 'HTTP/1.1 204 No Content\r\n\r\n', ''],
  ['304', 'HTTP/1.1 304 Not Modified\r\netag: "a"\r\n\r\n', ''],
  ['HEAD', `${HEAD}content-length: 1000\r\n\r\n`, '', 'HEAD'],
  ['HEAD of a compressed body', `${HEAD}content-length: 1000\r\ncontent-encoding: gzip\r\n\r\n`, '', 'HEAD'],
  ['no reason', 'HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\nhi', 'hi'],
]

for (const [name, text, expected, method = 'GET'] of RESPONSES) {
  test(`a response with ${name}, whole and byte by byte`, async (t) => {
    const isLast = /close|HTTP\/1.0/.test(text)
    let size = 1e9
    const served = await serveRaw((socket) => {
      onRequest(socket, async () => {
        await trickle(socket, Buffer.from(text), () => size)
        if (isLast) socket.end()
      })
    })
    const client = createClient({ agent: { connections: 1 } })
    for (size of [1e9, 1, 2, 7, 1]) {
      const { status, body } = await client.request(served.url, { method })
      t.is(await body.text(), expected)
      t.is(status, Number(/(?:.*\n)*?HTTP\/1.. ([2-5]\d\d)/.exec(text)?.[1]))
    }
    if (!isLast && method !== 'HEAD') t.is(served.connections, 1)
    await client.close()
    await served.close()
  })
}

/** A field of this many characters, which differ. */
function fieldOf(random: Random, size: number): string {
  return Array.from({ length: size }, () => 'abcdefghijklmnopqrstuvwxyz'[random.int(26)] ?? '').join('')
}

test('heads and trailers that are cut anywhere arrive unchanged', async (t) => {
  // undici joins the pieces of a field later, so the pieces must not be in memory that the next read changes.
  const random = new Random(20)
  let response = Buffer.alloc(0)
  const served = await serveRaw((socket) => {
    // Reads are larger than chunks that are copied anyway.
    onRequest(socket, () => trickle(socket, response, () => 4200 + random.int(6000)))
  })
  const client = createClient({ agent: { connections: 1, maxHeaderSize: 100_000 } })
  for (let turn = 0; turn < (isFull ? 300 : 60); turn += 1) {
    const fields = Array.from(
      { length: 6 },
      (_, index) => [`x-${fieldOf(random, 20)}-${index}`, fieldOf(random, 3000 + random.int(3000))] as const,
    )
    const body = bodyOf(random.int(60_000), turn)
    const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    const size = body.length.toString(16)
    const start = `HTTP/1.1 200 OK\r\n${lines}transfer-encoding: chunked\r\n\r\n${body.length === 0 ? '' : `${size}\r\n`}`
    const end = `${body.length === 0 ? '' : '\r\n'}0\r\n${lines}\r\n`
    response = Buffer.concat([Buffer.from(start), body, Buffer.from(end)])
    const { headers, body: received } = await client.request(served.url)
    for (const [name, value] of fields) t.is(headers[name], value)
    t.true((await received.bytes()).equals(body))
  }
  t.is(served.connections, 1)
  await client.close()
  await served.close()
})

test('fields that come several times are lists, and names are in lower case', async (t) => {
  const served = await serveRaw((socket) => {
    onRequest(socket, () => socket.write(`${HEAD}Set-Cookie: a\r\nSET-COOKIE: b\r\nX: y\r\ncontent-length: 0\r\n\r\n`))
  })
  const client = createClient()
  const { headers, body } = await client.request(served.url)
  t.deepEqual(headers['set-cookie'], ['a', 'b'])
  t.is(headers['x'], 'y')
  await body.discard()
  await client.close()
  await served.close()
})

/** Bytes that are not a response. A second item is the code of the error, where it matters. */
const MALFORMED: Readonly<Record<string, string>> = {
  'no HTTP': 'hello there\r\n\r\n',
  'a TLS alert': '\u0015\u0003\u0001\u0000\u0002\u0002(',
  'a line break only': '\r\n\r\n\r\n',
  'another version': 'HTTP/9.9 200 OK\r\n\r\n',
  'HTTP/2': 'HTTP/2 200 OK\r\ncontent-length: 0\r\n\r\n',
  'a status of two digits': 'HTTP/1.1 20 OK\r\ncontent-length: 0\r\n\r\n',
  'a status of letters': 'HTTP/1.1 abc OK\r\ncontent-length: 0\r\n\r\n',
  'no status': 'HTTP/1.1\r\ncontent-length: 0\r\n\r\n',
  'a bare LF in the status': 'HTTP/1.1 200 OK\ncontent-length: 0\n\n',
  'a bare CR': 'HTTP/1.1 200 OK\rcontent-length: 0\r\r',
  'a bare LF behind a field': `${HEAD}content-length: 2\n\r\nhi`,
  'a space in a name': `${HEAD}content length: 2\r\n\r\nhi`,
  'a space before the colon': `${HEAD}content-length : 2\r\n\r\nhi`,
  'a field without a colon': `${HEAD}content-length\r\n\r\n`,
  'a NUL in a value': `${HEAD}x: a\0b\r\ncontent-length: 0\r\n\r\n`,
  'a folded line at the beginning': `${HEAD} x: y\r\ncontent-length: 0\r\n\r\n`,
  'content-length twice': `${HEAD}content-length: 2\r\ncontent-length: 2\r\n\r\nhi`,
  'two content-lengths': `${HEAD}content-length: 2\r\ncontent-length: 3\r\n\r\nhi!`,
  'a list of content-lengths': `${HEAD}content-length: 2, 2\r\n\r\nhi`,
  'a negative content-length': `${HEAD}content-length: -2\r\n\r\nhi`,
  'a content-length of letters': `${HEAD}content-length: two\r\n\r\nhi`,
  'a content-length with a plus': `${HEAD}content-length: +2\r\n\r\nhi`,
  'a hexadecimal content-length': `${HEAD}content-length: 0x2\r\n\r\nhi`,
  'a huge content-length': `${HEAD}content-length: 99999999999999999999999\r\n\r\nhi`,
  'no content-length': `${HEAD}content-length:\r\n\r\nhi`,
  'content-length and chunks': `${HEAD}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
  'chunks and content-length': `${HEAD}transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
  'a chunk size of letters': `${HEAD}transfer-encoding: chunked\r\n\r\nxyz\r\nhi\r\n0\r\n\r\n`,
  'no chunk size': `${HEAD}transfer-encoding: chunked\r\n\r\n\r\nhi\r\n0\r\n\r\n`,
  'a negative chunk size': `${HEAD}transfer-encoding: chunked\r\n\r\n-2\r\nhi\r\n0\r\n\r\n`,
  'a huge chunk size': `${HEAD}transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nhi\r\n0\r\n\r\n`,
  'a chunk longer than its size': `${HEAD}transfer-encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n`,
  'a bare LF behind a chunk size': `${HEAD}transfer-encoding: chunked\r\n\r\n2\nhi\r\n0\r\n\r\n`,
  'a bare LF behind a chunk': `${HEAD}transfer-encoding: chunked\r\n\r\n2\r\nhi\n0\r\n\r\n`,
  'a NUL in a chunk size': `${HEAD}transfer-encoding: chunked\r\n\r\n2\0\r\nhi\r\n0\r\n\r\n`,
  'a trailer without a colon': `${HEAD}transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx y\r\n\r\n`,
  'oversized fields': `${HEAD}x: ${'y'.repeat(20_000)}\r\ncontent-length: 0\r\n\r\n`,
  'many fields': `${HEAD}${Array.from({ length: 3000 }, (_, index) => `x${index}: y\r\n`).join('')}\r\n`,
  '100 that nobody asked for': `HTTP/1.1 100 Continue\r\n\r\n${HEAD}content-length: 2\r\n\r\nhi`,
  'an upgrade that nobody asked for': 'HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
  nothing: '',
  'half a status': 'HTTP/1.1 2',
  'half a head': `${HEAD}content-length: 2\r\n`,
  'half a body': `${HEAD}content-length: 5\r\n\r\nhi`,
  'half a chunk': `${HEAD}transfer-encoding: chunked\r\n\r\n5\r\nhi`,
  'no last chunk': `${HEAD}transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n`,
  'half of the trailers': `${HEAD}transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx: y`,
}

for (const [name, text] of Object.entries(MALFORMED)) {
  test(`malformed: ${name}`, async (t) => {
    let isMalformed = true
    let size = 1e9
    const served = await serveRaw((socket) => {
      onRequest(socket, async () => {
        if (!isMalformed) return socket.write(`${HEAD}content-length: 4\r\n\r\ngood`)
        await trickle(socket, Buffer.from(text, 'latin1'), () => size)
        return socket.end()
      })
    })
    const client = createClient()
    for (size of text.length < 1000 ? [1e9, 1] : [1e9, 5000]) {
      isMalformed = true
      const error = await t.throwsAsync(async () => {
        const { body } = await client.request(served.url)
        return await body.text()
      })
      t.regex(`${error?.name} ${String(Reflect.get(Object(error), 'code'))}`, /^HTTPParserError|UND_ERR|ECONN/)
      isMalformed = false
      t.is(await (await client.request(served.url)).body.text(), 'good')
    }
    await client.close()
    await until('no connection is open', () => served.sockets.size === 0)
    await served.close()
  })
}

test('a response that nobody asked for does not become the next one', async (t) => {
  let count = 0
  const served = await serveRaw((socket) => {
    onRequest(socket, () => {
      count += 1
      const good = `${HEAD}content-length: 1\r\n\r\n${count}`
      socket.write(count === 1 ? `${good}${HEAD}content-length: 4\r\n\r\nevil` : good)
    })
  })
  const client = createClient()
  t.is(await (await client.request(served.url)).body.text(), '1')
  await setImmediate()
  t.not(await (await client.request(served.url)).body.text(), 'evil')
  await client.destroy()
  await served.close()
})

test('a server that speaks before it is asked gets no request answered with that', async (t) => {
  let isEarly = true
  const served = await serveRaw((socket) => {
    if (isEarly) socket.write(`${HEAD}x: ${'y'.repeat(9000)}\r\ncontent-length: 4\r\n\r\nevil`)
    onRequest(socket, () => socket.write(`${HEAD}content-length: 4\r\n\r\ngood`))
  })
  for (let turn = 0; turn < 20; turn += 1) {
    const client = createClient()
    isEarly = true
    // HTTP cannot tell whether an answer came too early; bytes behind it must not be taken for a further one.
    const first = await client.request(served.url).catch((error: unknown) => error)
    if (first instanceof Error) t.regex(String(Reflect.get(first, 'code')), /UND_ERR_SOCKET/)
    isEarly = false
    await client.destroy()
    const other = createClient()
    t.is(await (await other.request(served.url)).body.text(), 'good')
    await other.destroy()
  }
  await served.close()
})

// ───────────────────────────── bounds ─────────────────────────────

test('maxBytes rejects at once and closes the connection', async (t) => {
  let bodiesSent = 0
  const served = await serve((request, response) => {
    if (request.url === '/announced') {
      response.writeHead(200, { 'content-length': 1001 }).end(Buffer.alloc(1001))
      bodiesSent += 1
      return
    }
    if (request.url === '/exact') {
      response.end(Buffer.alloc(1000))
      return
    }
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(100_000)));
    }
    response.on('drain', more)
    more()
  })
  const refused = { instanceOf: OffloopError, code: 'ERR_OFFLOOP_TOO_LARGE' }
  const ofClient = createClient({ maxBytes: 1000 })
  const ofRequest = createClient()
  for (const [client, options] of [
    [ofClient, {}],
    [ofRequest, { maxBytes: 1000 }],
  ] as const) {
    await t.throwsAsync(client.request(`${served.url}/announced`, options), refused)
    await until('no connection is open', () => served.sockets.size === 0)
    const { body } = await client.request(`${served.url}/endless`, options)
    await t.throwsAsync(body.bytes(), refused)
    await until('no connection is open', () => served.sockets.size === 0)
    t.is((await bytesOf(client, `${served.url}/exact`, options)).length, 1000)
    const { body: head } = await client.request(`${served.url}/exact`, { ...options, method: 'HEAD' })
    t.is((await head.bytes()).length, 0)
  }
  t.is((await bytesOf(ofClient, `${served.url}/announced`, { maxBytes: 1001 })).length, 1001)
  t.is(bodiesSent, 3)
  await ofClient.close()
  await ofRequest.close()
  await served.close()
})

for (const [scheme, options, connect] of servers.filter(([name]) => name !== 'a Unix socket')) {
  test(`a body that nobody consumes pauses its connection over ${scheme}, and goes on`, async (t) => {
    const size = 60 * MIB
    let sent = 0
    const chunk = Buffer.alloc(64 * 1024, 97)
    const served = await serve((request, response) => {
      const isDecoded = request.url === '/gzip'
      if (!isDecoded) response.setHeader('content-length', size)
      else response.setHeader('content-encoding', 'gzip')
      const target = isDecoded ? zlib.createGzip({ level: 0 }) : response
      if (target !== response) target.pipe(response)
      sent = 0
      const more = (): void => {
        while (sent < size) {
          sent += chunk.length
          if (sent === size) return void target.end(chunk)
          if (!target.write(chunk)) return
        }
      }
      target.on('drain', more)
      more()
    }, options)
    const client = createClient({ agent: { connect } })
    for (const path of ['/', '/gzip']) {
      const { body } = await client.request(served.url + path)
      let before = -1
      await until('the server waits', () => {
        const isSame = before === sent
        before = sent
        return isSame && MIB < sent
      })
      await new Promise((resolve) => setTimeout(resolve, 100))
      t.true(sent < size / 2, `${path}: ${sent} bytes were sent ahead`)
      const bytes = await body.bytes()
      t.is(bytes.length, size)
      t.true(bytes.every((byte) => byte === 97))
    }
    await client.close()
    await served.close()
  })
}

test('a body that is dropped is discarded when it is collected', async (t) => {
  const served = await serve(bodies)
  const client = createClient()
  const drop = async (): Promise<void> => {
    const { status } = await client.request(`${served.url}/length/${50 * MIB}`)
    t.is(status, 200)
  }
  await drop()
  await until('no connection is open', () => {
    // oxlint-disable-next-line typescript/no-unsafe-call -- ava runs with --expose-gc
    globalThis.gc?.()
    return served.sockets.size === 0
  })
  // Nothing is under way.
  await client.close()
  await served.close()
  t.pass()
})

test('discard closes the connection of a body that has not arrived, and keeps that of one that has', async (t) => {
  const served = await serve(bodies)
  const client = createClient()
  const small = await client.request(`${served.url}/length/1000`)
  await new Promise((resolve) => setTimeout(resolve, 50))
  await small.body.discard()
  t.is(served.sockets.size, 1)
  const large = await client.request(`${served.url}/length/${50 * MIB}`)
  await large.body.discard()
  await until('no connection is open', () => served.sockets.size === 0)
  await client.close()
  await served.close()
})

test.serial('bodies make no ArrayBuffers on their way', async (t) => {
  // Below the size at which a connection pauses, so that each arrives whole before it is consumed.
  const body = bodyOf(4 * MIB - 1)
  let finished = 0
  const served = await serve((_, response) => {
    response.writeHead(200, { 'content-length': body.length }).end(body, () => (finished += 1))
  })
  const client = createClient({ agent: { connections: 1 } })
  await bytesOf(client, served.url)
  const before = process.memoryUsage().arrayBuffers
  let most = 0
  for (let turn = 0; turn < 20; turn += 1) {
    const response = await client.request(served.url)
    await until('the body was sent', () => finished === turn + 2)
    await new Promise((resolve) => setTimeout(resolve, 30))
    most = Math.max(most, process.memoryUsage().arrayBuffers - before)
    await response.body.discard()
  }
  // A body that had not arrived whole cost a connection, and its buffer.
  t.true(most < MIB + served.connections * 300_000, `${most} bytes, ${served.connections} connections`)
  await client.destroy()
  await served.close()
})

// ───────────────────────────── content-encoding ─────────────────────────────

const zstdCompress: unknown = Reflect.get(zlib, 'zstdCompressSync')

const CODERS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: (bytes) => gzipSync(bytes),
  'x-gzip': (bytes) => gzipSync(bytes),
  deflate: (bytes) => zlib.deflateSync(bytes),
  'raw deflate': (bytes) => zlib.deflateRawSync(bytes),
  br: (bytes) => zlib.brotliCompressSync(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 3 } }),
  ...(typeof zstdCompress === 'function' && { zstd: (bytes: Buffer) => Reflect.apply(zstdCompress, zlib, [bytes]) }),
}

function encoded(names: readonly string[], bytes: Buffer): Buffer {
  return names.reduce((body, name) => CODERS[name]?.(body) ?? body, bytes)
}

/** Serves one body after the other. */
async function serveEncoded(): Promise<{
  send: (header: string | string[], body: Buffer) => void
  url: string
  close: () => Promise<void>
}> {
  let head: string | string[] = ''
  let bytes: Buffer = Buffer.alloc(0)
  const served = await serve((_, response) => {
    response.setHeader('content-encoding', head)
    response.end(bytes)
  })
  return {
    url: served.url,
    close: () => served.close(),
    send: (header, body) => {
      head = header
      bytes = body
    },
  }
}

const LISTS = [
  ...Object.keys(CODERS).map((name) => [name]),
  ['gzip', 'br'],
  ['raw deflate', 'gzip', 'deflate'],
  ['br', 'raw deflate'],
]

for (const names of LISTS) {
  test(`content-encoding ${names.join(', ')}`, async (t) => {
    const served = await serveEncoded()
    const client = createClient()
    const header = names.join(', ').replaceAll('raw ', '')
    for (const plain of [bodyOf(3_000_000), Buffer.from('[1]'), Buffer.alloc(0)]) {
      const body = encoded(names, plain)
      for (const written of [header, header.toUpperCase(), `identity, ${header}`, header.split(', ')]) {
        served.send(written, body)
        t.true((await bytesOf(client, served.url)).equals(plain), `${String(written)}, ${plain.length} bytes`)
      }
    }
    const body = encoded(names, bodyOf(3_000_000))
    // Cut off anywhere.
    for (const end of [1, 10, body.length >> 1, body.length - 1]) {
      served.send(header, body.subarray(0, end))
      const error: unknown = await t.throwsAsync(bytesOf(client, served.url))
      t.regex(String(Reflect.get(Object(error), 'code')), /^(Z_|ERR_|ZSTD_)/)
    }
    // Another format.
    served.send(header, Buffer.alloc(5000, 'not what the header says '))
    const error: unknown = await t.throwsAsync(bytesOf(client, served.url))
    t.regex(String(Reflect.get(Object(error), 'code')), /^(Z_|ERR_|ZSTD_)/)
    // No body at all.
    served.send(header, Buffer.alloc(0))
    t.is((await bytesOf(client, served.url)).length, 0)
    await client.close()
    await served.close()
  })
}

test('a wrong checksum rejects', async (t) => {
  const served = await serveEncoded()
  const client = createClient()
  const body = gzipSync(bodyOf(100_000))
  body.writeUInt8(body.readUInt8(body.length - 8) ^ 1, body.length - 8)
  served.send('gzip', body)
  await t.throwsAsync(bytesOf(client, served.url), { code: 'Z_DATA_ERROR' })
  await client.close()
  await served.close()
})

test('bytes behind a compressed body are ignored, however many', async (t) => {
  const served = await serveEncoded()
  const client = createClient()
  const plain = bodyOf(100_000)
  served.send('gzip', Buffer.concat([gzipSync(plain), Buffer.alloc(3 * MIB)]))
  t.true((await bytesOf(client, served.url)).equals(plain))
  await client.close()
  await served.close()
})

test('an encoding that is unknown leaves the body as it is', async (t) => {
  const served = await serveEncoded()
  const client = createClient()
  const body = gzipSync('abc')
  for (const header of ['aws-chunked', 'gzip, compress', 'utf-8']) {
    served.send(header, body)
    t.true((await bytesOf(client, served.url)).equals(body))
  }
  await client.close()
  await served.close()
})

test('a bomb ends at maxBytes', async (t) => {
  const served = await serveEncoded()
  const client = createClient({ maxBytes: 10 * MIB })
  const zeros = Buffer.alloc(300 * MIB)
  const bombs = { gzip: gzipSync(zeros), br: CODERS['br']?.(zeros) ?? zeros, deflate: zlib.deflateRawSync(zeros) }
  for (const [name, bomb] of Object.entries(bombs)) {
    served.send(name, bomb)
    t.true(bomb.length < 10 * MIB)
    const { body } = await client.request(served.url)
    await t.throwsAsync(body.parse(), { code: 'ERR_OFFLOOP_TOO_LARGE' })
  }
  await client.close()
  await served.close()
})

const withoutZstd = typeof zstdCompress === 'function' ? test.skip : test

withoutZstd('zstd without Node’s support says so', async (t) => {
  const served = await serveEncoded()
  const client = createClient()
  served.send('zstd', Buffer.alloc(10))
  const missing = { code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM', message: /Node 22\.15/ }
  await t.throwsAsync(client.request(served.url), missing)
  await t.throwsAsync(client.request(served.url, { body: 'a', compress: 'zstd' }), missing)
  await client.close()
  await served.close()
})

// ───────────────────────────── requests ─────────────────────────────

interface ReceivedRequest {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

async function serveRequests(answer: (response: ServerResponse) => unknown = (response) => response.end('{}')) {
  const received: ReceivedRequest[] = []
  const served = await serve((request, response) => {
    const { method, url, headers } = request
    void buffer(request).then((body) => {
      received.push({ method, url, headers, body })
      return answer(response)
    })
  })
  const last = (): ReceivedRequest => received.at(-1) ?? { method: '', url: '', headers: {}, body: Buffer.alloc(0) }
  return { ...served, received, last }
}

test('json is the bytes of encode', async (t) => {
  const served = await serveRequests()
  const client = createClient()
  const values = [
    null,
    'ä',
    { a: 1, b: [true, undefined, new Date(0)], c: { toJSON: () => 'json' } },
    Array.from({ length: 300_000 }, (_, index) => index / 7),
    { raw: rawJson('[1, 2]') },
  ]
  for (const value of values) {
    await (await client.request(served.url, { json: value })).body.discard()
    t.true(served.last().body.equals(await encode(value)))
    t.is(served.last().method, 'POST')
    t.is(served.last().headers['content-type'], 'application/json')
    t.is(served.last().headers['content-length'], String(served.last().body.length))
    t.is(served.last().headers['transfer-encoding'], undefined)
  }
  await client.request(served.url, { json: { b: 1, a: 2 }, encode: { sortKeys: true, space: 1 } })
  t.is(served.last().body.toString(), '{\n "a": 2,\n "b": 1\n}')
  const taken = new Uint8Array(100_000).fill(7)
  const whole = { bytes: taken.slice() }
  const options = { typedArrays: 'base64' } as const
  await client.post(served.url, { bytes: taken }, { encode: { ...options, transfer: true } })
  t.true(served.last().body.equals(await encode(whole, options)))
  t.is(taken.length, 0)
  const cyclic: unknown[] = []
  cyclic.push(cyclic)
  await t.throwsAsync(client.request(served.url, { json: cyclic }), { instanceOf: TypeError, message: /circular/i })
  await t.throwsAsync(client.post(served.url, undefined), { instanceOf: TypeError })
  await client.destroy()
  await served.close()
})

test('values and bytes are read before the call returns', async (t) => {
  const served = await serveRequests()
  const client = createClient()
  const json = { a: 'before' }
  const body = Buffer.alloc(200_000, 'before')
  const headers = { 'x-header': 'before' }
  const url = new URL(`${served.url}/before`)
  const all = [client.request(url, { json, headers }), client.request(url, { body, headers })]
  json.a = 'after'
  body.fill('after!')
  headers['x-header'] = 'after'
  url.pathname = '/after'
  for (const { body: answer } of await Promise.all(all)) await answer.discard()
  for (const request of served.received) {
    t.false(request.body.includes('after'))
    t.true(request.body.includes('before'))
    t.is(request.headers['x-header'], 'before')
    t.is(request.url, '/before')
  }
  t.is(served.received.length, 2)
  await client.close()
  await served.close()
})

test('bodies are sent as they are', async (t) => {
  const served = await serveRequests()
  const client = createClient()
  const large = bodyOf(5 * MIB)
  for (const [body, expected] of [
    ['', ''],
    ['ä\ud800', 'ä\ufffd'],
    [large, large],
    [large.subarray(7, 100_000), large.subarray(7, 100_000)],
    [new Uint8Array(new SharedArrayBuffer(100)).fill(1), Buffer.alloc(100, 1)],
    [new Uint8Array(0), ''],
  ] as const) {
    await (await client.request(served.url, { body })).body.discard()
    t.true(served.last().body.equals(Buffer.from(expected)))
    t.is(served.last().method, 'POST')
    t.is(served.last().headers['content-type'], undefined)
  }
  for (const method of ['PUT', 'PATCH', 'DELETE', 'QUERY', 'GET']) {
    await (await client.request(`${served.url}/?a=b#c`, { method, body: 'abc' })).body.discard()
    t.is(served.last().method, method)
    t.is(served.last().url, '/?a=b')
    t.is(served.last().body.toString(), 'abc')
  }
  await (await client.request(served.url)).body.discard()
  t.is(served.last().method, 'GET')
  await client.close()
  await served.close()
})

test('a content-type of the caller stays, whatever its case', async (t) => {
  const served = await serveRequests()
  const client = createClient()
  for (const name of ['content-type', 'Content-Type', 'CONTENT-TYPE']) {
    await client.post(
      served.url,
      {},
      { headers: { [name]: 'application/x', 'x-list': ['a', 'b'], 'x-none': undefined } },
    )
    t.is(served.last().headers['content-type'], 'application/x')
    t.is(served.last().headers['x-list'], 'a, b')
    t.false('x-none' in served.last().headers)
  }
  await client.post(served.url, {}, { headers: { 'Content-Type': undefined } })
  t.is(served.last().headers['content-type'], 'application/json')
  await client.close()
  await served.close()
})

test('compress', async (t) => {
  const served = await serveRequests()
  const client = createClient()
  const json = Array.from({ length: 100_000 }, (_, index) => index)
  await client.post(served.url, json, { compress: 'gzip' })
  t.is(served.last().headers['content-encoding'], 'gzip')
  t.is(served.last().headers['content-type'], 'application/json')
  t.true(gunzipSync(served.last().body).equals(await encode(json)))
  await (await client.request(served.url, { body: 'abc', compress: 'gzip' })).body.discard()
  t.is(gunzipSync(served.last().body).toString(), 'abc')
  await (await client.request(served.url, { compress: 'gzip' })).body.discard()
  t.is(served.last().headers['content-encoding'], undefined)
  if (typeof zstdCompress === 'function') {
    await client.post(served.url, json, { compress: 'zstd' })
    t.is(served.last().headers['content-encoding'], 'zstd')
    const plain: Buffer = Reflect.apply(Reflect.get(zlib, 'zstdDecompressSync'), zlib, [served.last().body])
    t.deepEqual(await parse(plain), json)
  }
  await client.close()
  await served.close()
})

// ───────────────────────────── post ─────────────────────────────

test('post parses the answer', async (t) => {
  const served = await serveRequests((response) => response.writeHead(201).end('{"a":"QUJD"}'))
  const client = createClient()
  t.deepEqual(await client.post(served.url, [1]), { a: 'QUJD' })
  t.deepEqual(await client.post(served.url, [1], { lift: { '/a': 'base64' }, method: 'PUT' }), {
    a: Buffer.from('ABC'),
  })
  t.is(served.last().method, 'PUT')
  await client.close()
  await served.close()
})

test('post rejects for another status, with the first 64 KiB of text', async (t) => {
  let status = 500
  let text = ''
  let header: [string, string] = ['x', 'y']
  const served = await serveRequests((response) => response.writeHead(status, [...header]).end(text))
  const client = createClient({ maxBytes: MIB })
  const failed = async (): Promise<OffloopError> => {
    const error = await t.throwsAsync(client.post(`${served.url}/path?secret`, 1), { instanceOf: OffloopError })
    return error ?? new OffloopError('ERR_OFFLOOP_INTERNAL', '')
  }
  for (status of [300, 304, 400, 404, 429, 500, 599]) {
    text = `text ${status}`
    const error = await failed()
    t.is(error.code, 'ERR_OFFLOOP_STATUS')
    t.is(error.status, status)
    t.is(error.message, `POST ${served.url}/path was answered with ${status}`)
    t.is(Reflect.get(Object(error.cause), 'body'), status === 304 ? '' : text)
  }
  status = 500
  for (text of [
    'ä'.repeat(50_000),
    `x${'ä'.repeat(50_000)}`,
    '\u{1f600}'.repeat(100_000),
    'x'.repeat(65_536),
    'x'.repeat(65_535),
  ]) {
    const body: unknown = Reflect.get(Object((await failed()).cause), 'body')
    const first = Buffer.from(text).subarray(0, 65_536)
    t.is(body, new TextDecoder().decode(first, { stream: true }))
  }
  header = ['content-encoding', 'gzip']
  const client2 = createClient()
  text = ''
  const zipped = gzipSync(Buffer.alloc(50 * MIB, 'abcd'))
  const compressed = await serveRequests((response) =>
    response.writeHead(503, { 'content-encoding': 'gzip' }).end(zipped),
  )
  const error = await t.throwsAsync(client2.post(compressed.url, 1), { instanceOf: OffloopError })
  t.is(Reflect.get(Object(error?.cause), 'body'), 'abcd'.repeat(16_384))
  await client2.close()
  await client.close()
  await compressed.close()
  await served.close()
})

test('post shows a status although its body is broken', async (t) => {
  const served = await serveRaw((socket) => {
    onRequest(socket, () => socket.end('HTTP/1.1 502 Bad\r\ncontent-length: 100\r\n\r\nhalf of it'))
  })
  const client = createClient()
  const error = await t.throwsAsync(client.post(served.url, 1), { instanceOf: OffloopError })
  t.is(error?.code, 'ERR_OFFLOOP_STATUS')
  t.is(error?.status, 502)
  t.is(Reflect.get(Object(error?.cause), 'body'), '')
  await client.close()
  await served.close()
})

// ───────────────────────────── aborts and ends ─────────────────────────────

/** Whether something listens for the signal's abort. */
function listenersOf(signal: AbortSignal): number {
  return getEventListeners(signal, 'abort').length
}

const REASON = new Error('enough')

test('an abort rejects with the reason at every stage', async (t) => {
  const mine = { is: REASON }
  const served = await serve((request, response) => {
    if (request.url === '/silent') return
    response.writeHead(200, { 'content-length': 1000 })
    if (request.url === '/whole') response.end(Buffer.alloc(1000, '1'))
    else response.write('half')
  })
  const client = createClient()
  const abort = (): AbortController => new AbortController()
  const aborted = abort()
  aborted.abort(REASON)
  // Before.
  await t.throwsAsync(client.request(served.url, { signal: aborted.signal }), mine)
  await t.throwsAsync(client.post(served.url, 1, { signal: aborted.signal }), mine)
  t.is(served.connections, 0)
  // While the body is made.
  let one = abort()
  const values = Array.from({ length: 1_000_000 }, (_, index) => index)
  let call: Promise<unknown> = client.request(served.url, { json: values, signal: one.signal })
  one.abort(REASON)
  await t.throwsAsync(call, mine)
  // While undici connects.
  one = abort()
  call = client.request(`${served.url}/silent`, { signal: one.signal })
  one.abort(REASON)
  await t.throwsAsync(call, mine)
  t.is(listenersOf(one.signal), 0)
  // While the head is awaited.
  one = abort()
  call = client.request(`${served.url}/silent`, { signal: one.signal })
  await new Promise((resolve) => setTimeout(resolve, 50))
  one.abort(REASON)
  await t.throwsAsync(call, mine)
  t.is(listenersOf(one.signal), 0)
  // While the body arrives.
  for (const method of ['parse', 'bytes', 'text'] as const) {
    one = abort()
    const { body } = await client.request(`${served.url}/half`, { signal: one.signal })
    call = body[method]()
    await setImmediate()
    one.abort(REASON)
    await t.throwsAsync(call, mine)
    t.is(listenersOf(one.signal), 0)
  }
  // Before the body is consumed.
  one = abort()
  for (const path of ['/half', '/whole']) {
    one = abort()
    const { body } = await client.request(served.url + path, { signal: one.signal })
    await new Promise((resolve) => setTimeout(resolve, 50))
    one.abort(REASON)
    await t.throwsAsync(body.bytes(), mine)
    t.is(listenersOf(one.signal), 0)
  }
  // By the signal of the consumer.
  one = abort()
  const { body } = await client.request(`${served.url}/half`)
  call = body.parse({ signal: one.signal })
  one.abort(REASON)
  await t.throwsAsync(call, mine)
  t.is(listenersOf(one.signal), 0)
  const timedOut = await client.post(`${served.url}/half`, 1, { signal: AbortSignal.timeout(50) }).catch(String)
  t.regex(String(timedOut), /^TimeoutError/)
  await until('no connection is open but those that are idle', () => served.sockets.size <= 1)
  await client.close()
  await served.close()
})

test('aborts at random moments leave no socket, no listener and no memory', async (t) => {
  const count = isFull ? 10_000 : 300
  const random = new Random(7)
  const large = JSON.stringify('x'.repeat(MIB))
  const served = await serve((request, response) => {
    request.resume()
    request.on('end', () => {
      response.writeHead(200)
      for (let piece = 0; piece < 4; piece += 1) response.write(piece === 0 ? '["a"' : `,${large.slice(0, 1000)}"`)
      setTimeout(() => response.end(`,${large}]`), 1)
    })
  })
  const client = createClient({ agent: { connections: 8 } })
  const shared = new AbortController()
  let outcomes = 0
  const once = async (): Promise<void> => {
    const own = new AbortController()
    const { signal } = random.once(2) ? own : shared
    const timer = setTimeout(() => own.abort(REASON), random.int(6))
    try {
      const json = { a: 'x'.repeat(random.int(100_000)) }
      const { body } = await client.request(served.url, { json, signal })
      const way = random.pick(['parse', 'text', 'discard', 'bytes', 'nothing'] as const)
      if (way === 'nothing') own.abort(REASON)
      else await body[way]()
    } catch (error) {
      if (error !== REASON) throw error
    }
    clearTimeout(timer)
    outcomes += 1
    if (listenersOf(own.signal) !== 0) throw new Error('a listener is left')
  }
  const rounds = count / 50
  let half = 0
  for (let round = 0; round < rounds; round += 1) {
    await Promise.all(Array.from({ length: 50 }, once))
    if (round !== Math.floor(rounds / 2)) continue
    globalThis.gc?.()
    half = process.memoryUsage().rss
  }
  t.is(outcomes, count)
  // Bodies whose signal is shared may be under way: those that nobody consumed.
  shared.abort(REASON)
  t.is(listenersOf(shared.signal), 0)
  await client.close()
  await until('no connection is open', () => served.sockets.size === 0)
  globalThis.gc?.()
  t.true(process.memoryUsage().rss - half < 200 * MIB)
  await until('no task runs', () => stats().running === 0)
  await served.close()
})

test('connections are used again, and those that a server closes are replaced', async (t) => {
  const served = await serve((_, response) => response.end('{}'))
  const client = createClient({ agent: { connections: 1 } })
  for (let turn = 0; turn < 10; turn += 1) t.deepEqual(await client.post(served.url, turn), {})
  t.is(served.connections, 1)
  for (const socket of served.sockets) socket.end()
  await until('the connection is closed', () => served.sockets.size === 0)
  t.deepEqual(await client.post(served.url, 1), {})
  t.is(served.connections, 2)
  for (const socket of served.sockets) socket.resetAndDestroy()
  // The client may not know yet: such a request rejects, and retries are the caller's.
  const error: unknown = await client.post(served.url, 1).catch((reason: unknown) => reason)
  t.regex(String(Reflect.get(Object(error), 'code')), /^(undefined|ECONNRESET|EPIPE|UND_ERR_SOCKET)$/)
  t.deepEqual(await client.post(served.url, 1), {})
  t.is(served.connections, 3)
  await client.close()
  await until('the connection is closed', () => served.sockets.size === 0)
  await served.close()
})

test('one request at a time on a connection', async (t) => {
  let most = 0
  let now = 0
  const served = await serve((_, response) => {
    now += 1
    most = Math.max(most, now)
    setTimeout(() => {
      now -= 1
      response.end('{}')
    }, 5)
  })
  const client = createClient({ agent: { connections: 1 } })
  await Promise.all(Array.from({ length: 10 }, (_, index) => client.post(served.url, index)))
  t.is(most, 1)
  t.is(served.connections, 1)
  await client.close()
  await served.close()
})

test('pipelined responses keep their bytes', async (t) => {
  const served = await serve(bodies)
  const client = createClient({ agent: { connections: 1, pipelining: 8 } })
  const sizes = Array.from({ length: 30 }, (_, index) => 1000 + index * 7919)
  const all = await Promise.all(
    sizes.map((size, index) => bytesOf(client, `${served.url}/${index % 3 === 0 ? 'chunked' : 'length'}/${size}`)),
  )
  for (const [index, bytes] of all.entries()) t.true(bytes.equals(bodyOf(sizes[index] ?? 0)))
  await client.close()
  await served.close()
})

test('time-outs are those of undici', async (t) => {
  const served = await serve((request, response) => {
    if (request.url === '/body') response.writeHead(200).write('half')
  })
  const client = createClient({ agent: { headersTimeout: 50, bodyTimeout: 50 } })
  await t.throwsAsync(client.request(served.url), { code: 'UND_ERR_HEADERS_TIMEOUT' })
  const { body } = await client.request(`${served.url}/body`)
  await t.throwsAsync(body.bytes(), { code: 'UND_ERR_BODY_TIMEOUT' })
  await client.close()
  await served.close()
})

// Alone: a server of another test could get the port.
test.serial('nobody listens there', async (t) => {
  const served = await serve(() => undefined)
  await served.close()
  const client = createClient()
  await t.throwsAsync(client.request(served.url), { code: 'ECONNREFUSED' })
  await client.close()
})

test('close waits for requests under way, destroy ends them, and nothing starts afterwards', async (t) => {
  const closed = { instanceOf: OffloopError, code: 'ERR_OFFLOOP_CLOSED' }
  const answers: ServerResponse[] = []
  const served = await serve((_, response) => void answers.push(response))
  const client = createClient()
  const values = Array.from({ length: 100_000 }, (_, index) => index)
  const calls = [client.post(served.url, values), client.post(served.url, 1)]
  let isClosed = false
  const closing = client.close().then(() => (isClosed = true))
  await t.throwsAsync(client.request(served.url), closed)
  await until('both requests came', () => answers.length === 2)
  await setImmediate()
  t.false(isClosed)
  for (const answer of answers) answer.end('[1]')
  t.deepEqual(await Promise.all(calls), [[1], [1]])
  await closing
  await client.close()
  await client.destroy()
  await until('no connection is open', () => served.sockets.size === 0)

  const other = createClient({ agent: { connections: 1 } })
  const waiting = [other.post(served.url, 1), other.post(served.url, 2), other.post(served.url, values)]
  await until('a request came', () => answers.length === 3)
  const closingToo = other.close()
  await other.destroy()
  for (const call of waiting) await t.throwsAsync(call, closed)
  await closingToo
  await t.throwsAsync(other.request(served.url), closed)
  await until('no connection is open', () => served.sockets.size === 0)

  const disposed = createClient()
  {
    await using client3 = disposed
    t.is(client3, disposed)
  }
  await t.throwsAsync(disposed.request(served.url), closed)
  await served.close()
})

test('destroy ends bodies', async (t) => {
  const served = await serve((_, response) => response.writeHead(200).write('half'))
  const client = createClient()
  const { body } = await client.request(served.url)
  const { body: second } = await client.request(served.url)
  const bytes = body.bytes()
  await Promise.all([client.destroy(), t.throwsAsync(bytes, { code: 'ERR_OFFLOOP_CLOSED' })])
  await t.throwsAsync(second.bytes(), { code: 'ERR_OFFLOOP_CLOSED' })
  await served.close()
})

// ───────────────────────────── proxies ─────────────────────────────

/** A proxy that tunnels, and forwards what comes without a tunnel. */
async function serveProxy(): Promise<{ url: string; tunnels: () => number; close: () => Promise<void> }> {
  let tunnels = 0
  const served = await serveRaw((socket) => {
    socket.once('data', (chunk: Buffer) => {
      const [, method = '', target = ''] = /^(\w+) (\S+)/.exec(chunk.toString('latin1')) ?? []
      const to = method === 'CONNECT' ? new URL(`http://${target}`) : new URL(target)
      const upstream = net.connect(Number(to.port), '127.0.0.1', () => {
        tunnels += 1
        if (method === 'CONNECT') socket.write('HTTP/1.1 200 Connected\r\n\r\n')
        else upstream.write(chunk)
        socket.pipe(upstream).pipe(socket)
      })
      upstream.on('error', () => socket.destroy())
      socket.on('close', () => upstream.destroy())
    })
  })
  return { url: served.url, tunnels: () => tunnels, close: () => served.close() }
}

for (const [name, options, connect] of servers.filter(([scheme]) => scheme !== 'a Unix socket')) {
  test(`${name} through a proxy`, async (t) => {
    const served = await serve(bodies, options)
    const proxy = await serveProxy()
    for (const url of [proxy.url, new URL(proxy.url)]) {
      const client = createClient({ proxy: url, agent: { connect } })
      for (const framing of ['length', 'chunked', 'close']) {
        for (const size of [1000, 1_000_003]) {
          const received = await bytesOf(client, `${served.url}/${framing}/${size}`)
          t.true(received.equals(bodyOf(size)), `${framing}, ${size}`)
        }
      }
      // A body that pauses.
      for (const framing of ['length', 'close']) {
        const { body } = await client.request(`${served.url}/${framing}/${12 * MIB}`)
        await new Promise((resolve) => setTimeout(resolve, 100))
        t.true((await body.bytes()).equals(bodyOf(12 * MIB)))
      }
      await client.close()
    }
    t.true(0 < proxy.tunnels())
    await proxy.close()
    await served.close()
  })
}

// ───────────────────────────── arguments ─────────────────────────────

/** Wrong options of `createClient`, which throws. */
const WRONG_CLIENTS: readonly (readonly [options: unknown, code: string, message?: RegExp])[] = [
  [null, 'ERR_INVALID_ARG_TYPE'],
  [1, 'ERR_INVALID_ARG_TYPE'],
  [{ unknown: 1 }, 'ERR_INVALID_ARG_VALUE'],
  [{ agent: 1 }, 'ERR_INVALID_ARG_TYPE'],
  [{ agent: { connect: () => undefined } }, 'ERR_INVALID_ARG_VALUE', /not a function/],
  [{ agent: { connect: 1 } }, 'ERR_INVALID_ARG_TYPE'],
  [{ agent: { factory: () => undefined } }, 'ERR_INVALID_ARG_VALUE', /factory/],
  [{ agent: { interceptors: {} } }, 'ERR_INVALID_ARG_VALUE', /interceptors/],
  [{ agent: { allowH2: true } }, 'ERR_INVALID_ARG_VALUE', /allowH2/],
  [{ agent: { maxOrigins: -1 } }, 'UND_ERR_INVALID_ARG'],
  [{ proxy: 1 }, 'ERR_INVALID_ARG_TYPE'],
  [{ proxy: 'nowhere' }, 'ERR_INVALID_URL'],
  [{ readBytes: 4095 }, 'ERR_OUT_OF_RANGE'],
  [{ readBytes: 2 ** 30 }, 'ERR_OUT_OF_RANGE'],
  [{ readBytes: '1' }, 'ERR_INVALID_ARG_TYPE'],
  [{ maxBytes: -1 }, 'ERR_OUT_OF_RANGE'],
  [{ maxBytes: 1.5 }, 'ERR_OUT_OF_RANGE'],
]

for (const [options, code, message] of WRONG_CLIENTS) {
  test(`createClient(${inspect(options)}) throws ${code}`, (t) => {
    t.throws(() => Reflect.apply(createClient, undefined, [options]), { code, ...(message && { message }) })
  })
}

/** Calls with arguments that no type checker would let through. */
function callWith(client: Client, method: 'request' | 'post', args: readonly unknown[]): Promise<unknown> {
  return Reflect.apply(client[method], client, args)
}

/** Wrong arguments of `request`, which rejects. */
const WRONG_REQUESTS: readonly (readonly [args: readonly unknown[], code: string])[] = [
  [[], 'ERR_INVALID_ARG_TYPE'],
  [[1], 'ERR_INVALID_ARG_TYPE'],
  [[{ href: 'http://a' }], 'ERR_INVALID_ARG_TYPE'],
  [['nowhere'], 'ERR_INVALID_URL'],
  [['ftp://localhost'], 'ERR_INVALID_ARG_VALUE'],
  [['http://user:password@localhost'], 'ERR_INVALID_ARG_VALUE'],
  [['http://a', null], 'ERR_INVALID_ARG_TYPE'],
  [['http://a', { unknown: 1 }], 'ERR_INVALID_ARG_VALUE'],
  [['http://a', { method: 1 }], 'ERR_INVALID_ARG_TYPE'],
  [['http://a', { method: 'connect' }], 'ERR_INVALID_ARG_VALUE'],
  [['http://a', { method: 'a b' }], 'UND_ERR_INVALID_ARG'],
  [['http://a', { headers: 1 }], 'ERR_INVALID_ARG_TYPE'],
  [['http://a', { headers: [['a', 'b']] }], 'ERR_INVALID_ARG_TYPE'],
  [['http://a', { headers: new Map() }], 'ERR_INVALID_ARG_TYPE'],
  [['http://a', { headers: { a: 1 } }], 'ERR_INVALID_ARG_TYPE'],
  [['http://a', { headers: { a: ['b', 1] } }], 'ERR_INVALID_ARG_TYPE'],
  [['http://a', { headers: { 'a b': 'c' } }], 'UND_ERR_INVALID_ARG'],
  [['http://a', { headers: { a: 'b\r\nc: d' } }], 'UND_ERR_INVALID_ARG'],
  [['http://a', { body: 1 }], 'ERR_INVALID_ARG_TYPE'],
  [['http://a', { body: new Uint16Array(1) }], 'ERR_INVALID_ARG_TYPE'],
  [['http://a', { body: 'a', json: 1 }], 'ERR_INVALID_ARG_VALUE'],
  [['http://a', { json: 1, encode: 1 }], 'ERR_INVALID_ARG_TYPE'],
  [['http://a', { json: 1, encode: { signal: undefined } }], 'ERR_INVALID_ARG_VALUE'],
  [['http://a', { compress: 'br' }], 'ERR_INVALID_ARG_VALUE'],
  [['http://a', { json: 1, compress: 'gzip', headers: { 'Content-Encoding': 'x' } }], 'ERR_INVALID_ARG_VALUE'],
  [['http://a', { maxBytes: -1 }], 'ERR_OUT_OF_RANGE'],
  [['http://a', { signal: {} }], 'ERR_INVALID_ARG_TYPE'],
]

for (const [args, code] of WRONG_REQUESTS) {
  test(`request(${args.map((one) => inspect(one)).join(', ')}) rejects with ${code}`, async (t) => {
    const client = createClient()
    const result = callWith(client, 'request', args)
    t.true(result instanceof Promise)
    await t.throwsAsync(result, { code })
    const [url, options] = args
    if (typeof options === 'object' && options !== null && !('json' in options) && !('body' in options)) {
      await t.throwsAsync(callWith(client, 'post', [url, 1, options]), { code })
    }
    await client.close()
  })
}

test('post refuses json, body and transfer', async (t) => {
  const client = createClient()
  for (const options of [{ json: 1 }, { body: 'a' }, { transfer: true }, { lift: { a: 'raw' } }]) {
    await t.throwsAsync(callWith(client, 'post', ['http://a', 1, options]), { code: 'ERR_INVALID_ARG_VALUE' })
  }
  await client.close()
})

test('a detached body is refused', async (t) => {
  const client = createClient()
  const body = new Uint8Array(10)
  structuredClone(body.buffer, { transfer: [body.buffer] })
  await t.throwsAsync(client.request('http://a', { body }), { code: 'ERR_INVALID_ARG_VALUE' })
  await client.close()
})

// ───────────────────────────── in processes of their own ─────────────────────────────

for (const name of ['answered', 'early', 'aborted']) {
  test(`memory of request bodies: ${name}`, async (t) => {
    const { code, stdout, stderr } = await runScenario('http', name)
    t.is(stderr, '')
    t.is(stdout, 'played\n')
    t.is(code, 0)
  })
}

test('without undici, the import says what to install', async (t) => {
  const { code, stdout, stderr } = await runScenario('http-import', 'missing')
  t.is(stderr, '')
  t.is(stdout, 'played\n')
  t.is(code, 0)
})

test('a connection that was paused for one body goes on with the next', async (t) => {
  const large = bodyOf(4 * MIB + 20_000)
  const packed = gzipSync(Buffer.alloc(30 * MIB, 97))
  let left = 0
  const served = await serve((request, response) => {
    request.resume()
    left += 1
    response.on('finish', () => (left -= 1))
    if (request.url === '/packed') response.setHeader('content-encoding', 'gzip')
    response.end(request.url === '/packed' ? packed : large)
  })
  /** Waits until the server has sent all, and a little longer: the client reads it before its body is wanted. */
  const hasArrived = async (): Promise<void> => {
    await until('all is sent', () => left === 0)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const uses: readonly (readonly [
    path: string,
    maxBytes: number,
    use: (client: Client, url: string) => Promise<unknown>,
  ])[] = [
    [
      '/',
      Infinity,
      async (client, url) => {
        const { body } = await client.request(url)
        await hasArrived()
        return await body.bytes()
      },
    ],
    [
      '/packed',
      Infinity,
      async (client, url) => {
        const { body } = await client.request(url)
        await hasArrived()
        await body.discard()
      },
    ],
    ['/packed', 6 * MIB, (client, url) => t.throwsAsync(bytesOf(client, url), { code: 'ERR_OFFLOOP_TOO_LARGE' })],
  ]
  for (const [path, maxBytes, use] of uses) {
    const client = createClient({ agent: { connections: 1 }, maxBytes })
    for (let round = 0; round < 3; round += 1) {
      await use(client, `${served.url}${path}`)
      t.true((await bytesOf(client, `${served.url}/`)).equals(large), `${path} ${round}`)
    }
    await client.close()
  }
  await served.close()
})

// ───────────────────────────── events ─────────────────────────────

/** Answers what `write` writes as a stream of events. */
function serveEvents(write: (response: ServerResponse) => unknown): ReturnType<typeof serve> {
  return serve((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    void Promise.resolve(write(response)).then(() => response.end())
  })
}

test('events come while the body arrives, with lifts, and the connection serves the next request', async (t) => {
  const seen: unknown[] = []
  const large = Buffer.alloc(300_000, 7)
  const served = await serveEvents(async (response) => {
    response.write('data: 1\n\nda')
    await until('the first event was seen', () => seen.length === 1)
    response.write('ta: 2\n\n')
    await until('the second event was seen', () => seen.length === 2)
    response.write(`id: 9\ndata: {"a":"${large.toString('base64')}"}\n\ndata: [DONE]\n\n`)
  })
  const client = createClient()
  for (let round = 0; round < 3; round += 1) {
    const { body } = await client.request(served.url)
    for await (const event of body.events({ lift: { '/a': 'base64' } })) seen.push(event)
    t.deepEqual(seen.splice(0), [
      { event: 'message', id: '', data: 1 },
      { event: 'message', id: '', data: 2 },
      { event: 'message', id: '9', data: { a: large } },
    ])
    await setImmediate()
  }
  await client.close()
  await served.close()
})

test('events of a compressed body', async (t) => {
  const served = await serve((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-encoding': 'gzip' })
    response.end(gzipSync(Array.from({ length: 5000 }, (_, index) => `data: ${index}\n\n`).join('')))
  })
  const client = createClient()
  const { body } = await client.request(served.url)
  let next = 0
  for await (const { data } of body.events()) t.is(data, next++)
  t.is(next, 5000)
  t.is(served.connections, 1)
  await client.close()
  await served.close()
})

test('leaving the events ends the response, and a body is used once', async (t) => {
  let isClosed = false
  const served = await serveEvents(async (response) => {
    response.on('close', () => (isClosed = true))
    response.write('data: 1\n\n')
    await until('the response is closed', () => isClosed)
  })
  const client = createClient()
  const { body } = await client.request(served.url)
  for await (const { data } of body.events()) {
    t.is(data, 1)
    break
  }
  await until('the response is closed', () => isClosed)
  const again = body.events()[Symbol.asyncIterator]()
  await t.throwsAsync(again.next(), { code: 'ERR_OFFLOOP_CLOSED' })
  await t.throwsAsync(body.parse(), { code: 'ERR_OFFLOOP_CLOSED' })
  await client.close()
  await served.close()
})

test('events end with the reason of either signal, and with the error of a connection', async (t) => {
  const reason = new Error('mine')
  const served = await serveEvents(async (response) => {
    response.write('data: 1\n\n')
    await until('the connection is closed', () => response.destroyed)
  })
  const client = createClient()
  for (const isOfRequest of [true, false]) {
    const controller = new AbortController()
    const { signal } = controller
    const { body } = await client.request(served.url, isOfRequest ? { signal } : {})
    const events = body.events(isOfRequest ? {} : { signal })[Symbol.asyncIterator]()
    t.is(Object((await events.next()).value).data, 1)
    const waiting = events.next()
    controller.abort(reason)
    t.is(await t.throwsAsync(waiting), reason)
    t.is(getEventListeners(signal, 'abort').length, 0)
  }
  const { body } = await client.request(served.url)
  const events = body.events()[Symbol.asyncIterator]()
  await events.next()
  const waiting = events.next()
  for (const socket of served.sockets) socket.destroy()
  await t.throwsAsync(waiting)
  t.deepEqual(await events.next(), { done: true, value: undefined })
  await client.close()
  await served.close()
})

test('events that nobody asks for pause the connection; maxBytes ends it', async (t) => {
  let written = 0
  const served = await serveEvents(async (response) => {
    const event = `data: "${'x'.repeat(64 * 1024)}"\n\n`
    while (!response.destroyed && written < 200 * MIB) {
      written += event.length
      if (response.write(event)) continue
      await new Promise<void>((resolve) => {
        response.once('drain', resolve).once('close', resolve)
      })
      response.removeAllListeners('close')
    }
  })
  const client = createClient()
  const { body } = await client.request(served.url)
  const events = body.events()[Symbol.asyncIterator]()
  for (let round = 0; round < 50; round += 1) {
    await events.next()
    await setImmediate()
  }
  let before = -1
  await until('the server writes no more', () => {
    const isStill = before === written
    before = written
    return isStill
  })
  t.true(written < 100 * MIB, `${written} bytes`)
  await events.return?.()
  written = 0
  const bounded = await client.request(served.url, { maxBytes: MIB })
  const error = await t.throwsAsync(async () => {
    for await (const event of bounded.body.events()) t.is(event.event, 'message')
  })
  t.like(error, { code: 'ERR_OFFLOOP_TOO_LARGE' })
  await client.close()
  await served.close()
})
