/**
 * Options are own properties. A patched Object.prototype and classes of the caller's set none, for every function that takes
 * options. The patches are of the whole process, so these tests run one after the other.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import * as offloop from '../src/index.ts'
import * as http from '../src/http/index.ts'
import * as kit from '../src/kit/index.ts'
import { onRequest, serveRaw, type Served } from './fixtures/http.ts'

interface Case {
  /** The function, and which of its options where it has several. */
  readonly name: string
  /** Options that the call needs. */
  readonly needed: object
  /** Valid values of all other options. */
  readonly others: object
  /** Calls it with these options, and shows what came of it. */
  // oxlint-disable-next-line typescript/no-explicit-any -- no type checker would let these options through
  readonly call: (options: any) => unknown
}

const folder = mkdtempSync(join(tmpdir(), 'offloop-own-'))
test.after.always(() => rmSync(folder, { recursive: true, force: true }))

const path = join(folder, 'file')
const ROWS = '{"a":1}\n{"b":2}\n{"c'
const VALUE = { b: [1, { c: 'x' }], a: null }
const { signal } = new AbortController()

function written(text: string): string {
  writeFileSync(path, text)
  return path
}

function shown(text: string): string {
  return `${text} ${readFileSync(path).toString()}`
}

function show(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => (typeof part === 'function' ? 'function' : part))
}

/** The bytes of a copy of these, and whether the call took it. */
async function ofInput(bytes: string, call: (input: Uint8Array) => Promise<unknown>): Promise<string> {
  const input = new Uint8Array(Buffer.from(bytes))
  const result = await call(input)
  return `${show(result)} ${input.length}`
}

/** Payloads are data, which may inherit: this one has all there is. */
function payloadOf(data: Uint8Array): offloop.ExpertsWire {
  return { data, shape: [4, 1, 1], start: 0, dtype: 'uint8', encoding: 'raw' }
}

const EVENT = 'data: {"a":"QUJD"}\n\n'

async function* chunksOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

async function eventsOf(events: AsyncIterable<unknown>): Promise<string> {
  const all: unknown[] = []
  for await (const event of events) all.push(event)
  return show(all)
}

async function collected(rows: AsyncIterable<readonly unknown[]>): Promise<unknown[]> {
  const all: unknown[] = []
  for await (const batch of rows) all.push(...batch)
  return all
}

async function logged(options: object): Promise<string> {
  written(ROWS)
  const log = await offloop.openJsonl(path, options)
  await log.append(VALUE)
  await log.close()
  return shown(log.repaired.action)
}

async function sent(options: object): Promise<string> {
  const bodies: string[] = []
  const send = async (body: Buffer): Promise<void> => void bodies.push(body.toString())
  const batcher = kit.createBatcher({ send, ...options })
  batcher.add(VALUE)
  await batcher.flush()
  return bodies.join()
}

async function sentBy(options: Parameters<typeof kit.createBatcher>[0]): Promise<string> {
  const batcher = kit.createBatcher(options)
  batcher.add(VALUE)
  const { sent: count } = await batcher.flush()
  return `${count}`
}

/** A server of constant bytes: node:http would read options too. The connection is open before a test patches anything. */
let served: Served
const client = http.createClient({ agent: { connections: 1 } })
test.before(async () => {
  const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{"a":"QUJD"}'
  served = await serveRaw((socket) => {
    onRequest(socket, () => socket.write(answer))
  })
  await client.post(served.url, 1)
})
test.after.always(async () => {
  await client.destroy()
  await served.close()
})

const ENCODE = {
  replacer: null,
  space: '',
  newline: false,
  sortKeys: false,
  typedArrays: 'object',
  bigint: 'throw',
  nonFinite: 'null',
  circular: 'throw',
  default: () => undefined,
  defaultFor: ['undefined'],
}
const { space: _space, newline: _newline, ...ROW } = ENCODE
const { sortKeys: _sortKeys, ...CAPTURE } = ROW
const RETRY = { attempts: 3, baseMs: 1, maxMs: 2, when: () => true }
const HINTS = { layers: 1, topk: 1, dtype: 'uint8' }

const CASES: readonly Case[] = [
  {
    name: 'encode',
    needed: {},
    others: { ...ENCODE, transfer: false, signal },
    call: (options) => offloop.encode(VALUE, options),
  },
  {
    name: 'encode: circular',
    needed: { text: 'again' },
    others: {},
    call: (circular) => {
      const value: Record<string, unknown> = {}
      value['value'] = value
      return offloop.encode(value, { circular })
    },
  },
  {
    name: 'encodeSync',
    needed: {},
    others: { ...ENCODE, transfer: false },
    call: (options) => offloop.encodeSync(VALUE, options),
  },
  {
    name: 'encodeLines',
    needed: {},
    others: { ...ROW, onBadRow: 'throw', transfer: false, signal },
    call: (options) => offloop.encodeLines([VALUE], options),
  },
  {
    name: 'createEncoder',
    needed: {},
    others: ENCODE,
    call: (options) => offloop.createEncoder(options).encodeSync(VALUE),
  },
  {
    name: 'createEncoder: encode',
    needed: {},
    others: { transfer: false, signal },
    call: (options) => offloop.createEncoder().encode(VALUE, options),
  },
  {
    name: 'createEncoder: capture',
    needed: {},
    others: { transfer: false },
    call: (options) => offloop.createEncoder().capture(VALUE, options).json(),
  },
  {
    name: 'createEncoder: encodeLines',
    needed: {},
    others: { onBadRow: 'throw', transfer: false, signal },
    call: (options) => offloop.createEncoder().encodeLines([VALUE], options),
  },
  {
    name: 'encodeMsgpack',
    needed: {},
    others: { floats: 'float64', transfer: false, signal },
    call: (options) => offloop.encodeMsgpack(VALUE, options),
  },
  {
    name: 'capture',
    needed: {},
    others: { ...CAPTURE, transfer: false },
    call: (options) => offloop.capture(VALUE, options).json(),
  },
  {
    name: 'capture: json',
    needed: {},
    others: { space: '', newline: false, sortKeys: false, signal },
    call: (options) => offloop.capture(VALUE).json(options),
  },
  {
    name: 'capture: jsonSize',
    needed: {},
    others: { space: '', newline: false, signal },
    call: (options) => offloop.capture(VALUE).jsonSize(options),
  },
  {
    name: 'capture: msgpack',
    needed: {},
    others: { floats: 'float64', signal },
    call: (options) => offloop.capture(VALUE).msgpack(options),
  },
  {
    name: 'capture: digest',
    needed: {},
    others: { signal },
    call: (options) => offloop.capture(VALUE).digest(options),
  },
  {
    name: 'rawJson',
    needed: {},
    others: { trusted: false },
    call: (options) => offloop.rawJson('{}', options).byteLength,
  },
  {
    name: 'parse',
    needed: { lift: { '/a': 'base64' } },
    others: { onMismatch: 'throw', dropStringsOver: 100, maxBytes: 100, transfer: false, signal },
    call: (options) => ofInput('{"a":"QUJD"}', (body) => offloop.parse(body, options)),
  },
  {
    name: 'split',
    needed: { lift: { '/a': 'base64' } },
    others: {
      onMismatch: 'throw',
      dropStringsOver: 100,
      maxBytes: 100,
      replace: (index: number) => `value ${index}`,
      transfer: false,
      signal,
    },
    call: (options) => ofInput('{"a":"QUJD"}', (body) => offloop.split(body, options)),
  },
  {
    name: 'split: base64',
    needed: { base64: 'uint8' },
    others: {},
    call: (lift) => offloop.split(Buffer.from('{"a":null}'), { lift: { '/a': lift } }),
  },
  {
    name: 'split: ragged',
    needed: { ragged: 'uint8' },
    others: {},
    call: (lift) => offloop.split(Buffer.from('{"a":null}'), { lift: { '/a': lift } }),
  },
  {
    name: 'split: tensor',
    needed: { tensor: 'uint8' },
    others: {},
    call: (lift) => offloop.split(Buffer.from('{"a":null}'), { lift: { '/a': lift } }),
  },
  {
    name: 'parseEvents',
    needed: { lift: { '/a': 'base64' } },
    others: { done: null, maxEventBytes: 100, onMismatch: 'throw', dropStringsOver: 100, maxBytes: 100, signal },
    call: (options) => eventsOf(offloop.parseEvents(chunksOf(EVENT), options)),
  },
  {
    name: 'split: lift',
    needed: { experts: HINTS },
    others: {},
    call: (lift) => offloop.split(Buffer.from('{"a":"AAAAAA=="}'), { lift: { '/a': lift } }),
  },
  {
    name: 'split: hints of a lift',
    needed: { layers: 1, topk: 1 },
    others: { dtype: 'int32', start: 0 },
    call: (experts) => offloop.split(Buffer.from('{"a":"AAAAAA=="}'), { lift: { '/a': { experts } } }),
  },
  {
    name: 'decodeBase64',
    needed: {},
    others: { mode: 'forgiving', alphabet: 'base64', transfer: false, signal },
    call: (options) => ofInput('QUJD', (text) => offloop.decodeBase64(text, options)),
  },
  {
    name: 'encodeBase64',
    needed: {},
    others: { alphabet: 'base64', padding: true, transfer: false, signal },
    call: (options) => ofInput('ABCD', (bytes) => offloop.encodeBase64(bytes, options)),
  },
  {
    name: 'decodeExperts',
    needed: { layers: 1, topk: 1 },
    others: { dtype: 'uint8', start: 0, transfer: false, signal },
    call: (hints) => ofInput('ABCD', (data) => offloop.decodeExperts(payloadOf(data), hints)),
  },
  {
    name: 'concatExperts',
    needed: { tokens: 5 },
    others: { ...HINTS, gaps: 'throw', lastRow: 'zero', overlap: 'earlier', mixed: 'widen', transfer: false, signal },
    call: (options) =>
      ofInput('ABCD', (data) =>
        offloop.concatExperts([{ experts: payloadOf(data), start: 0, tokens: undefined }], options),
      ),
  },
  {
    name: 'repair',
    needed: { durability: 'none' },
    others: { policy: 'quarantine', verify: 'tail', lock: true, onProgress: () => {}, signal },
    call: async (options) => {
      const { action } = await offloop.repair(written(ROWS), options)
      return shown(action)
    },
  },
  {
    name: 'repair: verify',
    needed: { since: 8 },
    others: {},
    call: async (verify) => (await offloop.repair(written(ROWS), { verify, policy: 'report' })).badRows,
  },
  {
    name: 'openJsonl',
    needed: { durability: 'none' },
    others: {
      repair: 'quarantine',
      lock: true,
      maxDelayMs: 0,
      maxBatchBytes: 1000,
      maxQueuedBytes: 1000,
      mode: 0o644,
      encode: {},
    },
    call: logged,
  },
  {
    name: 'openJsonl: encode',
    needed: {},
    others: ROW,
    call: (encode: object) => logged({ durability: 'none', encode }),
  },
  ...(['append', 'appendMany'] as const).map((method): Case => ({
    name: `openJsonl: ${method}`,
    needed: {},
    others: { transfer: false },
    call: async (options) => {
      await using log = await offloop.openJsonl(written(''), { durability: 'none' })
      const rows = [VALUE]
      return shown(show(await (method === 'append' ? log.append(rows, options) : log.appendMany(rows, options))))
    },
  })),
  {
    name: 'readJsonl: bytes',
    needed: {},
    others: { reuse: false },
    call: (options) => collected(offloop.readJsonl(written(ROWS), options)),
  },
  {
    name: 'readJsonl',
    needed: { fields: ['/a'] },
    others: { from: 0, last: undefined, maxRowBytes: 100, onBadRow: 'skip', onProgress: () => {}, signal },
    call: (options) => collected(offloop.readJsonl(written(ROWS), options)),
  },
  {
    name: 'readJsonl: values with lifts',
    needed: { as: 'value', lift: { '/a': 'raw' } },
    others: { onMismatch: 'throw', dropStringsOver: 100, signal },
    call: (options) => collected(offloop.readJsonl(written(ROWS), options)),
  },
  {
    name: 'saveFile',
    needed: { durability: 'none' },
    others: { format: 'json', mode: 0o644, encode: {}, transfer: false, signal },
    call: async (options) => shown(show(await offloop.saveFile(path, VALUE, options))),
  },
  {
    name: 'saveFile: encode',
    needed: {},
    others: ENCODE,
    call: async (encode) => shown(show(await offloop.saveFile(path, VALUE, { durability: 'none', encode }))),
  },
  {
    name: 'saveFile: encode of rows',
    needed: {},
    others: ROW,
    call: async (encode) =>
      shown(show(await offloop.saveFile(path, [VALUE], { durability: 'none', format: 'jsonl', encode }))),
  },
  {
    name: 'createClient',
    needed: {},
    others: { agent: {}, maxBytes: 1000, proxy: undefined, readBytes: 4096 },
    call: async (options) => {
      await http.createClient(options).close()
    },
  },
  {
    name: 'createClient: request',
    needed: {},
    others: {
      body: 'abc',
      compress: undefined,
      encode: {},
      headers: {},
      json: undefined,
      maxBytes: 1000,
      method: 'POST',
      signal,
    },
    call: async (options) => (await client.request(served.url, options)).body.text(),
  },
  {
    name: 'createClient: post',
    needed: { lift: { '/a': 'base64' } },
    others: {
      compress: undefined,
      encode: {},
      headers: {},
      maxBytes: 1000,
      method: 'POST',
      onMismatch: 'throw',
      signal,
    },
    call: (options) => client.post(served.url, VALUE, options),
  },
  {
    name: 'createClient: parse of a body',
    needed: { lift: { '/a': 'base64' } },
    others: { onMismatch: 'throw', dropStringsOver: 100, signal },
    call: async (options) => (await client.request(served.url)).body.parse(options),
  },
  {
    name: 'createClient: split of a body',
    needed: { lift: { '/a': 'base64' } },
    others: { onMismatch: 'throw', dropStringsOver: 100, replace: 'null', signal },
    call: async (options) => (await client.request(served.url)).body.split(options),
  },
  {
    name: 'configure',
    needed: {},
    others: { concurrency: offloop.stats().concurrency, maxIdleBytes: 2 ** 27, prewarmBytes: 0 },
    call: (options) => {
      offloop.configure(options)
      return offloop.stats().concurrency
    },
  },
  {
    name: 'monitorLoop',
    needed: {},
    others: { intervalMs: 100, window: 10, warn: undefined, onWarn: () => {} },
    call: (options) => {
      using monitor = kit.monitorLoop(options)
      return monitor.lag().count
    },
  },
  {
    name: 'monitorLoop: warn',
    needed: {},
    others: { p90: 1, p99: 2, max: 3 },
    call: (warn) => {
      using monitor = kit.monitorLoop({ warn })
      return monitor.lag().count
    },
  },
  {
    name: 'keepTrimmed',
    needed: {},
    others: { everyMs: 10_000 },
    call: (options) => {
      using keeper = kit.keepTrimmed(options)
      return typeof keeper
    },
  },
  {
    name: 'createDeferQueue',
    needed: {},
    others: { concurrency: 4, maxSize: 9, onError: () => {} },
    call: (options) => kit.createDeferQueue(options).defer(() => 1),
  },
  {
    name: 'createDeferQueue: flush',
    needed: {},
    others: { timeoutMs: 1000, onProgress: () => {} },
    call: async (options) => {
      const queue = kit.createDeferQueue()
      void queue.defer(() => 1)
      return await queue.flush(options)
    },
  },
  {
    name: 'createBatcher',
    needed: { send: async () => {} },
    others: {
      envelope: ['[', ']'],
      maxBatchBytes: 1000,
      maxItemBytes: 1000,
      maxBatchItems: 10,
      maxDelayMs: 1,
      maxQueuedBytes: 1000,
      concurrency: 1,
      sendTimeoutMs: 1000,
      retry: RETRY,
      encode: {},
      onDrop: () => {},
    },
    call: sentBy,
  },
  { name: 'createBatcher: encode', needed: {}, others: ROW, call: (encode: object) => sent({ encode }) },
  { name: 'createBatcher: retry', needed: {}, others: RETRY, call: (retry: object) => sent({ retry }) },
  {
    name: 'createBatcher: flush',
    needed: {},
    others: { timeoutMs: 1000, onProgress: () => {} },
    call: async (options) => {
      const batcher = kit.createBatcher({ send: async () => {} })
      batcher.add(VALUE)
      return await batcher.flush(options)
    },
  },
  {
    name: 'createRolloutStore',
    needed: {},
    others: { maxBytes: 1000, trimAfterBytes: 1000 },
    call: (options) => {
      const store = kit.createRolloutStore(options)
      store.put('id', 1)
      return store.stats()
    },
  },
  {
    name: 'createRolloutStore: put',
    needed: {},
    others: { bytes: 7, group: 'group' },
    call: (options) => {
      const store = kit.createRolloutStore()
      store.put('id', new Uint8Array(5), options)
      store.evict('id')
      return [store.stats(), store.get('id')]
    },
  },
]

/** Values that change what is made; any other option is given a symbol, which none of them may be. */
const EFFECTIVE: Readonly<Record<string, unknown>> = {
  replacer: () => 'inherited',
  space: 2,
  newline: true,
  sortKeys: true,
  transfer: true,
  bytes: 1000,
  // What tasks are run with.
  first: true,
}

/** Names that offloop's own objects may lack: those tasks are run with, settings for the addon, and what the addon returns. */
const INTERNAL = [
  'lane',
  'first',
  'policy',
  'verifyFrom',
  'code',
  'errno',
  'syscall',
  'path',
  'pointer',
  'turn',
  'failure',
  'cause',
  'sidecar',
]

function inheritedOf({ needed, others }: Case): Record<string, unknown> {
  const names = [...Object.keys(needed), ...Object.keys(others), ...INTERNAL]
  return Object.fromEntries(names.map((name) => [name, EFFECTIVE[name] ?? Symbol('inherited')]))
}

/** Runs with these on Object.prototype. */
async function patched<T>(values: object, isEnumerable: boolean, run: () => T): Promise<Awaited<T>> {
  for (const [name, value] of Object.entries(values)) {
    const descriptor = { value, enumerable: isEnumerable, configurable: true, writable: true }
    // oxlint-disable-next-line no-extend-native -- patched prototypes are tested
    Object.defineProperty(Object.prototype, name, Object.assign(Object.create(null), descriptor))
  }
  try {
    return await run()
  } finally {
    for (const name of Object.keys(values)) Reflect.deleteProperty(Object.prototype, name)
  }
}

/** Getters that count, of the values of `source`. */
function counting(
  source: object,
  isEnumerable: boolean,
): { readonly options: object; readonly reads: Map<string, number> } {
  const reads = new Map<string, number>()
  const options = {}
  for (const [name, value] of Object.entries(source)) {
    reads.set(name, 0)
    Object.defineProperty(options, name, {
      enumerable: isEnumerable,
      get() {
        reads.set(name, (reads.get(name) ?? 0) + 1)
        return value
      },
    })
  }
  return { options, reads }
}

for (const one of CASES) {
  const { name, needed, others, call } = one

  test.serial(`${name}: an enumerable property of Object.prototype is no option`, async (t) => {
    const expected = show(await call({ ...needed }))
    t.is(show(await patched({ zz: 1 }, true, async () => await call({ ...needed }))), expected)
  })

  test.serial(`${name}: options on Object.prototype are not obeyed`, async (t) => {
    const expected = show(await call({ ...needed }))
    const outcome = await patched(inheritedOf(one), false, async () => await call({ ...needed }))
    t.is(show(outcome), expected)
  })

  test.serial(`${name}: options of a prototype are not obeyed, nor read`, async (t) => {
    const expected = show(await call({ ...needed }))
    const { options: prototype, reads } = counting({ ...inheritedOf(one), unknown: 1 }, true)
    const own = Object.getOwnPropertyDescriptors(needed)
    t.is(show(await call(Object.create(prototype, own))), expected)
    t.deepEqual(
      [...reads.values()].filter((count) => count !== 0),
      [],
    )
  })

  test.serial(`${name}: own options are read once each, hidden ones too`, async (t) => {
    for (const isEnumerable of [true, false]) {
      const { options, reads } = counting({ ...needed, ...others }, isEnumerable)
      await call(options)
      t.deepEqual(Object.fromEntries(reads), Object.fromEntries([...reads.keys()].map((key) => [key, 1])))
    }
  })

  test.serial(`${name}: an own key that is unknown is refused, a hidden one too`, async (t) => {
    for (const enumerable of [true, false]) {
      const options = Object.defineProperty({ ...needed }, 'unknown', { value: 1, enumerable })
      const refused = { instanceOf: TypeError, code: 'ERR_INVALID_ARG_VALUE', message: /unknown/ }
      await t.throwsAsync(async () => await call(options), refused)
    }
  })
}

test('every function that takes options is tested', (t) => {
  const without = new Set(['OffloopError', 'RawJson', 'release', 'stats', 'trimMemory'])
  const functions = Object.entries({ ...offloop, ...kit, ...http })
    .filter(([name, value]) => typeof value === 'function' && !without.has(name))
    .map(([name]) => name)
  const tested = new Set(CASES.map(({ name }) => name.split(':')[0] ?? ''))
  t.deepEqual(functions.toSorted(), [...tested].toSorted())
})
