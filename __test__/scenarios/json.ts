import { createHash } from 'node:crypto'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { configure, createEncoder, encode, encodeLines, encodeSync, stats, type Bytes } from '../../src/index.ts'
import { run } from '../../src/runtime/pool.ts'
import { loadHooks } from '../fixtures/hooks.ts'
import { expect, play } from '../fixtures/scenario.ts'

interface Row {
  readonly id: number
  readonly text: string
  readonly at: Date
  readonly score: number
  readonly tags: readonly string[]
}

function rowOf(id: number): Row {
  return { id, text: `né "text" 中 ${id}`, at: new Date(id * 1e9), score: id / 7, tags: ['a', `b${id % 5}`] }
}

const hooks = loadHooks()
const ROWS = Array.from({ length: 2000 }, (_, id) => rowOf(id))
const stringify = JSON.stringify
const EXPECTED = Buffer.from(stringify(ROWS))

/** One value of each kind, and what it must become; made before anything is patched. */
const MEDLEY: readonly unknown[] = [
  ROWS,
  ROWS.slice(0, 3),
  { text: 'x'.repeat(300_000), wide: '中'.repeat(300_000), keys: { ['k'.repeat(300)]: 1, '\ud800': '"' } },
  [Buffer.from('abc'), Buffer.alloc(300_000, 1), new Uint8Array(3), new Map([[1, 2]]), new Date(0)],
  Array.from({ length: 50_000 }, (_, index) => (index % 2 === 0 ? index : index / 3)),
  // Printed segment by segment.
  Array.from({ length: 1_200_000 }, (_, index) => index & 7),
  Array.from({ length: 300 }, (_, index) => ({ [`k${index}`]: index, nested: { [`n${index}`]: [`text ${index}`] } })),
  { boxed: [Object(1), Object('s'), Object(true)], proxy: new Proxy([1, { a: 2 }], {}), toJSON2: 1, n: null },
  { toJSON: (key: string) => ({ key, list: ['a', 1] }) },
  1,
  'text',
  true,
  null,
  [],
  {},
  -0,
  1e21,
]
const MEDLEY_EXPECTED = MEDLEY.map((value) => Buffer.from(stringify(value)))
const SPACED_EXPECTED = MEDLEY.map((value) => Buffer.from(stringify(value, null, 2)))
const LISTED_EXPECTED = Buffer.from(stringify(ROWS, ['id', 'tags']))
const LINES_EXPECTED = Buffer.from(ROWS.map((row) => `${stringify(row)}\n`).join(''))
// oxlint-disable-next-line typescript/unbound-method -- the function needs no `this`
const { compare } = Buffer

function evil(): never {
  throw new Error('patched')
}

/** Nothing here may use what is replaced. */
function replaceAll(targets: readonly (readonly [object, readonly PropertyKey[]])[]): () => void {
  const { defineProperty, getOwnPropertyDescriptor } = Object
  const { deleteProperty } = Reflect
  const undo: (() => void)[] = []
  for (let at = 0; at < targets.length; at += 1) {
    const target = targets[at]?.[0] ?? {}
    const names = targets[at]?.[1] ?? []
    for (let index = 0; index < names.length; index += 1) {
      const name = names[index] ?? ''
      const before = getOwnPropertyDescriptor(target, name)
      undo[undo.length] = () =>
        before === undefined ? deleteProperty(target, name) : defineProperty(target, name, before)
      defineProperty(target, name, { value: evil, configurable: true, writable: true })
    }
  }
  return () => {
    for (let index = undo.length - 1; 0 <= index; index -= 1) undo[index]?.()
  }
}

/** What programs, and the tools that watch them, replace. */
async function patched(): Promise<void> {
  const encoder = createEncoder()
  for (const value of MEDLEY)
    for (let round = 0; round < 30; round += 1) if (round < 3 || value !== ROWS) encoder.encodeSync(value)
  const fresh = createEncoder()
  const all: [unknown, Buffer, number | undefined][] = []
  for (let index = 0; index < MEDLEY.length; index += 1) {
    const compact = MEDLEY_EXPECTED[index]
    const spaced = SPACED_EXPECTED[index]
    if (compact === undefined || spaced === undefined) continue
    all[all.length] = [MEDLEY[index], compact, undefined]
    all[all.length] = [MEDLEY[index], spaced, 2]
  }
  const differences: string[] = []
  const check = (what: string, bytes: Uint8Array | undefined, expected: Uint8Array): void => {
    if (bytes === undefined || compare(bytes, expected) !== 0) differences[differences.length] = what
  }
  const restore = replaceAll([
    [RegExp.prototype, ['exec', 'test', Symbol.match]],
    [
      String.prototype,
      ['slice', 'charCodeAt', 'codePointAt', 'includes', 'indexOf', 'repeat', 'startsWith', 'isWellFormed', 'replace'],
    ],
    [String.prototype, ['substring', 'at', 'concat', Symbol.iterator]],
    [Buffer, ['from', 'alloc', 'allocUnsafe', 'allocUnsafeSlow', 'byteLength', 'concat', 'isBuffer']],
    [
      Buffer.prototype,
      ['latin1Write', 'ucs2Write', 'utf8Write', 'asciiWrite', 'write', 'fill', 'copy', 'subarray', 'slice', 'toString'],
    ],
    [Object.getPrototypeOf(Uint8Array.prototype), ['set', 'subarray', 'slice', 'fill', Symbol.iterator, 'keys']],
    [Array, ['isArray', 'from', 'of']],
    [
      Array.prototype,
      ['push', 'shift', 'unshift', 'splice', 'slice', 'map', 'filter', 'find', 'every', 'some', 'join', 'indexOf'],
    ],
    [
      Array.prototype,
      [
        'at',
        'entries',
        'concat',
        'reverse',
        'sort',
        'reduce',
        'reduceRight',
        'toReversed',
        'toSorted',
        'flatMap',
        'forEach',
      ],
    ],
    [Array.prototype, ['includes', 'fill', 'keys', 'values', Symbol.iterator]],
    [Map.prototype, ['get', 'set', 'has', 'delete', 'clear', 'entries', 'forEach', 'values', Symbol.iterator]],
    [Set.prototype, ['add', 'has', 'delete', 'entries', 'forEach', 'values', Symbol.iterator]],
    [WeakMap.prototype, ['get', 'set', 'has']],
    [
      Object,
      [
        'keys',
        'values',
        'entries',
        'assign',
        'create',
        'getPrototypeOf',
        'setPrototypeOf',
        'getOwnPropertyDescriptor',
        'fromEntries',
      ],
    ],
    [Object, ['defineProperty', 'freeze', 'is', 'hasOwn', 'getOwnPropertyNames']],
    [Object.prototype, ['hasOwnProperty', 'propertyIsEnumerable', 'isPrototypeOf']],
    [JSON, ['stringify', 'parse', 'isRawJSON']],
    [
      Reflect,
      [
        'apply',
        'get',
        'set',
        'has',
        'ownKeys',
        'getPrototypeOf',
        'getOwnPropertyDescriptor',
        'construct',
        'defineProperty',
      ],
    ],
    [Function.prototype, ['call', 'apply', 'bind']],
    [Math, ['min', 'max', 'trunc', 'ceil', 'floor', 'imul']],
    [Number, ['isNaN', 'isInteger', 'isFinite', 'parseInt']],
    [Date.prototype, ['getTime', 'getFullYear', 'toString']],
    [
      globalThis,
      [
        'structuredClone',
        'ArrayBuffer',
        'Uint8Array',
        'Int32Array',
        'Float64Array',
        'Map',
        'Set',
        'String',
        'Number',
        'Function',
        'eval',
        'isNaN',
      ],
    ],
  ])
  for (let index = 0; index < all.length; index += 1) {
    const one = all[index]
    if (one === undefined) continue
    const value = one[0]
    const expected = one[1]
    const space = one[2]
    const ways: (() => Bytes | Promise<Bytes>)[] =
      space === undefined
        ? [
            () => encode(value),
            () => encodeSync(value),
            () => encoder.encodeSync(value),
            () => encoder.encode(value),
            () => fresh.encodeSync(value),
          ]
        : [() => encode(value, { space }), () => encodeSync(value, { space })]
    for (let at = 0; at < ways.length; at += 1) {
      try {
        check(`value ${index} by way ${at}`, await ways[at]?.(), expected)
      } catch (error) {
        differences[differences.length] = `value ${index} by way ${at}: ${error instanceof Error ? error.stack : ''}`
      }
    }
  }
  try {
    check('a list of keys', encodeSync(ROWS, { replacer: ['id', 'tags'] }), LISTED_EXPECTED)
    check('rows', await encodeLines(ROWS), LINES_EXPECTED)
    const circle: unknown[] = []
    circle[0] = circle
    let message = ''
    try {
      encodeSync([{ a: circle }])
    } catch (error) {
      message = error instanceof Error ? error.message : ''
    }
    if (
      message !==
      `Converting circular structure to JSON\n    --> starting at object with constructor 'Array'\n    --- index 0 closes the circle`
    )
      differences[differences.length] = `a circle: ${message}`
  } catch (error) {
    differences[differences.length] = `${error instanceof Error ? error.stack : ''}`
  }
  restore()
  expect(differences.length === 0, `no difference: ${differences.join('\n')}`)
}

type Change = readonly [target: object, key: PropertyKey, descriptor: PropertyDescriptor]

/** What JSON.stringify says while they are changed is what must be said, and what was learned meanwhile must not last. */
async function whileChanged(changes: readonly Change[]): Promise<void> {
  const watchdog = new Worker(`setTimeout(() => process.kill(process.pid, 'SIGKILL'), 120_000)`, {
    eval: true,
    execArgv: [],
  })
  const wrong: string[] = []
  for (const [target, key, descriptor] of changes) {
    const before = Object.getOwnPropertyDescriptor(target, key)
    const encoder = createEncoder()
    let found = ''
    Object.defineProperty(target, key, { ...descriptor, configurable: true })
    for (let index = 0; index < MEDLEY.length; index += 1) {
      const expected = attempt(() => utf8(stringify(MEDLEY[index])))
      // Buffer.prototype.toJSON cannot write to an element that has no setter.
      if (expected === undefined) continue
      for (let round = 0; round < 3 && found === ''; round += 1) {
        try {
          const bytes = round === 0 ? encodeSync(MEDLEY[index]) : encoder.encodeSync(MEDLEY[index])
          if (Reflect.apply(latin1Slice, bytes, []) !== Reflect.apply(latin1Slice, expected, []))
            found = `value ${index}`
        } catch (error) {
          found = `value ${index}: ${error instanceof Error ? error.stack : ''}`
        }
      }
    }
    if (before === undefined) Reflect.deleteProperty(target, key)
    else Object.defineProperty(target, key, before)
    const what = `${target.constructor.name}.prototype.${String(key)}`
    if (found !== '') wrong.push(`while ${what} is changed: ${found}`)
    const isRight = [encodeSync(ROWS), encoder.encodeSync(ROWS), await encode(ROWS)].every((bytes) =>
      bytes.equals(EXPECTED),
    )
    if (!isRight) wrong.push(`after ${what} was changed`)
  }
  await watchdog.terminate()
  expect(wrong.length === 0, `no difference: ${wrong.join('\n')}`)
}

function attempt<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch {
    // What was changed does not let it.
    return undefined
  }
}

/** What every array, and every object, then has at an index it has nothing at. */
async function elements(): Promise<void> {
  await whileChanged([
    [Array.prototype, '0', { get: () => 'hole', set: () => undefined }],
    [Array.prototype, '3', { get: () => 'hole', set: () => undefined }],
    [Array.prototype, '3', { get: () => 'hole' }],
    [Array.prototype, '1', { value: 'hole', writable: false }],
    [Object.prototype, '0', { get: () => 'hole', set: () => undefined }],
  ])
}

const latin1Slice: () => string = Reflect.get(Buffer.prototype, 'latin1Slice')

const encoder8 = new TextEncoder()

/** As Buffer.from has it: no text here has lone surrogates that JSON.stringify would leave. */
function utf8(text: string): Uint8Array {
  return encoder8.encode(text)
}

/** Longer than 2²⁹ characters, of which there are few different ones. */
async function huge(): Promise<void> {
  const piece = 'long "text" 中\n'.repeat(200_000)
  const value = Array.from({ length: 170 }, (_, id) => ({ id, piece }))
  const text = stringify(piece)
  const expected = createHash('sha256')
  let length = 0
  for (const [index, { id }] of value.entries()) {
    const part = Buffer.from(`${index === 0 ? '[' : ','}{"id":${id},"piece":${text}}`)
    expected.update(part)
    length += part.length
  }
  expected.update(']')
  const bytes = await encode(value)
  expect(2 ** 29 < bytes.length && bytes.length === length + 1, `a length of ${length + 1}, not ${bytes.length}`)
  expect(createHash('sha256').update(bytes).digest('hex') === expected.digest('hex'), 'the bytes')
}

async function collect(): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    globalThis.gc?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const KINDS = ['rss', 'heapUsed', 'external', 'arrayBuffers'] as const
const ROUNDS = 6
/** The results of a round are 400 MB; a leak of one call in a hundred would be 4 times this. */
const LEAK = 12e6

async function collected(): Promise<void> {
  const small = ROWS.slice(0, 3)
  const large = { rows: ROWS.slice(0, 600), text: 'x'.repeat(300_000) }
  const call = async (index: number): Promise<void> => {
    if (index % 500 === 0) globalThis.gc?.()
    const encoder = index % 50 === 0 ? createEncoder() : kept
    if (index % 40 === 0) expect((await encoder.encode(large)).length > 300_000, 'the bytes')
    else if (index % 7 === 0) expect(encodeSync({ small, [`k${index % 3000}`]: index }).length > 100, 'the bytes')
    else expect((await encode(small)).length > 100, 'the bytes')
    if (index % 100 === 0) await encodeLines([1, { toJSON: evil }]).catch(() => undefined)
  }
  const kept = createEncoder()
  const calls = async (count: number): Promise<void> => {
    for (let index = 0; index < count; index += 4) {
      await Promise.all([call(index), call(index + 1), call(index + 2), call(index + 3)])
    }
  }
  await calls(20_000)
  await collect()
  let before = process.memoryUsage()
  for (let round = 0; round < ROUNDS; round += 1) {
    await calls(20_000)
    await collect()
    const after = process.memoryUsage()
    if (KINDS.every((kind) => after[kind] - before[kind] < LEAK)) return
    before = after
  }
  throw new Error(`memory grows without end: ${stringify(before)}`)
}

/** Small results share memory, which anyone may transfer away: what comes after has other memory. */
async function transferred(): Promise<void> {
  const worker = new Worker(`require('node:worker_threads').parentPort.on('message', () => undefined)`, {
    eval: true,
    execArgv: [],
  })
  const encoder = createEncoder()
  for (let round = 0; round < 300; round += 1) {
    const row = rowOf(round)
    const expected = Buffer.from(stringify(row))
    const results = [encodeSync(row), await encode(row), encoder.encodeSync(row), await encodeLines([row])]
    const taken = results[round % results.length]
    for (const bytes of results) expect(bytes.subarray(0, expected.length).equals(expected), 'the bytes')
    if (taken === undefined || round % 3 !== 0) continue
    give(worker, taken)
    for (const bytes of results)
      expect(bytes.length === 0 || bytes.subarray(0, expected.length).equals(expected), 'the others')
    const [one, other] = [encodeSync(row), encoder.encodeSync(row)]
    expect(one.equals(expected) && other.equals(expected), 'the bytes of the next calls')
  }
  // With tasks under way, and the memory of their results too.
  const calls = Array.from({ length: 20 }, () => encode(ROWS))
  for (const bytes of [encodeSync(ROWS[0]), encodeSync(ROWS), createEncoder().encodeSync(ROWS)]) give(worker, bytes)
  for (const bytes of await Promise.all(calls)) {
    expect(bytes.equals(EXPECTED), 'the bytes')
    worker.postMessage(bytes, [bytes.buffer])
  }
  expect((await encode(ROWS)).equals(EXPECTED), 'the bytes after all')
  await worker.terminate()
}

/** What comes from Node's pool stays where it is. */
function give(worker: Worker, bytes: Bytes): void {
  try {
    worker.postMessage(bytes, [bytes.buffer])
  } catch (error) {
    expect(error instanceof Error && error.name === 'DataCloneError', 'memory that cannot be transferred to be refused')
  }
}

function start(task: string): Worker {
  return new Worker(new URL(import.meta.url), { workerData: task, argv: [task] })
}

function messageOf(worker: Worker): Promise<unknown> {
  return new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
}

const tasks: Readonly<Record<string, () => Promise<void>>> = {
  async crowd() {
    const encoder = createEncoder()
    for (let round = 0; round < 12; round += 1) {
      const results = await Promise.all([encode(ROWS), encoder.encode(ROWS), encodeLines(ROWS)])
      if (!results[0].equals(EXPECTED) || !results[1].equals(EXPECTED) || !results[2].equals(LINES_EXPECTED))
        throw new Error('wrong')
      if (!encodeSync(ROWS[round]).equals(Buffer.from(stringify(ROWS[round])))) throw new Error('wrong')
    }
    parentPort?.postMessage('done')
  },
  async queue() {
    const calls = Array.from({ length: 100 }, (_, index) =>
      index % 2 === 0 ? encode(ROWS) : encode({ text: 'x'.repeat(1_000_000) }),
    )
    parentPort?.postMessage('queued')
    await Promise.allSettled(calls)
  },
  async result() {
    const results = [await encode(ROWS), encodeSync(ROWS[0]), encodeSync(ROWS)]
    parentPort?.postMessage(
      results,
      results.filter((bytes) => 65_536 <= bytes.length).map((bytes) => bytes.buffer),
    )
  },
}

async function crowded(): Promise<void> {
  const workers = Array.from({ length: 4 }, () => start('crowd'))
  await Promise.all([...workers.map(messageOf), ...Array.from({ length: 10 }, () => encode(ROWS))])
  await Promise.all(workers.map((worker) => worker.terminate()))
  for (let round = 0; round < 2; round += 1) {
    const others = Array.from({ length: 3 }, (_, index) => start(index === 0 ? 'crowd' : 'queue'))
    await Promise.all(others.slice(1).map(messageOf))
    await new Promise((resolve) => setTimeout(resolve, round * 25))
    await Promise.all(others.map((worker) => worker.terminate()))
  }
  const worker = start('result')
  const results: unknown = await messageOf(worker)
  await worker.terminate()
  await collect()
  expect(Array.isArray(results) && results.length === 3, 'three results')
  if (Array.isArray(results)) {
    expect(
      Buffer.from(results[0]).equals(EXPECTED) && Buffer.from(results[2]).equals(EXPECTED),
      'the bytes of a worker that has ended',
    )
    expect(Buffer.from(results[1]).equals(Buffer.from(stringify(ROWS[0]))), 'the small ones too')
  }
  expect((await encode(ROWS)).equals(EXPECTED), 'the main thread to go on')
}

/** Calls that wait for a thread, all of which are taken. */
async function aborted(): Promise<void> {
  configure({ concurrency: 2 })
  const [taken, given] = [new AbortController(), new AbortController()]
  const busy = [1, 2].map(() => run((stop) => hooks.waitTask(60_000, stop), { signal: taken.signal }))
  const encoder = createEncoder()
  const { signal } = given
  const calls = [encode(ROWS, { signal }), encoder.encode(ROWS, { signal }), encodeLines(ROWS, { signal })]
  const others = [encode(ROWS), encoder.encode(ROWS)]
  const outcomes = Promise.allSettled(calls)
  expect(stats().queued === 5, `five calls to wait, not ${stats().queued}`)
  given.abort('enough')
  for (const outcome of await outcomes) {
    expect(outcome.status === 'rejected' && outcome.reason === 'enough', 'the reason')
  }
  expect(stats().queued === 2, `two calls to wait still, not ${stats().queued}`)
  taken.abort()
  await Promise.allSettled(busy)
  for (const bytes of await Promise.all(others)) expect(bytes.equals(EXPECTED), 'the others undisturbed')
  expect((await encode(ROWS)).equals(EXPECTED) && encodeSync(ROWS).equals(EXPECTED), 'the bytes afterwards')
}

/** Ends with tasks under way; `played` is said before. */
function exits(): void {
  for (let index = 0; index < 50; index += 1) void encode(ROWS)
  setImmediate(() => process.exit(0))
}

/** Started where code generation is forbidden. */
async function learned(): Promise<void> {
  try {
    // oxlint-disable-next-line no-new-func, typescript/no-implied-eval -- it must throw
    const made: unknown = new Function('return 1')
    expect(made === undefined, 'no function')
  } catch (error) {
    expect(error instanceof EvalError, 'an EvalError')
    process.stdout.write('forbidden\n')
  }
  const encoder = createEncoder()
  for (let round = 0; round < 70; round += 1) {
    for (const [index, value] of MEDLEY.entries()) {
      const expected = MEDLEY_EXPECTED[index]
      if (5 < round && 10_000 < (expected?.length ?? 0)) continue
      expect(expected !== undefined && encoder.encodeSync(value).equals(expected), `value ${index} in round ${round}`)
    }
  }
  expect((await encodeLines(ROWS)).equals(LINES_EXPECTED), 'the rows')
}

if (isMainThread) await play({ patched, elements, huge, collected, transferred, crowded, aborted, exits, learned })
else await tasks[String(workerData)]?.()
