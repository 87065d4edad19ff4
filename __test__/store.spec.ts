import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import * as fc from 'fast-check'
import { createRolloutStore, type RolloutStore } from '../src/kit/index.ts'
import { runScenario } from './fixtures/child.ts'
import { hasGlibc } from './fixtures/glibc.ts'

function storeOf(bodies: Readonly<Record<string, string>>, group?: string): RolloutStore<Buffer> {
  const store = createRolloutStore<Buffer>()
  for (const [id, text] of Object.entries(bodies)) store.put(id, Buffer.from(text), { group })
  return store
}

async function trimsOf(store: RolloutStore<unknown>, count: number): Promise<number> {
  while (store.stats().trims < count) await sleep(1)
  return store.stats().trims
}

test('a body is there until it is delivered, once', (t) => {
  const store = createRolloutStore<Buffer>()
  const body = Buffer.from('body')
  store.put('a', body)
  t.is(store.get('a'), body)
  t.is(store.deliver('a'), body)
  t.is(store.get('a'), undefined)
  t.is(store.deliver('a'), undefined)
  t.deepEqual(store.stats(), { entries: 0, bytes: 0, releasedBytes: 4, trims: 0 })
})

test('what was delivered is not kept by the store', async (t) => {
  const store = createRolloutStore<object>()
  const bodies = Array.from({ length: 10 }, (_, index) => new WeakRef({ index }))
  for (const [index, ref] of bodies.entries()) store.put(`${index}`, ref.deref() ?? {}, { group: 'g' })
  for (const index of bodies.keys()) {
    if (index < 5) store.deliver(`${index}`)
    else store.evict(`${index}`)
  }
  store.settle('g')
  await sleep(1)
  globalThis.gc?.()
  t.true(bodies.every((ref) => ref.deref() === undefined))
})

test('bytes are the length of binary values, or what is said, or none', (t) => {
  const store = createRolloutStore<unknown>()
  const sizes = [
    [Buffer.alloc(10), undefined, 10],
    [new Float64Array(2), undefined, 16],
    [new DataView(new ArrayBuffer(8), 2), undefined, 6],
    [new ArrayBuffer(5), undefined, 5],
    [new SharedArrayBuffer(7), undefined, 7],
    ['text', undefined, 0],
    [{ byteLength: 9 }, undefined, 0],
    [undefined, undefined, 0],
    [Buffer.alloc(10), 3, 3],
    ['text', 4, 4],
  ] as const
  for (const [value, bytes, expected] of sizes) {
    const before = store.stats().bytes
    store.put(`${before}`, value, { bytes })
    t.is(store.stats().bytes - before, expected)
    store.deliver(`${before}`)
    store.put(`kept ${store.stats().releasedBytes}`, value, { bytes: 1 })
  }
})

test('an id already there is replaced, in whatever group it was', (t) => {
  const store = createRolloutStore<string>()
  store.put('a', 'old', { bytes: 3, group: 'one' })
  store.put('b', 'beside', { bytes: 2, group: 'one' })
  store.put('a', 'new', { bytes: 5, group: 'two' })
  t.deepEqual(store.stats(), { entries: 2, bytes: 7, releasedBytes: 3, trims: 0 })
  t.deepEqual(store.settle('one'), [{ id: 'b', value: 'beside' }])
  t.is(store.get('a'), 'new')
  t.deepEqual(store.settle('two'), [{ id: 'a', value: 'new' }])
})

test('a store that is full throws ERR_OFFLOOP_FULL and takes nothing; what is replaced counts as free', (t) => {
  const store = createRolloutStore<Buffer>({ maxBytes: 10 })
  const [six, five, ten] = [Buffer.alloc(6), Buffer.alloc(5), Buffer.alloc(10)]
  store.put('a', six)
  const refused = { name: 'OffloopError', code: 'ERR_OFFLOOP_FULL' }
  t.throws(() => store.put('b', five), refused)
  t.is(store.get('b'), undefined)
  t.deepEqual(store.stats(), { entries: 1, bytes: 6, releasedBytes: 0, trims: 0 })
  store.put('a', ten)
  t.throws(() => store.put('a', Buffer.alloc(11)), refused)
  t.is(store.get('a'), ten)
  store.put('empty', Buffer.alloc(0))
  store.evict('a')
  store.put('b', five)
  t.deepEqual(store.stats(), { entries: 2, bytes: 5, releasedBytes: 16, trims: 0 })
})

test('a rollout that is evicted is gone, one in a group is readable until the group is settled', (t) => {
  const store = storeOf({ alone: 'x' })
  store.put('first', Buffer.from('1'), { group: 'g' })
  store.put('second', Buffer.from('22'), { group: 'g' })
  store.evict('alone')
  store.evict('first')
  store.evict('nobody')
  t.is(store.get('alone'), undefined)
  t.is(store.get('first')?.toString(), '1')
  t.like(store.stats(), { entries: 2, bytes: 3, releasedBytes: 1 })
  t.deepEqual(store.settle('g'), [{ id: 'second', value: Buffer.from('22') }])
  t.is(store.get('first'), undefined)
  t.like(store.stats(), { entries: 0, bytes: 0, releasedBytes: 4 })
})

test('settling gives what was neither delivered nor evicted, in order, and once', (t) => {
  const store = storeOf({ a: '1', b: '2', c: '3', d: '4' }, 'g')
  store.deliver('b')
  store.evict('c')
  t.deepEqual(
    store.settle('g').map(({ id, value }) => `${id}${value.toString()}`),
    ['a1', 'd4'],
  )
  t.deepEqual(store.settle('g'), [])
  t.deepEqual(store.settle('another'), [])
  store.put('e', Buffer.from('5'), { group: 'g' })
  t.like(store.settle('g'), { length: 1 })
})

test('one that was evicted, and is delivered or put again before its group is settled, is that', (t) => {
  const store = storeOf({ a: '1', b: '2' }, 'g')
  store.evict('a')
  store.evict('b')
  t.is(store.deliver('a')?.toString(), '1')
  store.put('b', Buffer.from('new'), { group: 'g' })
  t.deepEqual(store.settle('g'), [{ id: 'b', value: Buffer.from('new') }])
})

test('names like those of prototypes are names', (t) => {
  const store = createRolloutStore<number>()
  for (const [index, id] of ['__proto__', 'constructor', 'toString', ''].entries()) {
    t.is(store.get(id), undefined)
    store.put(id, index, { group: id })
    t.is(store.get(id), index)
    t.deepEqual(store.settle(id), [{ id, value: index }])
  }
})

test('memory is trimmed after so much was let go, and not before', async (t) => {
  const store = createRolloutStore<string>({ trimAfterBytes: 100 })
  store.put('a', 'x', { bytes: 99 })
  store.put('b', 'x', { bytes: 99 })
  store.put('c', 'x', { bytes: 1000, group: 'g' })
  store.deliver('a')
  await sleep(50)
  t.is(store.stats().trims, 0)
  store.put('b', 'y', { bytes: 0 })
  t.is(await trimsOf(store, 1), 1)
  store.evict('c')
  await sleep(50)
  t.is(store.stats().trims, 1)
  store.settle('g')
  t.is(await trimsOf(store, 2), 2)
})

test('what is let go while a trim runs is trimmed after it', async (t) => {
  const store = createRolloutStore<string>({ trimAfterBytes: 1 })
  for (let index = 0; index < 1000; index += 1) {
    store.put('a', 'x', { bytes: 1 })
    store.deliver('a')
  }
  t.is(await trimsOf(store, 2), 2)
  await sleep(50)
  t.is(store.stats().trims, 2)
})

test('a store that is disposed forgets all, trims what was let go, and throws ERR_OFFLOOP_CLOSED', async (t) => {
  const store = storeOf({ a: '1', b: '22' }, 'g')
  await Promise.all([store[Symbol.asyncDispose](), store[Symbol.asyncDispose]()])
  t.deepEqual(store.stats(), { entries: 0, bytes: 0, releasedBytes: 3, trims: 1 })
  await store[Symbol.asyncDispose]()
  t.is(store.stats().trims, 1)
  const closed = { name: 'OffloopError', code: 'ERR_OFFLOOP_CLOSED' }
  t.throws(() => store.put('a', Buffer.from('1')), closed)
  t.throws(() => store.get('a'), closed)
  t.throws(() => store.deliver('a'), closed)
  t.throws(() => store.evict('a'), closed)
  t.throws(() => store.settle('g'), closed)
})

test('a store that may never trim does not do so at its end either', async (t) => {
  const store = createRolloutStore<Buffer>({ trimAfterBytes: Infinity, maxBytes: Infinity })
  store.put('a', Buffer.from('1'))
  await store[Symbol.asyncDispose]()
  t.is(store.stats().trims, 0)
})

const MISMADE: readonly (readonly [what: string, options: unknown, code: string])[] = [
  ['null', null, 'ERR_INVALID_ARG_TYPE'],
  ['a number', 4, 'ERR_INVALID_ARG_TYPE'],
  ['an unknown option', { maxSize: 4 }, 'ERR_INVALID_ARG_VALUE'],
  ['a negative bound', { maxBytes: -1 }, 'ERR_OUT_OF_RANGE'],
  ['a fractional bound', { maxBytes: 1.5 }, 'ERR_OUT_OF_RANGE'],
  ['a bound that is a bigint', { maxBytes: 1n }, 'ERR_INVALID_ARG_TYPE'],
  ['trims after nothing', { trimAfterBytes: 0 }, 'ERR_OUT_OF_RANGE'],
  ['trims after a string', { trimAfterBytes: '64 MiB' }, 'ERR_INVALID_ARG_TYPE'],
]

for (const [what, options, code] of MISMADE) {
  test(`createRolloutStore refuses ${what} with ${code}`, (t) => {
    t.throws(() => Reflect.apply(createRolloutStore, undefined, [options]), { code })
  })
}

const WRONG: readonly (readonly [
  what: string,
  method: 'put' | 'get' | 'deliver' | 'evict' | 'settle',
  args: readonly unknown[],
  code: string,
])[] = [
  ['an id that is a number', 'put', [1, 'x'], 'ERR_INVALID_ARG_TYPE'],
  ['options that are null', 'put', ['a', 'x', null], 'ERR_INVALID_ARG_TYPE'],
  ['an unknown option', 'put', ['a', 'x', { size: 1 }], 'ERR_INVALID_ARG_VALUE'],
  ['negative bytes', 'put', ['a', 'x', { bytes: -1 }], 'ERR_OUT_OF_RANGE'],
  ['bytes without end', 'put', ['a', 'x', { bytes: Infinity }], 'ERR_OUT_OF_RANGE'],
  ['bytes that are a string', 'put', ['a', 'x', { bytes: '1' }], 'ERR_INVALID_ARG_TYPE'],
  ['a group that is a number', 'put', ['a', 'x', { group: 1 }], 'ERR_INVALID_ARG_TYPE'],
  ['no id', 'get', [], 'ERR_INVALID_ARG_TYPE'],
  ['no id', 'deliver', [], 'ERR_INVALID_ARG_TYPE'],
  ['a symbol', 'evict', [Symbol('a')], 'ERR_INVALID_ARG_TYPE'],
  ['no group', 'settle', [], 'ERR_INVALID_ARG_TYPE'],
]

for (const [what, method, args, code] of WRONG) {
  test(`${method} of a store refuses ${what} with ${code}, and changes nothing`, (t) => {
    const store = storeOf({ a: 'x' })
    const before = store.stats()
    t.throws(() => Reflect.apply(store[method], store, args), { code })
    t.deepEqual(store.stats(), before)
  })
}

test('a store keeps no process alive', async (t) => {
  const { stdout, stderr } = await runScenario('kit', 'stored')
  t.is(stdout, 'played\n', stderr)
})

const onGlibc = hasGlibc ? test : test.skip

onGlibc('what is still in use when it is let go is trimmed later', async (t) => {
  const { stdout, stderr } = await runScenario('kit', 'later')
  t.is(stdout, 'played\n', stderr)
})

/** The same, as one would write it down: a list of what is there. */
class Model {
  entries: {
    readonly id: string
    readonly value: number
    readonly bytes: number
    readonly group: string | undefined
    evicted: boolean
  }[] = []
  put = 0
}

const MAX_BYTES = 50
const NAMES = ['a', 'b', 'c', 'd'] as const
const GROUPS = [undefined, 'g', 'h'] as const

type Command = fc.Command<Model, RolloutStore<number>>

function bytesOf(entries: Model['entries']): number {
  return entries.reduce((sum, { bytes }) => sum + bytes, 0)
}

function same(a: unknown, b: unknown, what: string): void {
  if (JSON.stringify(a) !== JSON.stringify(b))
    throw new Error(`${what}: ${JSON.stringify(a)}, not ${JSON.stringify(b)}`)
}

function command(name: string, run: (model: Model, store: RolloutStore<number>) => void): Command {
  return {
    check: () => true,
    run(model, store) {
      run(model, store)
      const { entries, bytes, releasedBytes } = store.stats()
      const held = bytesOf(model.entries)
      same([entries, bytes, releasedBytes], [model.entries.length, held, model.put - held], 'stats')
      for (const id of NAMES) same(store.get(id), model.entries.find((entry) => entry.id === id)?.value, `get ${id}`)
    },
    toString: () => name,
  }
}

const COMMANDS = [
  fc
    .tuple(fc.constantFrom(...NAMES), fc.constantFrom(...GROUPS), fc.nat(30), fc.nat())
    .map(([id, group, bytes, value]) =>
      command(`put ${id} ${group} ${bytes}`, (model, store) => {
        const others = model.entries.filter((entry) => entry.id !== id)
        try {
          store.put(id, value, { bytes, group })
        } catch (error) {
          same(error, { code: 'ERR_OFFLOOP_FULL' }, 'the error')
          if (bytesOf(others) + bytes <= MAX_BYTES) throw error
          return
        }
        if (bytesOf(others) + bytes > MAX_BYTES) throw new Error('more than it may hold')
        model.entries = [...others, { id, value, bytes, group, evicted: false }]
        model.put += bytes
      }),
    ),
  fc.constantFrom(...NAMES).map((id) =>
    command(`deliver ${id}`, (model, store) => {
      same(store.deliver(id), model.entries.find((entry) => entry.id === id)?.value, 'deliver')
      model.entries = model.entries.filter((entry) => entry.id !== id)
    }),
  ),
  fc.constantFrom(...NAMES).map((id) =>
    command(`evict ${id}`, (model, store) => {
      store.evict(id)
      for (const entry of model.entries) if (entry.id === id) entry.evicted = true
      model.entries = model.entries.filter(({ evicted, group }) => !evicted || group !== undefined)
    }),
  ),
  fc.constantFrom('g', 'h', 'nobody').map((name) =>
    command(`settle ${name}`, (model, store) => {
      const settled = model.entries.filter(({ group, evicted }) => group === name && !evicted)
      same(
        store.settle(name),
        settled.map(({ id, value }) => ({ id, value })),
        'settle',
      )
      model.entries = model.entries.filter(({ group }) => group !== name)
    }),
  ),
]

test('whatever is done to a store, it holds what a list would, and counts every byte', (t) => {
  fc.assert(
    fc.property(fc.commands(COMMANDS, { maxCommands: 60, size: 'max' }), (commands) => {
      const setup = (): { model: Model; real: RolloutStore<number> } => ({
        model: new Model(),
        real: createRolloutStore<number>({ maxBytes: MAX_BYTES, trimAfterBytes: Infinity }),
      })
      fc.modelRun(setup, commands)
    }),
    { numRuns: 500 },
  )
  t.pass()
})
