/** Server-sent events, against `eventsource-parser` on random cuts of random streams. `OFFLOOP_FUZZ` says how many. */

import { getEventListeners } from 'node:events'
import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { createParser } from 'eventsource-parser'
import { parse, parseEvents, stats, type EventsOptions, type ServerEvent } from '../src/index.ts'
import { FUZZ } from './fixtures/extent.ts'
import { inChunks, noise } from './fixtures/text.ts'
import { Random } from './fixtures/values.ts'

const utf8 = (text: string): Buffer => Buffer.from(text)

interface Outcome {
  readonly events: ServerEvent<unknown>[]
  readonly error: unknown
}

async function read(body: AsyncIterable<Uint8Array>, options?: EventsOptions): Promise<Outcome> {
  const events: ServerEvent<unknown>[] = []
  try {
    for await (const event of parseEvents(body, options)) events.push(event)
    return { events, error: undefined }
  } catch (error) {
    return { events, error }
  }
}

function codeOf({ error }: Outcome): unknown {
  return error === undefined ? undefined : Reflect.get(Object(error), 'code')
}

async function* cut(bytes: Buffer, sizes: () => number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length;) {
    const end = at + sizes()
    yield bytes.subarray(at, end)
    at = end
  }
}

/** Returns the events that `eventsource-parser` finds. It keeps no id for later events, so ids are kept here. */
function expectedOf(text: string): { readonly events: ServerEvent<unknown>[]; readonly fails: boolean } {
  const events: ServerEvent<unknown>[] = []
  const state = { id: '', isOver: false, fails: false }
  const parser = createParser({
    onEvent: ({ id = state.id, event = 'message', data }) => {
      state.isOver ||= data === '[DONE]'
      if (state.isOver) return
      state.id = id
      try {
        events.push({ event, id, data: JSON.parse(data) })
      } catch {
        // SyntaxError: the data is not JSON.
        state.isOver = true
        state.fails = true
      }
    },
  })
  parser.feed(text)
  return { events, fails: state.fails }
}

const DATA = ['1', 'null', '{"a":[1,2]}', '"é中😀"', ' [1,', '2]', '{"a":', '"x"}', '', 'x', '[DONE]', '"\u0000"']

function randomStream(random: Random): string {
  const line = (): string => {
    switch (random.int(10)) {
      case 0:
        return random.pick(['event: delta', 'event', 'event:', 'event:a b', 'event:  c'])
      case 1:
        // An id belongs to the event behind it: a data line follows at once.
        return `id${random.pick([':', ': '])}${random.pick(['7', 'é"\\', '', 'a b'])}\ndata: 1`
      case 2:
        return random.pick([
          ': comment',
          ':',
          'retry: 5',
          'retry: x',
          'other: data: 1',
          ' data: 1',
          'id: \0',
          'data : 1',
        ])
      case 3:
      case 4:
      case 5:
        return ''
      case 6:
        return `data: ${JSON.stringify('y'.repeat(random.once(20) ? 30_000 + random.int(70_000) : random.int(50)))}`
      default:
        return `data${random.pick([':', ': '])}${random.pick(DATA)}`
    }
  }
  const end = random.pick(['\n', '\r', '\r\n', undefined])
  const lines = random.list(random.int(40), () => line() + (end ?? random.pick(['\n', '\r', '\r\n'])))
  // A line feed at the end: the parser waits behind a carriage return.
  return `${random.once(4) ? '\ufeff' : ''}${lines.join('')}: end\n`
}

test('random streams, however they are cut', async (t) => {
  const random = new Random(17)
  for (let round = 0; round < FUZZ / 20; round += 1) {
    const text = randomStream(random)
    const { events, fails } = expectedOf(text.replace('\ufeff', ''))
    const sizes = random.list(1 + random.int(5), () => (random.once(2) ? 1 + random.int(5) : 1 + random.int(100_000)))
    let next = 0
    const isByEvent = random.once(3)
    const chunks = isByEvent
      ? Readable.from(text.split(/(?<=\n\n)/u).map(utf8))
      : cut(utf8(text), () => sizes[next++ % sizes.length] ?? 1)
    const options = { lift: random.pick([{}, { '/**/nothing': 'raw' }] as const) }
    const outcome = await read(chunks, options)
    t.deepEqual(outcome.events, events, JSON.stringify(text.slice(0, 500)))
    t.is(codeOf(outcome), fails ? 'ERR_OFFLOOP_JSON' : undefined, JSON.stringify(text.slice(0, 500)))
  }
})

test('chunks of whole events, among others: ids, names, offsets and errors', async (t) => {
  const whole = 'data: 1\n\ndata: "é"\n\n'
  for (const [others, expected] of [
    [['id: 7\n\n'], '7'],
    [['id: 7\ndata: 2\n\n'], '7'],
    [['event: x\nid: 7\ndata: 2\n\n', 'id\n\n'], ''],
    [['data: 2\n\nid: 7\n\n'], '7'],
    [['id: 7', '\n\n'], '7'],
    [['\r', '\ndata: 2\r\n\r', '\n'], ''],
    [['data: 2\n', '\n'], ''],
    [['\ufeffdata: 2\n\n'], ''],
  ] as const) {
    const { events } = await read(Readable.from([whole, ...others, whole, whole].map(utf8)))
    const plain = events.filter(({ data }) => data === 1)
    t.deepEqual(
      plain.map(({ event, id }) => [event, id]),
      [
        ['message', ''],
        ['message', expected],
        ['message', expected],
      ],
    )
    const failing = await read(Readable.from([whole, ...others, whole, `${whole}data: x\n\n`].map(utf8)))
    t.like(failing.error, {
      code: 'ERR_OFFLOOP_JSON',
      offset: Buffer.byteLength([whole, ...others, whole, whole, 'data: '].join('')),
    })
  }
  t.is(codeOf(await read(Readable.from([utf8(whole)]), { maxEventBytes: 8 })), 'ERR_OFFLOOP_TOO_LARGE')
  t.is((await read(Readable.from([utf8(whole)]), { maxEventBytes: 11 })).events.length, 1)
  t.is((await read(Readable.from([utf8(whole)]), { maxEventBytes: 12 })).events.length, 2)
  t.is((await read(Readable.from([utf8(whole)]), { done: '"é"' })).events.length, 1)
})

test('the values of events are lifted as parse lifts them, in small events and in large ones', async (t) => {
  const options = { lift: { '/a/*': 'base64', '/n': { ragged: 'int32' }, '/r': 'raw' }, dropStringsOver: 100 } as const
  for (const size of [3, 3000, 300_000, 3_000_000]) {
    const data = JSON.stringify({
      a: [noise(size).toString('base64'), 'QUJD'],
      n: [[1, 2], [], [3]],
      r: { x: 'y' },
      long: 'z'.repeat(101),
      text: 'é中',
    })
    const expected = await parse(utf8(data), options)
    const stream = utf8(`data: 1\n\nid: 5\nevent: x\ndata: ${data}\n\ndata: 2\n\n`)
    for (const chunk of [16_384, 65_536, stream.length]) {
      const { events, error } = await read(inChunks(stream, chunk), options)
      t.is(error, undefined)
      t.deepEqual(events, [
        { event: 'message', id: '', data: 1 },
        { event: 'x', id: '5', data: expected },
        { event: 'message', id: '5', data: 2 },
      ])
    }
  }
})

test('raw values of several data lines are those of the lines joined', async (t) => {
  const stream = utf8('data: {"r":{"a":1,\r\nid: 1\r\ndata:   "b":[2]}\r\ndata: }\r\n\r\n')
  for (const size of [1, 1000]) {
    const { events } = await read(inChunks(stream, size), { lift: { '/r': 'raw' } })
    t.is(String(Reflect.get(Object(events[0]?.data), 'r')), '{"a":1,\n  "b":[2]}')
  }
})

test('errors come behind the events before them, with their byte in the stream', async (t) => {
  const large = JSON.stringify({ a: 'A'.repeat(100_000), b: [300] })
  for (const [text, options, code, offset, pointer] of [
    ['data: 1\n\ndata: [1,x]\n\ndata: 2\n\n', {}, 'ERR_OFFLOOP_JSON', 18, undefined],
    ['data: 1\n\ndata:\n\n', {}, 'ERR_OFFLOOP_JSON', 14, undefined],
    ['data: 1\n\ndata: [1,\ndata: y]\n\n', {}, 'ERR_OFFLOOP_JSON', 25, undefined],
    ['data: 1\n\ndata: {"a":"Q*"}\n\n', { lift: { '/a': 'base64' } }, 'ERR_OFFLOOP_LIFT', 22, '/a'],
    ['data: 1\n\ndata: {"a":7}\n\n', { lift: { '/a': 'base64' } }, 'ERR_OFFLOOP_LIFT', 20, '/a'],
    [`data: 1\n\ndata: ${large}x\n\n`, {}, 'ERR_OFFLOOP_JSON', 15 + large.length, undefined],
    [`data: 1\n\ndata: ${large}\n\n`, { lift: { '/b': 'uint8' } }, 'ERR_OFFLOOP_LIFT', 15 + large.length - 5, '/b'],
    [`data: 1\n\n: ${'x'.repeat(5000)}\n\n`, { maxEventBytes: 5000 }, 'ERR_OFFLOOP_TOO_LARGE', undefined, undefined],
    [`data: 1\n\n${': x\n'.repeat(5000)}`, { maxEventBytes: 5000 }, 'ERR_OFFLOOP_TOO_LARGE', undefined, undefined],
  ] as const) {
    for (const size of [1, 50_000, 1e6]) {
      const body = Readable.from(inChunks(utf8(text), size))
      const outcome = await read(body, options)
      t.deepEqual(outcome.events, [{ event: 'message', id: '', data: 1 }])
      t.like(outcome.error, { code, offset, pointer })
      t.true(body.destroyed)
    }
  }
})

test('an event of maxEventBytes is read', async (t) => {
  const stream = utf8(`data: ${JSON.stringify('x'.repeat(100_000))}\n\n`)
  for (const size of [999, stream.length]) {
    const fit = await read(inChunks(stream, size), { maxEventBytes: stream.length })
    t.is(fit.events.length, 1)
    const unfit = await read(inChunks(stream, size), { maxEventBytes: stream.length - 1 })
    t.is(codeOf(unfit), 'ERR_OFFLOOP_TOO_LARGE')
  }
})

test('a stream of maxBytes is read, and a longer one is cancelled', async (t) => {
  const stream = utf8('data: 1\n\n'.repeat(10))
  t.is((await read(inChunks(stream, 9), { maxBytes: 90 })).events.length, 10)
  const body = Readable.from(inChunks(stream, 9))
  const outcome = await read(body, { maxBytes: 89 })
  t.is(outcome.events.length, 9)
  t.is(codeOf(outcome), 'ERR_OFFLOOP_TOO_LARGE')
  t.true(body.destroyed)
})

test('the event that ends the iteration cancels the stream; any data can be it, or none', async (t) => {
  const text = 'data: 1\n\ndata: [DONE]\n\ndata: 2\n\n'
  const body = Readable.from(inChunks(utf8(text), 1000))
  const { events } = await read(body)
  t.deepEqual(
    events.map(({ data }) => data),
    [1],
  )
  t.true(body.destroyed)
  t.is(codeOf(await read(inChunks(utf8(text), 5), { done: null })), 'ERR_OFFLOOP_JSON')
  t.is((await read(inChunks(utf8(text), 5), { done: '1' })).events.length, 0)
  const long = 'x'.repeat(100_000)
  t.is((await read(inChunks(utf8(`data: 1\n\ndata: ${long}\n\ndata: 2\n\n`), 5000), { done: long })).events.length, 1)
  t.is((await read(inChunks(utf8('data: a\ndata: b\n\ndata: 2\n\n'), 5), { done: 'a\nb' })).events.length, 0)
})

test('large events without data are left out', async (t) => {
  const stream = utf8(`id: 3\n: ${'x'.repeat(200_000)}\n\ndata: 1\n\n`)
  t.deepEqual((await read(inChunks(stream, 50_000))).events, [{ event: 'message', id: '3', data: 1 }])
})

test('an event at the end without a blank line is left out, as the standard says', async (t) => {
  for (const end of ['', '\n', '\r']) {
    const { events, error } = await read(inChunks(utf8(`data: 1\n\ndata: 2${end}`), 4))
    t.deepEqual([events.length, error], [1, undefined])
  }
})

test('1 MiB in chunks of one byte', async (t) => {
  const data = JSON.stringify({ a: 'QUJD'.repeat(1 << 18) })
  const { events } = await read(inChunks(utf8(`data: ${data}\n\n`), 1), { lift: { '/a': 'base64' } })
  t.is(Object(events[0]?.data).a.length, 3 << 18)
})

test('leaving the loop cancels the stream', async (t) => {
  const bodies: readonly (() => { readonly body: AsyncIterable<Uint8Array>; readonly isEnded: () => boolean })[] = [
    () => {
      const body = new Readable({ read: () => undefined })
      body.push('data: 1\n\ndata: 2\n\n')
      return { body, isEnded: () => body.destroyed }
    },
    () => {
      let isEnded = false
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(utf8('data: 1\n\ndata: 2\n\n')),
        cancel() {
          isEnded = true
        },
      })
      return { body, isEnded: () => isEnded }
    },
  ]
  for (const make of bodies) {
    const { body, isEnded } = make()
    for await (const { data } of parseEvents(body)) {
      t.is(data, 1)
      break
    }
    t.true(isEnded())
  }
})

test('chunks are read when events are asked for, and not before', async (t) => {
  let reads = 0
  async function* chunks(): AsyncGenerator<Buffer> {
    for (;;) {
      reads += 1
      yield utf8(`data: ${reads}\n\ndata: ${reads}\n\n`)
    }
  }
  const iterator = parseEvents(chunks())[Symbol.asyncIterator]()
  t.is(reads, 0)
  for (let event = 0; event < 10; event += 1) {
    t.deepEqual((await iterator.next()).value, { event: 'message', id: '', data: Math.floor(event / 2) + 1 })
    await setImmediate()
    t.is(reads, Math.floor(event / 2) + 1)
  }
  await iterator.return?.()
  t.deepEqual(await iterator.next(), { done: true, value: undefined })
})

test('calls that do not wait for each other get the events in order', async (t) => {
  const text = Array.from({ length: 20 }, (_, index) => `data: ${index}\n\n`).join('')
  const iterator = parseEvents(inChunks(utf8(text), 17))[Symbol.asyncIterator]()
  const results = await Promise.all(Array.from({ length: 22 }, () => iterator.next()))
  t.deepEqual(
    results.map(({ value }) => (value === undefined ? undefined : Object(value).data)),
    [...Array.from({ length: 20 }, (_, index) => index), undefined, undefined],
  )
})

test('an abort ends the iteration with its reason, and the stream, and no listener stays', async (t) => {
  const reason = new Error('mine')
  const controller = new AbortController()
  const { signal } = controller
  const body = new Readable({ read: () => undefined })
  body.push('data: 1\n\ndata: 2\n\n')
  const iterator = parseEvents(body, { signal })[Symbol.asyncIterator]()
  t.is(Object((await iterator.next()).value).data, 1)
  await iterator.next()
  const waiting = iterator.next()
  controller.abort(reason)
  t.is(await t.throwsAsync(waiting), reason)
  t.true(body.destroyed)
  t.is(getEventListeners(signal, 'abort').length, 0)
  t.deepEqual(await iterator.next(), { done: true, value: undefined })
  const aborted = parseEvents(Readable.from([]), { signal })[Symbol.asyncIterator]()
  t.is(await t.throwsAsync(aborted.next()), reason)
  // Events that are ready are not returned after an abort.
  const later = new AbortController()
  const ready = parseEvents(inChunks(utf8('data: 1\n\ndata: 2\n\n'), 99), { signal: later.signal })[
    Symbol.asyncIterator
  ]()
  await ready.next()
  later.abort(reason)
  t.is(await t.throwsAsync(ready.next()), reason)
})

test('an error of the stream is that of the iteration', async (t) => {
  const reason = new Error('mine')
  async function* failing(): AsyncGenerator<Buffer> {
    yield utf8('data: 1\n\ndata: 2')
    throw reason
  }
  for (const body of [failing(), Readable.from(failing())]) {
    const { events, error } = await read(body)
    t.is(events.length, 1)
    t.is(error, reason)
  }
})

test('wrong arguments reject the first event', async (t) => {
  for (const [body, options, code] of [
    [utf8('data: 1\n\n'), {}, 'ERR_INVALID_ARG_TYPE'],
    [undefined, {}, 'ERR_INVALID_ARG_TYPE'],
    [Readable.from(['text']), {}, 'ERR_INVALID_ARG_TYPE'],
    [Readable.from([]), { done: 1 }, 'ERR_INVALID_ARG_TYPE'],
    [Readable.from([]), { maxEventBytes: -1 }, 'ERR_OUT_OF_RANGE'],
    [Readable.from([]), { transfer: true }, 'ERR_INVALID_ARG_VALUE'],
    [Readable.from([]), { lift: { a: 'raw' } }, 'ERR_INVALID_ARG_VALUE'],
    [Readable.from([]), null, 'ERR_INVALID_ARG_TYPE'],
  ] as const) {
    const iterable: unknown = Reflect.apply(parseEvents, undefined, [body, options])
    const iterator = Object(iterable)[Symbol.asyncIterator]()
    await t.throwsAsync(iterator.next(), { code })
    t.deepEqual(await iterator.next(), { done: true, value: undefined })
  }
})

test('shared memory and chunks that change afterwards', async (t) => {
  const shared = new Uint8Array(new SharedArrayBuffer(9))
  shared.set(utf8('data: 1\n\n'))
  const chunk = utf8('data: [0')
  async function* chunks(): AsyncGenerator<Uint8Array> {
    yield shared
    yield chunk
    chunk.fill(0x20)
    yield utf8(']\n\n')
  }
  t.deepEqual(
    (await read(chunks())).events.map(({ data }) => data),
    [1, [0]],
  )
})

test.serial('lifted values alone make memory of V8', async (t) => {
  const data = JSON.stringify({ a: noise(1_000_000).toString('base64'), text: 'x'.repeat(500_000) })
  const { made, reused } = stats().results
  await read(inChunks(utf8(`data: ${data}\n\n`), 16_384), { lift: { '/a': 'base64' } })
  t.is(stats().results.made + stats().results.reused, made + reused + 1)
})
