/** What else may happen around a call: changes after it, calls within it, errors in the middle, depth, aborts. */

import { getEventListeners } from 'node:events'
import test from 'ava'
import { createEncoder, encode, encodeLines, encodeSync } from '../src/index.ts'
import { difference, expectedOf, Thrown, withEncoder, type Subject } from './fixtures/stringify.ts'
import { Random, randomTable, randomValue } from './fixtures/values.ts'
import { isFull } from './fixtures/extent.ts'

function json(value: unknown): string {
  return JSON.stringify(value)
}

function rowsOf(count: number): { id: number; text: string; list: number[]; child: { at: Date } | null }[] {
  return Array.from({ length: count }, (_, id) => ({
    id,
    text: `text ${id}`,
    list: [id, id / 2],
    child: { at: new Date(id * 1e9) },
  }))
}

// ───────────────────────────── read before the call returns ─────────────────────────────

test('what is done to a value after the call changes nothing', async (t) => {
  for (const count of [1, 50, 5000]) {
    const rows = rowsOf(count)
    const bytes = new Uint8Array(300_000).fill(7)
    const value: Record<string, unknown> = {
      rows,
      bytes,
      part: Buffer.from(bytes.buffer, 5, 270_000),
      small: Buffer.from('abc'),
      doubles: new Float64Array([0.5, 1.5]),
      numbers: Array.from({ length: 5000 }, (_, index) => index / 3),
      long: 'x'.repeat(400_000),
    }
    const expected = json(value)
    const calls = [encode(value), createEncoder().encode(value), encode([value]).then((one) => one.subarray(1, -1))]
    for (const row of rows) {
      Object.assign(row, { id: 'changed', text: 5, added: true })
      row.list.fill(-1)
      row.child?.at.setTime(0)
    }
    rows.length = 0
    bytes.fill(8)
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
    for (const key of Object.keys(value)) Reflect.deleteProperty(value, key)
    for (const call of calls) t.true((await call).equals(Buffer.from(expected)))
  }
})

test('the memory of a result is nobody else’s', async (t) => {
  const value = rowsOf(2000)
  const expected = Buffer.from(json(value))
  const kept = [await encode(value), encodeSync(value), await encode(value[0]), encodeSync(value[0])]
  const copies = kept.map((bytes) => Buffer.from(bytes))
  for (let round = 0; round < 300; round += 1) {
    const bytes = round % 10 === 0 ? await encode(value) : encodeSync({ round, text: 'other' })
    bytes.fill(0)
  }
  for (const [index, bytes] of kept.entries()) t.true(bytes.equals(copies[index] ?? Buffer.alloc(0)))
  t.true((await encode(value)).equals(expected))
})

// ───────────────────────────── calls within calls ─────────────────────────────

test('code of a value may encode other values, which does not disturb it', async (t) => {
  const encoder = createEncoder()
  const pending: Promise<Buffer>[] = []
  const inner = (depth: number): unknown => {
    pending.push(encode(rowsOf(3)), encoder.encode([depth]), encodeLines(rowsOf(2)))
    const text = encodeSync({ depth, rows: rowsOf(2) }).toString() + encoder.encodeSync(rowsOf(60)).toString()
    return { depth, text, deeper: depth === 0 ? null : make(depth - 1) }
  }
  const make = (depth: number): object => ({
    id: depth,
    get got() {
      return inner(depth)
    },
    list: [1, 2, { toJSON: () => inner(depth) }, 4],
  })
  const table = (): unknown =>
    Array.from({ length: 80 }, (_, id) => ({ id, value: id === 70 ? make(2) : 1, text: 'text' }))
  const expected = json(make(3))
  const expectedTable = json(table())
  pending.length = 0
  for (let round = 0; round < 5; round += 1) {
    t.is(encodeSync(make(3)).toString(), expected)
    t.is((await encode(make(3))).toString(), expected)
    t.is(encoder.encodeSync(make(3)).toString(), expected)
    t.is(encoder.encodeSync(table()).toString(), expectedTable)
  }
  const results = await Promise.all(pending)
  t.is(results.length % 3, 0)
  for (let index = 0; index < results.length; index += 3) {
    t.is(results[index]?.toString(), json(rowsOf(3)))
    t.is(
      results[index + 2]?.toString(),
      rowsOf(2)
        .map((row) => `${json(row)}\n`)
        .join(''),
    )
  }
})

test('a replacer may encode with the encoder it is of', (t) => {
  const replacer = (key: string, value: unknown): unknown => {
    if (key !== 'nested') return value
    return encodeSync(value, { replacer }).toString() + encodeSync(value).toString()
  }
  const value = { a: 1, nested: { b: 2, nested: { c: [1, 2] } } }
  const twin = (key: string, inner: unknown): unknown =>
    key === 'nested' ? JSON.stringify(inner, twin) + JSON.stringify(inner) : inner
  t.is(encodeSync(value, { replacer }).toString(), JSON.stringify(value, twin))
})

test('a hundred encodes within each other', (t) => {
  const make = (depth: number): object => ({
    depth,
    toJSON: () => ({ depth, inner: depth === 0 ? 'end' : encodeSync(make(depth - 1)).toString() }),
  })
  // The text doubles its backslashes at each level.
  const inner = encodeSync(make(11)).toString()
  t.is(encodeSync(make(12)).toString(), JSON.stringify({ depth: 12, inner }))
  let depth = 0
  const counting = { toJSON: (): unknown => ((depth += 1), depth < 100 ? encodeSync(counting).length : depth) }
  t.is(encodeSync(counting).toString(), '1')
  t.is(depth, 100)
})

// ───────────────────────────── errors in the middle ─────────────────────────────

/** Throws when it has been asked so many times. */
function bombs(count: number, rest: () => unknown): { readonly make: () => unknown; readonly error: Thrown } {
  const error = new Thrown('in the middle')
  let left = count
  const bomb = (value: unknown): object => ({
    toJSON: () => {
      left -= 1
      if (left < 0) throw error
      return value
    },
  })
  const make = (): unknown =>
    Array.from({ length: 100 }, (_, id) => ({
      id,
      text: `text "${id}"`,
      value: bomb({ id, more: rest() }),
      list: [1, bomb('x'), 0.5],
    }))
  return { make, error }
}

test('a call that throws, wherever it does, leaves the next ones right', async (t) => {
  const encoder = createEncoder()
  const random = new Random(7)
  const subjects: Subject[] = Array.from({ length: 100 }, (_, seed) => ({
    make: () => (seed % 4 === 0 ? randomTable(new Random(seed)) : randomValue(new Random(seed))),
  }))
  const expected = subjects.map((subject) => expectedOf(subject))
  for (let round = 0; round < 60; round += 1) {
    const rest = random.pick([
      () => 1,
      () => 'x'.repeat(300_000),
      () => Array.from({ length: 20_000 }, (_, index) => index / 7),
    ])
    const { make, error } = bombs(random.int(60), rest)
    const value = make()
    const caught = await caughtBy(async () =>
      round % 3 === 0 ? await encode(value) : round % 3 === 1 ? encodeSync(value) : encoder.encodeSync(value),
    )
    t.is(caught, error)
    if (round % 6 !== 0) continue
    for (const [index, subject] of subjects.entries()) {
      t.is(
        difference(expected[index] ?? { log: '' }, withEncoder(subject, encoder)),
        undefined,
        `round ${round}, value ${index}`,
      )
    }
  }
})

async function caughtBy(call: () => Promise<unknown>): Promise<unknown> {
  try {
    await call()
    return undefined
  } catch (error) {
    return error
  }
}

test('a value that threw is no ancestor of what comes next', (t) => {
  const encoder = createEncoder()
  const shared = { list: [{ a: 1 }], rows: rowsOf(50) }
  for (let round = 0; round < 30; round += 1) {
    t.throws(() => encoder.encodeSync({ outer: [shared, { shared, bad: 1n }] }), { instanceOf: TypeError })
    t.throws(() => encoder.encodeSync([{ deep: [[[[shared, 1n]]]] }]), { instanceOf: TypeError })
    t.is(encoder.encodeSync([shared, { shared }]).toString(), json([shared, { shared }]))
    t.is(encoder.encodeSync(shared).toString(), json(shared))
  }
})

// ───────────────────────────── depth ─────────────────────────────

const DEEP = 1_000_000

function nestedArrays(depth: number, value: unknown): unknown {
  let outer = value
  for (let level = 0; level < depth; level += 1) outer = [outer]
  return outer
}

function nestedObjects(depth: number, value: unknown): Record<string, unknown> {
  let outer: Record<string, unknown> = { a: value }
  for (let level = 1; level < depth; level += 1) outer = { a: outer }
  return outer
}

if (isFull) {
  test('a million arrays in each other', async (t) => {
    const value = nestedArrays(DEEP, 1)
    const expected = Buffer.from(`${'['.repeat(DEEP)}1${']'.repeat(DEEP)}`)
    t.true((await encode(value, { maxDepth: DEEP })).equals(expected))
    t.true(encodeSync(value, { maxDepth: DEEP }).equals(expected))
    const lines = await encodeLines([value], { maxDepth: DEEP })
    t.true(lines.equals(Buffer.from(`${expected.toString('latin1')}\n`)))
  })
}

if (isFull) {
  test('a million objects in each other', async (t) => {
    const value = nestedObjects(DEEP, null)
    const expected = Buffer.from(`${'{"a":'.repeat(DEEP)}null${'}'.repeat(DEEP)}`)
    t.true((await encode(value, { maxDepth: DEEP })).equals(expected))
    const encoder = createEncoder({ maxDepth: DEEP })
    for (let round = 0; round < 2; round += 1) t.true(encoder.encodeSync(value).equals(expected))
  })
}

test('deep values with a replacer, with space, behind proxies and toJSON', async (t) => {
  const depth = 20_000
  const value = nestedArrays(depth, { a: 1, b: 2 })
  const [open, close] = ['['.repeat(depth), ']'.repeat(depth)]
  t.is((await encode(value, { replacer: (_, inner) => inner })).toString(), `${open}{"a":1,"b":2}${close}`)
  t.is((await encode(value, { replacer: ['b'] })).toString(), `${open}{"b":2}${close}`)
  t.is(encodeSync({ toJSON: () => value }).toString(), `${open}{"a":1,"b":2}${close}`)
  t.is(encodeSync(new Proxy([value], {})).toString(), `[${open}{"a":1,"b":2}${close}]`)
  const spaced = encodeSync(nestedArrays(2000, 1), { space: 1 }).toString()
  const lines = Array.from({ length: 2000 }, (_, level) => level)
  const [opening, closing] = [
    lines.map((level) => `${' '.repeat(level)}[\n`),
    lines.map((level) => `\n${' '.repeat(level)}]`).toReversed(),
  ]
  t.is(spaced, `${opening.join('')}${' '.repeat(2000)}1${closing.join('')}`)
  let answering: unknown = 'end'
  for (let level = 0; level < depth; level += 1) {
    const inner = answering
    answering = { toJSON: () => [inner] }
  }
  t.is(encodeSync(answering).toString(), `${open}"end"${close}`)
})

test('deep values among many of one shape', (t) => {
  const depth = 50_000
  const rows = Array.from({ length: 100 }, (_, id) => ({ id, value: id === 90 ? nestedObjects(depth, id) : { a: 1 } }))
  const parts = rows.map(({ id }) =>
    id === 90 ? `{"id":90,"value":${'{"a":'.repeat(depth)}90${'}'.repeat(depth)}}` : `{"id":${id},"value":{"a":1}}`,
  )
  const encoder = createEncoder()
  for (let round = 0; round < 3; round += 1) t.is(encoder.encodeSync(rows).toString(), `[${parts.join(',')}]`)
})

test('a circle of nearly a hundred thousand throws what a small one does', async (t) => {
  const end: unknown[] = []
  const arrays = nestedArrays(99_000, end)
  end.push(arrays)
  const circular = { instanceOf: TypeError, message: /^Converting circular structure to JSON/ }
  await t.throwsAsync(encode(arrays), circular)
  t.throws(() => encodeSync([1, arrays]), circular)
  const last: Record<string, unknown> = {}
  const objects = nestedObjects(99_000, last)
  last['back'] = last
  t.throws(() => encodeSync(objects), circular)
  t.is(encodeSync([1]).toString(), '[1]')
})

test('wide values', (t) => {
  const encoder = createEncoder()
  for (const value of [
    Array.from({ length: 100_000 }, (_, index) => [index]),
    Array.from({ length: 100_000 }, (_, index) => ({ [`k${index % 100}`]: index })),
    Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`key ${index}`, { index }])),
    Array.from({ length: 20_000 }, (_, index) => [null, true, undefined, '', {}, [], index][index % 7]),
  ]) {
    t.is(encoder.encodeSync(value).toString(), json(value))
    t.is(encoder.encodeSync(value).toString(), json(value))
  }
})

// ───────────────────────────── abort ─────────────────────────────

test('a signal already aborted rejects with its reason, and the value is not read', async (t) => {
  let reads = 0
  const value = { toJSON: () => (reads += 1) }
  const reason = new Error('mine')
  const signal = AbortSignal.abort(reason)
  await t.throwsAsync(encode(value, { signal }), { is: reason })
  await t.throwsAsync(createEncoder().encode(value, { signal }), { is: reason })
  await t.throwsAsync(encodeLines([value], { signal }), { is: reason })
  t.is(reads, 0)
})

test('an abort while calls wait, run or are done rejects with the reason or not at all, and disturbs no others', async (t) => {
  const value = { rows: rowsOf(1000), text: 'x'.repeat(1_000_000) }
  const expected = Buffer.from(json(value))
  for (let round = 0; round < 3; round += 1) {
    const controller = new AbortController()
    const { signal } = controller
    const others = Array.from({ length: 4 }, () => encode(value))
    const calls = Array.from({ length: 12 }, () => encode(value, { signal }))
    const settled = Promise.allSettled(calls)
    if (0 < round) await new Promise((resolve) => setTimeout(resolve, round))
    controller.abort('enough')
    for (const result of await settled) {
      // Some may have been done before the abort came.
      if (result.status === 'fulfilled') t.true(result.value.equals(expected))
      else t.is(result.reason, 'enough')
    }
    for (const bytes of await Promise.all(others)) t.true(bytes.equals(expected))
    t.is(getEventListeners(signal, 'abort').length, 0)
  }
})

test('a value that aborts its own call', async (t) => {
  const controller = new AbortController()
  const { signal } = controller
  const value = { toJSON: () => (controller.abort('by itself'), ['x'.repeat(500_000)]) }
  const outcome = await caughtBy(() => encode(value, { signal }))
  t.is(outcome, 'by itself')
})

test('no listener is left behind', async (t) => {
  const { signal } = new AbortController()
  await Promise.all(Array.from({ length: 20 }, () => encode(rowsOf(2000), { signal })))
  await t.throwsAsync(encode([rowsOf(2000), 1n], { signal }))
  t.is(getEventListeners(signal, 'abort').length, 0)
})
