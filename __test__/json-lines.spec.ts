import { Readable } from 'node:stream'
import test, { type ExecutionContext } from 'ava'
import { createEncoder, encodeLines } from '../src/index.ts'
import { differenceOfBytes } from './fixtures/stringify.ts'
import { Random, randomTable, randomValue } from './fixtures/values.ts'

function rowOf(id: number): { readonly id: number; readonly text: string; readonly tags: readonly string[] } {
  return { id, text: `line\nbreaks\r\n "${id}" 中`, tags: ['a', `b${id % 3}`] }
}

function rowsOf(count: number): ReturnType<typeof rowOf>[] {
  return Array.from({ length: count }, (_, id) => rowOf(id))
}

type Replace = (this: unknown, key: string, value: unknown) => unknown

function linesOf(rows: readonly unknown[], replacer?: Replace | string[]): string {
  const text = (row: unknown): string =>
    typeof replacer === 'function' ? JSON.stringify(row, replacer) : JSON.stringify(row, replacer)
  return rows.map((row) => `${text(row)}\n`).join('')
}

function isSame(t: ExecutionContext, bytes: Buffer, expected: string): void {
  t.is(differenceOfBytes(Buffer.from(expected), bytes), undefined)
}

async function* later<T>(rows: Iterable<T>): AsyncGenerator<T> {
  for (const row of rows) {
    await Promise.resolve()
    yield row
  }
}

function* each<T>(rows: Iterable<T>): Generator<T> {
  yield* rows
}

const SOURCES: Readonly<Record<string, (rows: readonly unknown[]) => Iterable<unknown> | AsyncIterable<unknown>>> = {
  'an array': (rows) => rows,
  'a Set': (rows) => new Set(rows),
  'the values of a Map': (rows) => new Map(rows.entries()).values(),
  'a generator': each,
  'an iterable of one’s own': (rows) => ({ [Symbol.iterator]: () => rows[Symbol.iterator]() }),
  'a subclass of Array': (rows) => Object.assign(new (class extends Array<unknown> {})(), rows),
  'an array of another prototype': (rows) => Object.setPrototypeOf([...rows], null),
  'an async generator': later,
  'a Node stream': (rows) => Readable.from(rows),
  'a web stream': (rows) =>
    new ReadableStream({
      start(controller) {
        for (const row of rows) controller.enqueue(row)
        controller.close()
      },
    }),
}

for (const [what, source] of Object.entries(SOURCES)) {
  test(`the rows of ${what}: one document and "\\n" each`, async (t) => {
    const encoder = createEncoder()
    for (const count of [1, 2, 30, 100, 3000]) {
      const rows = rowsOf(count)
      isSame(t, await encodeLines(source(rows)), linesOf(rows))
      isSame(t, await encoder.encodeLines(source(rows)), linesOf(rows))
    }
    t.is((await encodeLines(source([]))).length, 0)
  })
}

test('rows of every kind, none of which holds a raw line break', async (t) => {
  const encoder = createEncoder()
  for (let seed = 1; seed <= 300; seed += 1) {
    const make = (): unknown[] => {
      const random = new Random(seed)
      return random.list(random.int(40), () => randomValue(random))
    }
    // Code of a row may change it: each is read once.
    const texts = make().map(textOf)
    const bytes = await encoder.encodeLines(make().filter((_, index) => texts[index] !== undefined))
    const good = texts.filter((text) => text !== undefined)
    t.is(differenceOfBytes(Buffer.from(good.map((text) => `${text}\n`).join('')), bytes), undefined, `seed ${seed}`)
    t.is(bytes.toString().split('\n').length - 1, good.length)
    t.false(bytes.includes('\r'))
  }
})

test('rows that are arrays, objects and primitives in turn, long after the encoder has learned', async (t) => {
  const encoder = createEncoder()
  const rows = Array.from({ length: 600 }, (_, id) =>
    id < 100
      ? rowOf(id)
      : [[rowOf(id), rowOf(1)], rowOf(id), id, 'text', [id, id / 2], { toJSON: (key: string) => [key, { id }] }][
          id % 6
        ],
  )
  isSame(t, await encoder.encodeLines(rows), linesOf(rows))
  for (const row of rows.slice(90, 120)) isSame(t, await encoder.encodeLines([row]), linesOf([row]))
})

test('a replacer is applied to each row, with the row as holder’s only value', async (t) => {
  const rows = rowsOf(50)
  const seen: string[] = []
  const replacer = function (this: unknown, key: string, value: unknown): unknown {
    seen.push(`${key} ${JSON.stringify(Object.keys(Object(this)))}`)
    return key === 'text' ? undefined : value
  }
  const expected = linesOf(rows, replacer)
  const expectedSeen = seen.splice(0)
  t.is((await encodeLines(rows, { replacer })).toString(), expected)
  t.deepEqual(seen, expectedSeen)
  isSame(t, await encodeLines(rows, { replacer: ['id'] }), linesOf(rows, ['id']))
  isSame(t, await createEncoder({ replacer: ['tags'] }).encodeLines(rows), linesOf(rows, ['tags']))
})

// ───────────────────────────── bad rows ─────────────────────────────

const MINE = new Error('mine')

/** Rows that fail in every way, at once or after much of them was read. */
const BAD: readonly (() => unknown)[] = [
  () => undefined,
  () => Symbol('s'),
  () => () => 1,
  () => 1n,
  () => ({ toJSON: () => undefined }),
  () => ({ id: 1, text: 'text', tags: [1n] }),
  () => ({ id: 1, text: 'text', tags: { toJSON: fail } }),
  () => {
    const row: Record<string, unknown> = { id: 1, text: 'text' }
    row['tags'] = [row]
    return row
  },
  () => [Array.from({ length: 700_000 }, (_, index) => index), 'x'.repeat(400_000), { toJSON: fail }],
  () => ({ rows: rowsOf(3000), long: '中'.repeat(300_000), bytes: Buffer.alloc(300_000), last: { toJSON: fail } }),
  () => [Array.from({ length: 200_000 }, (_, index) => index / 3), [[[{ deep: { toJSON: fail } }]]]],
  () => nested(5000, { toJSON: fail }),
]

function fail(): never {
  throw MINE
}

function nested(depth: number, value: unknown): unknown {
  let outer = value
  for (let level = 0; level < depth; level += 1) outer = [level, outer]
  return outer
}

test('a bad row rejects the whole call, with its own error', async (t) => {
  for (const bad of BAD) {
    for (const options of [undefined, {}, { onBadRow: 'throw' }, { onBadRow: undefined }] as const) {
      const expected = errorOf(bad())
      const caught = await caughtBy(encodeLines([...rowsOf(3), bad(), ...rowsOf(3)], options))
      t.true(caught instanceof Error)
      if (expected !== undefined) t.is(Reflect.get(Object(caught), 'message'), expected.message)
    }
    isSame(t, await encodeLines(rowsOf(3)), linesOf(rowsOf(3)))
  }
})

/** What JSON.stringify throws for it, where it is no RangeError of depth. */
function errorOf(row: unknown): Error | undefined {
  try {
    JSON.stringify(row)
    return undefined
  } catch (error) {
    return error instanceof Error && !(error instanceof RangeError) ? error : undefined
  }
}

async function caughtBy(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
    return undefined
  } catch (error) {
    return error
  }
}

test('a callback is told of bad rows in order of index, and the others are intact', async (t) => {
  const encoder = createEncoder()
  for (let round = 0; round < 3; round += 1) {
    const rows: unknown[] = []
    const good: unknown[] = []
    const indexes: number[] = []
    for (const [index, bad] of BAD.entries()) {
      for (const row of rowsOf(index)) {
        rows.push(row)
        good.push(row)
      }
      indexes.push(rows.length)
      rows.push(bad())
    }
    const large = { text: 'y'.repeat(300_000), list: rowsOf(500) }
    rows.push(large)
    good.push(large)
    for (const source of [rows, each(rows), later(rows)]) {
      const told: number[] = []
      const errors: unknown[] = []
      const onBadRow = (error: unknown, index: number): void => {
        told.push(index)
        errors.push(error)
      }
      const bytes = await encoder.encodeLines(source, { onBadRow })
      t.deepEqual(told, indexes)
      isSame(t, bytes, linesOf(good))
      t.true(errors.every((error) => error instanceof Error))
      t.is(errors[6], MINE)
    }
  }
})

test('nothing but bad rows is an empty Buffer', async (t) => {
  const told: number[] = []
  const bytes = await encodeLines([undefined, 1n, { toJSON: fail }], { onBadRow: (_, index) => told.push(index) })
  t.is(bytes.length, 0)
  t.deepEqual(told, [0, 1, 2])
})

test('a callback that throws rejects the call with what it throws', async (t) => {
  const mine = new Error('of the callback')
  const onBadRow = (): never => {
    throw mine
  }
  t.is(await caughtBy(encodeLines([1, undefined, 2], { onBadRow })), mine)
  t.is(await caughtBy(encodeLines(later([1, undefined, 2]), { onBadRow })), mine)
  t.is((await encodeLines([1])).toString(), '1\n')
})

test('a callback may encode other things, and bad rows leave tables as they are', async (t) => {
  const encoder = createEncoder()
  for (let seed = 1; seed <= 40; seed += 1) {
    const table = randomTable(new Random(seed))
    const again = randomTable(new Random(seed))
    const rows: unknown[] = Array.isArray(table) ? table : [table]
    const twin: unknown[] = Array.isArray(again) ? again : [again]
    const onBadRow = (): void => void encoder.encodeSync({ nested: rowsOf(2) })
    const bytes = await encoder.encodeLines(rows, { onBadRow })
    const texts = twin.map(textOf).filter((text) => text !== undefined)
    isSame(t, bytes, texts.map((text) => `${text}\n`).join(''))
  }
})

function textOf(row: unknown): string | undefined {
  try {
    return JSON.stringify(row)
  } catch {
    // A row that cannot be encoded.
    return undefined
  }
}

// ───────────────────────────── iterators ─────────────────────────────

/** Counts what is done to it. */
class Rows {
  returned = 0
  read = 0
  readonly #rows: readonly unknown[]

  constructor(rows: readonly unknown[]) {
    this.#rows = rows
  }

  next(): IteratorResult<unknown> {
    const value = this.#rows[this.read]
    this.read += 1
    return this.read <= this.#rows.length ? { done: false, value } : { done: true, value: undefined }
  }

  return(): IteratorResult<unknown> {
    this.returned += 1
    return { done: true, value: undefined }
  }

  sync(): Iterable<unknown> {
    return { [Symbol.iterator]: () => this }
  }

  async(): AsyncIterable<unknown> {
    return { [Symbol.asyncIterator]: () => ({ next: async () => this.next(), return: async () => this.return() }) }
  }
}

test('an iterator is ended when a row throws, and not when it is at its end', async (t) => {
  for (const kind of ['sync', 'async'] as const) {
    const bad = new Rows([1, { toJSON: fail }, 3])
    t.is(await caughtBy(encodeLines(bad[kind]())), MINE)
    t.deepEqual([bad.read, bad.returned], [2, 1], kind)
    const good = new Rows([1, 2])
    t.is((await encodeLines(good[kind]())).toString(), '1\n2\n')
    t.deepEqual([good.read, good.returned], [3, 0], kind)
  }
})

test('an iterator that throws rejects with what it throws', async (t) => {
  const iterable = { [Symbol.iterator]: () => ({ next: fail }) }
  t.is(await caughtBy(encodeLines(iterable)), MINE)
  t.is(await caughtBy(encodeLines(Readable.from(later(failing())))), MINE)
  isSame(t, await encodeLines(rowsOf(2)), linesOf(rowsOf(2)))
})

function* failing(): Generator<number> {
  yield 1
  throw MINE
}

test('rows are read before the call returns, those of async iterables as they come', async (t) => {
  const rows: { id: number; list: number[] }[] = Array.from({ length: 500 }, (_, id) => ({ id, list: [id, id] }))
  const expected = linesOf(rows)
  const call = encodeLines(rows)
  for (const row of rows) {
    row.id = -1
    row.list.length = 0
  }
  rows.length = 0
  isSame(t, await call, expected)
  const shared = { count: 0 }
  const counting = (async function* () {
    for (shared.count = 0; shared.count < 5; shared.count += 1) yield shared
  })()
  isSame(t, await encodeLines(counting), linesOf([0, 1, 2, 3, 4].map((count) => ({ count }))))
})

test('rows added to an array while it is read are read too, as by any iteration', async (t) => {
  const rows: unknown[] = [{ toJSON: () => (rows.length < 5 && rows.push('more'), 'first') }, 'second']
  t.is((await encodeLines(rows)).toString(), '"first"\n"second"\n"more"\n')
})

test('several calls on async iterables at once do not mix their rows', async (t) => {
  const encoder = createEncoder()
  const all = Array.from({ length: 20 }, (_, index) => rowsOf(index * 7))
  const results = await Promise.all(all.map((rows) => encoder.encodeLines(later(rows))))
  for (const [index, bytes] of results.entries()) isSame(t, bytes, linesOf(all[index] ?? []))
})

// ───────────────────────────── abort ─────────────────────────────

test('an abort between rows rejects with the reason and ends the iterator', async (t) => {
  const controller = new AbortController()
  const rows = new Rows(rowsOf(100))
  const source = {
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        if (rows.read === 10) controller.abort('enough')
        return rows.next()
      },
      return: async () => rows.return(),
    }),
  }
  t.is(await caughtBy(encodeLines(source, { signal: controller.signal })), 'enough')
  t.is(rows.returned, 1)
  isSame(t, await encodeLines(rowsOf(2)), linesOf(rowsOf(2)))
})

test('an abort while the next row is waited for rejects at once', async (t) => {
  const controller = new AbortController()
  let isEnded = false
  const silent = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise<IteratorResult<unknown>>(() => undefined),
      return: async () => ((isEnded = true), { done: true as const, value: undefined }),
    }),
  }
  const call = encodeLines(silent, { signal: controller.signal })
  setImmediate(() => controller.abort('enough'))
  t.is(await caughtBy(call), 'enough')
  t.true(isEnded)
})

test('a row that aborts the call rejects it', async (t) => {
  const controller = new AbortController()
  const rows = [1, { toJSON: () => controller.abort('by a row') }, 3]
  t.is(
    await caughtBy(createEncoder().encodeLines(rows, { signal: controller.signal, onBadRow: () => undefined })),
    'by a row',
  )
})

test('a signal already aborted rejects before a row is read', async (t) => {
  const rows = new Rows([1])
  t.is(await caughtBy(encodeLines(rows.sync(), { signal: AbortSignal.abort('before') })), 'before')
  t.is(await caughtBy(encodeLines(rows.async(), { signal: AbortSignal.abort('before') })), 'before')
  t.deepEqual([rows.read, rows.returned], [0, 0])
})

test('lines of an encoder with space or newline are refused', async (t) => {
  for (const options of [{ space: 2 }, { newline: true }, { space: '-' }]) {
    const refused = { instanceOf: TypeError, code: 'ERR_INVALID_ARG_VALUE' }
    await t.throwsAsync(createEncoder(options).encodeLines([1]), refused)
  }
  t.is((await createEncoder({ space: 0, newline: false }).encodeLines([1])).toString(), '1\n')
})
