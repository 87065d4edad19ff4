import { setImmediate as nextTurn } from 'node:timers/promises'
import test from 'ava'
import { createBatcher, type Batcher } from '../src/kit/index.ts'
import { runScenario } from './fixtures/child.ts'

type Options = Parameters<typeof createBatcher>[0]
type Drop = Parameters<NonNullable<Options['onDrop']>>[0]
type Send = Options['send']

const QUICK = { attempts: 3, baseMs: 1, maxMs: 2 }

/** A batcher, the texts of what it sent, and what it dropped. */
function open<T>(options: Partial<Options> = {}): { batcher: Batcher<T>; bodies: string[]; drops: Drop[] } {
  const bodies: string[] = []
  const drops: Drop[] = []
  const send: Send = async (body) => {
    bodies.push(body.toString())
  }
  const batcher = createBatcher<T>({ send, onDrop: (drop) => drops.push(drop), retry: QUICK, ...options })
  return { batcher, bodies, drops }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

function circle(): object {
  const value: Record<string, unknown> = {}
  value['self'] = value
  return value
}

// ───────────────────────────── what is sent ─────────────────────────────

test('a body is the items in order, between the envelope', async (t) => {
  const { batcher, bodies } = open()
  const items = [{ a: 1 }, 'text\n', null, [1.5, 'é'], true]
  for (const item of items) t.true(batcher.add(item))
  t.deepEqual(await batcher.flush(), { sent: 5, dropped: 0, pending: 0 })
  t.deepEqual(bodies, [JSON.stringify(items)])

  const wrapped = open({ envelope: ['{"batch":{"é":[', ']}}'] })
  wrapped.batcher.add(1)
  wrapped.batcher.add({ b: 2 })
  await wrapped.batcher.flush()
  t.deepEqual(wrapped.bodies, ['{"batch":{"é":[1,{"b":2}]}}'])
})

test('large items and small ones, by tasks and at once: the same bytes as JSON.stringify', async (t) => {
  const { batcher, bodies } = open({ maxBatchBytes: 2 ** 30, maxBatchItems: 2 ** 30 })
  const items = Array.from({ length: 3000 }, (_, id) => ({
    id,
    score: id / 7,
    text: '"\u0001é'.repeat(id % 50),
    long: id % 700 === 0 ? 'x'.repeat(600_000) : null,
  }))
  for (const item of items) t.true(batcher.add(item))
  await batcher.flush()
  t.true(bodies.join('') === JSON.stringify(items))
})

test('items are captured as they are added, and only once', async (t) => {
  const { batcher, bodies } = open<unknown>()
  let calls = 0
  const item = {
    list: [1],
    toJSON() {
      calls += 1
      return { list: this.list }
    },
  }
  batcher.add(item)
  item.list.push(2)
  await batcher.flush()
  t.deepEqual(bodies, ['[{"list":[1]}]'])
  t.is(calls, 1)
})

test('options of encoders apply', async (t) => {
  const { batcher, bodies } = open<unknown>({ encode: { bigint: 'string', sortKeys: true, circular: { text: 'o' } } })
  batcher.add({ b: 5n, a: circle() })
  await batcher.flush()
  t.deepEqual(bodies, ['[{"a":{"self":"o"},"b":"5"}]'])
})

test('batches are cut by what their items really take', async (t) => {
  // Each of these becomes 602 bytes, though it is a string of 100 characters.
  const item = '\u0001'.repeat(100)
  for (const [maxBatchBytes, sizes] of [
    [604, [1, 1, 1, 1]],
    [1206, [1, 1, 1, 1]],
    [1207, [2, 2]],
    [1810, [3, 1]],
    [100, [1, 1, 1, 1]],
  ] as const) {
    const { batcher, bodies } = open({ maxBatchBytes })
    for (let count = 0; count < 4; count += 1) batcher.add(item)
    await batcher.flush()
    const lengths = bodies.map((body): number => JSON.parse(body).length)
    t.deepEqual(lengths, [...sizes])
  }
})

test('an item larger than a batch goes alone, in its turn', async (t) => {
  const { batcher, bodies } = open({ maxBatchBytes: 1000, concurrency: 1 })
  const items = ['a', 'b', 'c'.repeat(5000), 'd', 'e'.repeat(2_000_000), 'f']
  for (const item of items) batcher.add(item)
  await batcher.flush()
  t.deepEqual(
    bodies,
    [['a', 'b'], [items[2]], ['d'], [items[4]], ['f']].map((batch) => JSON.stringify(batch)),
  )
})

test('no batch has more than maxBatchItems', async (t) => {
  const { batcher, bodies } = open({ maxBatchItems: 3, concurrency: 1 })
  for (let id = 0; id < 8; id += 1) batcher.add(id)
  await batcher.flush()
  t.deepEqual(bodies, ['[0,1,2]', '[3,4,5]', '[6,7]'])
})

test('what is added leaves by itself after maxDelayMs, and full batches before', async (t) => {
  const alone = await new Promise<string>((resolve) => {
    const batcher = createBatcher({ send: async (body) => resolve(body.toString()), maxDelayMs: 1 })
    batcher.add(1)
    batcher.add(2)
    // The batcher keeps nothing alive.
    setTimeout(() => {}, 60_000).unref()
    const alive = setInterval(() => {
      if (batcher.stats().sent === 2) clearInterval(alive)
    }, 1)
  })
  t.is(alone, '[1,2]')
  const full = await new Promise<string>((resolve) => {
    const batcher = createBatcher({
      send: async (body) => resolve(body.toString()),
      maxDelayMs: 2 ** 31 - 1,
      maxBatchItems: 2,
    })
    for (const id of [1, 2, 3]) batcher.add(id)
  })
  t.is(full, '[1,2]')
})

test('items that code of an item adds come after it, wherever they are added', async (t) => {
  const { batcher, bodies, drops } = open<unknown>()
  const nest = (depth: number): unknown => ({
    toJSON() {
      if (0 < depth) batcher.add(nest(depth - 1))
      return depth
    },
  })
  batcher.add('first')
  t.true(batcher.add(nest(3)))
  const throws = {
    toJSON() {
      batcher.add('inner')
      throw new Error('outer')
    },
  }
  t.false(batcher.add(throws))
  batcher.add('last')
  t.is(batcher.stats().queuedItems, 7)
  t.deepEqual(await batcher.flush(), { sent: 7, dropped: 0, pending: 0 })
  t.deepEqual(bodies, ['["first",3,2,1,0,"inner","last"]'])
  t.deepEqual(
    drops.map(({ reason, items }) => [reason, items]),
    [['unencodable', 1]],
  )
})

test('code of an item may flush and dispose', async (t) => {
  const { batcher, bodies } = open<unknown>()
  const waits: Promise<unknown>[] = []
  batcher.add('before')
  batcher.add({
    toJSON() {
      waits.push(batcher.flush())
      return 'flushes'
    },
  })
  batcher.add({
    toJSON() {
      waits.push(Promise.resolve(batcher[Symbol.asyncDispose]()))
      return 'disposes'
    },
  })
  t.false(batcher.add('closed'))
  t.deepEqual(await Promise.all(waits), [{ sent: 2, dropped: 0, pending: 0 }, undefined])
  t.deepEqual(bodies, ['["before","flushes"]', '["disposes"]'])
  t.deepEqual(batcher.stats(), { queuedItems: 0, queuedBytes: 0, sent: 3, dropped: 1, retries: 0 })
})

// ───────────────────────────── what is dropped ─────────────────────────────

test('an item that cannot be encoded is dropped, and nothing else', async (t) => {
  const { batcher, bodies, drops } = open<unknown>()
  const thrown = new Error('of toJSON')
  batcher.add({ id: 1, text: 'x'.repeat(300_000) })
  const { queuedBytes } = batcher.stats()
  for (const bad of [
    5n,
    { text: 'x'.repeat(300_000), deep: [1n] },
    circle(),
    undefined,
    Symbol('none'),
    {
      toJSON() {
        throw thrown
      },
    },
  ]) {
    t.false(batcher.add(bad))
    t.is(batcher.stats().queuedBytes, queuedBytes)
  }
  batcher.add({ id: 2 })
  t.deepEqual(await batcher.flush(), { sent: 2, dropped: 0, pending: 0 })
  t.deepEqual(bodies, [JSON.stringify([{ id: 1, text: 'x'.repeat(300_000) }, { id: 2 }])])
  t.true(drops.every(({ reason, items }) => reason === 'unencodable' && items === 1))
  t.is(drops.length, 6)
  t.is(drops[5]?.error, thrown)
  t.true(drops[0]?.error instanceof TypeError)
  t.is(batcher.stats().dropped, 6)
})

test('an item larger than maxItemBytes is dropped by what it really takes, and reported before the flush settles', async (t) => {
  const { batcher, bodies, drops } = open<unknown>({ maxItemBytes: 602 })
  batcher.add('before')
  t.true(batcher.add('\u0001'.repeat(100)))
  t.true(batcher.add(`\u0001`.repeat(101)))
  t.true(batcher.add('x'.repeat(3_000_000)))
  batcher.add('after')
  t.deepEqual(await batcher.flush(), { sent: 3, dropped: 2, pending: 0 })
  t.deepEqual(bodies, [JSON.stringify(['before', '\u0001'.repeat(100), 'after'])])
  t.deepEqual(
    drops.map(({ reason, items, error }) => [reason, items, codeOf(error)]),
    [
      ['too-large', 1, 'ERR_OFFLOOP_TOO_LARGE'],
      ['too-large', 1, 'ERR_OFFLOOP_TOO_LARGE'],
    ],
  )
  t.is(batcher.stats().queuedBytes, 0)
})

test('above maxQueuedBytes items are refused, until others have left', async (t) => {
  const { batcher, drops } = open<string>({ maxQueuedBytes: 100_000, maxDelayMs: 1e6 })
  let taken = 0
  while (batcher.add('x'.repeat(1000))) taken += 1
  t.true(90 <= taken && taken <= 100)
  t.true(batcher.stats().queuedBytes <= 100_000)
  t.false(batcher.add('y'.repeat(1_000_000)))
  t.deepEqual(drops, [
    { reason: 'full', items: 1 },
    { reason: 'full', items: 1 },
  ])
  await batcher.flush()
  t.is(batcher.stats().queuedBytes, 0)
  t.true(batcher.add('x'))
  t.false(batcher.add('y'.repeat(1_000_000)))
})

test('after it is disposed of, items are refused', async (t) => {
  const { batcher, bodies, drops } = open<number>()
  batcher.add(1)
  const disposed = batcher[Symbol.asyncDispose]()
  t.false(batcher.add(2))
  await disposed
  await batcher[Symbol.asyncDispose]()
  t.deepEqual(bodies, ['[1]'])
  t.deepEqual(drops, [{ reason: 'closed', items: 1 }])
  t.deepEqual(await batcher.flush(), { sent: 0, dropped: 0, pending: 0 })
})

test.serial('what onDrop throws is a warning, once, and stops nothing', async (t) => {
  const warnings: Error[] = []
  const listen = (warning: Error): number => warnings.push(warning)
  process.on('warning', listen)
  const error = new Error('of onDrop')
  const { batcher, bodies } = open<unknown>({
    maxItemBytes: 100,
    onDrop: () => {
      throw error
    },
  })
  t.false(batcher.add(1n))
  t.true(batcher.add('x'.repeat(200)))
  t.false(batcher.add(2n))
  batcher.add('sent')
  t.deepEqual(await batcher.flush(), { sent: 1, dropped: 1, pending: 0 })
  await nextTurn()
  process.off('warning', listen)
  t.deepEqual(warnings, [error])
  t.deepEqual(bodies, ['["sent"]'])
})

test('an onDrop that adds what is dropped in turn holds neither the stack nor the loop', async (t) => {
  const state = { left: 20_000, turns: 0 }
  const batcher: Batcher<bigint> = createBatcher({
    send: async () => {},
    onDrop: () => {
      state.left -= 1
      if (0 < state.left) batcher.add(1n)
    },
  })
  t.false(batcher.add(1n))
  while (0 < state.left) {
    state.turns += 1
    await nextTurn()
  }
  t.true(100 < state.turns)
  t.is(batcher.stats().dropped, 20_000)
})

// ───────────────────────────── sends that fail ─────────────────────────────

test('a send that fails is retried with the same bytes, in memory of its own, whatever it did to the last', async (t) => {
  for (const size of [10, 500_000]) {
    const expected = JSON.stringify(['x'.repeat(size)])
    const { batcher } = open<string>({
      retry: { ...QUICK, attempts: 4 },
      send: async (body, { items, attempt }) => {
        t.is(items, 1)
        t.is(body.toString(), expected)
        if (attempt === 1) body.fill(0)
        // Small ones may share their memory.
        if (attempt === 2 && 65536 <= size) structuredClone(body.buffer, { transfer: [body.buffer] })
        if (attempt < 4) throw new Error('busy')
      },
    })
    batcher.add('x'.repeat(size))
    t.deepEqual(await batcher.flush(), { sent: 1, dropped: 0, pending: 0 })
    t.deepEqual(batcher.stats(), { queuedItems: 0, queuedBytes: 0, sent: 1, dropped: 0, retries: 3 })
  }
})

test('after the last attempt a batch is dropped and reported', async (t) => {
  const errors: Error[] = []
  const { batcher, drops } = open<number>({
    // Throws, and returns no promise.
    send: () => {
      const error = new Error(`attempt ${errors.length}`)
      errors.push(error)
      throw error
    },
  })
  batcher.add(1)
  batcher.add(2)
  t.deepEqual(await batcher.flush(), { sent: 0, dropped: 2, pending: 0 })
  t.is(errors.length, 3)
  t.deepEqual(drops, [{ reason: 'rejected', items: 2, error: errors[2] }])
  t.is(batcher.stats().retries, 2)
})

test('`retry.when` says whether an error is worth another attempt; one that throws says no', async (t) => {
  for (const [when, attempts] of [
    [(error: unknown): boolean => error instanceof RangeError, 2],
    [
      (): boolean => {
        throw new Error('of when')
      },
      1,
    ],
  ] as const) {
    let sends = 0
    const { batcher, drops } = open<number>({
      retry: { ...QUICK, when },
      send: async () => {
        sends += 1
        throw sends === 1 ? new RangeError('first') : new Error('then')
      },
    })
    batcher.add(1)
    await batcher.flush()
    t.is(sends, attempts)
    t.is(drops.length, 1)
  }
})

test('a send that never settles is aborted and retried; what it does later is ignored', async (t) => {
  const lates: (() => void)[] = []
  const reasons: unknown[] = []
  const { batcher, drops } = open<number>({
    sendTimeoutMs: 5,
    send: (_body, { attempt, signal }) =>
      new Promise((resolve, reject) => {
        if (attempt === 3) return resolve('taken')
        lates.push(attempt === 1 ? (): void => resolve('late') : (): void => reject(new Error('late')))
        signal.addEventListener('abort', () => reasons.push(signal.reason))
      }),
  })
  batcher.add(1)
  t.deepEqual(await batcher.flush(), { sent: 1, dropped: 0, pending: 0 })
  for (const late of lates) late()
  await nextTurn()
  t.deepEqual(batcher.stats(), { queuedItems: 0, queuedBytes: 0, sent: 1, dropped: 0, retries: 2 })
  t.deepEqual(drops, [])
  t.true(reasons.every((reason) => reason instanceof Error && reason.name === 'TimeoutError'))
  t.is(reasons.length, 2)

  const never = open<number>({ sendTimeoutMs: 1, send: () => new Promise(() => {}) })
  never.batcher.add(1)
  t.deepEqual(await never.batcher.flush(), { sent: 0, dropped: 1, pending: 0 })
  t.true(never.drops[0]?.error instanceof Error && never.drops[0].error.name === 'TimeoutError')
})

test('at most `concurrency` bodies are on their way, and the next starts when one has arrived', async (t) => {
  let [active, most] = [0, 0]
  const { batcher } = open<number>({
    concurrency: 3,
    maxBatchItems: 1,
    send: async () => {
      active += 1
      most = Math.max(most, active)
      await nextTurn()
      active -= 1
    },
  })
  for (let id = 0; id < 20; id += 1) batcher.add(id)
  t.is((await batcher.flush()).sent, 20)
  t.is(most, 3)
})

// ───────────────────────────── flush ─────────────────────────────

test('a flush is of what was added before, and what comes later does not keep it', async (t) => {
  let isOver = false
  const batcher: Batcher<number> = createBatcher({
    maxBatchItems: 1,
    send: async () => {
      if (!isOver) batcher.add(0)
      await nextTurn()
    },
  })
  batcher.add(1)
  batcher.add(2)
  t.deepEqual(await batcher.flush(), { sent: 2, dropped: 0, pending: 0 })
  isOver = true
  await batcher[Symbol.asyncDispose]()
  t.is(batcher.stats().queuedItems, 0)
})

test('a flush ends at its timeout, with what is pending', async (t) => {
  let release = (): void => {}
  const { batcher } = open<number>({
    maxBatchItems: 2,
    send: (_body, { items }) => (items === 2 ? Promise.resolve() : new Promise<void>((resolve) => (release = resolve))),
  })
  for (const id of [1, 2, 3]) batcher.add(id)
  t.deepEqual(await batcher.flush({ timeoutMs: 50 }), { sent: 2, dropped: 0, pending: 1 })
  const rest = batcher.flush()
  release()
  t.deepEqual(await rest, { sent: 1, dropped: 0, pending: 0 })
  t.deepEqual(await batcher.flush({ timeoutMs: 0 }), { sent: 0, dropped: 0, pending: 0 })
})

test('flushes at the same time count each for itself', async (t) => {
  const { batcher } = open<number>()
  batcher.add(1)
  const first = batcher.flush()
  batcher.add(2)
  const second = batcher.flush()
  t.deepEqual(await Promise.all([first, second]), [
    { sent: 1, dropped: 0, pending: 0 },
    { sent: 2, dropped: 0, pending: 0 },
  ])
})

test('progress counts down to zero; a listener that throws rejects the flush alone', async (t) => {
  const { batcher, bodies } = open<number>({ maxBatchItems: 1, concurrency: 1 })
  for (const id of [1, 2, 3]) batcher.add(id)
  const told: number[] = []
  await batcher.flush({ onProgress: (left) => told.push(left) })
  t.is(told.at(-1), 0)
  t.deepEqual(
    told,
    told.toSorted((a, b) => b - a),
  )
  const error = new Error('of onProgress')
  for (const id of [4, 5]) batcher.add(id)
  const broken = batcher.flush({
    onProgress: () => {
      throw error
    },
  })
  t.is(await broken.catch((reason: unknown) => reason), error)
  await batcher.flush()
  t.is(bodies.length, 5)
})

test('wrong arguments', async (t) => {
  const send: Send = async () => {}
  for (const [options, code] of [
    [{}, 'ERR_INVALID_ARG_TYPE'],
    [{ send: 5 }, 'ERR_INVALID_ARG_TYPE'],
    [{ send, other: 1 }, 'ERR_INVALID_ARG_VALUE'],
    [{ send, envelope: '[]' }, 'ERR_INVALID_ARG_TYPE'],
    [{ send, envelope: ['['] }, 'ERR_INVALID_ARG_TYPE'],
    [{ send, maxBatchBytes: 0 }, 'ERR_OUT_OF_RANGE'],
    [{ send, maxItemBytes: 1.5 }, 'ERR_OUT_OF_RANGE'],
    [{ send, maxBatchItems: '5' }, 'ERR_INVALID_ARG_TYPE'],
    [{ send, maxDelayMs: -1 }, 'ERR_OUT_OF_RANGE'],
    [{ send, maxDelayMs: 2 ** 31 }, 'ERR_OUT_OF_RANGE'],
    [{ send, maxQueuedBytes: 0 }, 'ERR_OUT_OF_RANGE'],
    [{ send, concurrency: 0 }, 'ERR_OUT_OF_RANGE'],
    [{ send, sendTimeoutMs: 0 }, 'ERR_OUT_OF_RANGE'],
    [{ send, retry: 3 }, 'ERR_INVALID_ARG_TYPE'],
    [{ send, retry: { attempts: 0, baseMs: 1, maxMs: 1 } }, 'ERR_OUT_OF_RANGE'],
    [{ send, retry: { attempts: 1, baseMs: 1, maxMs: 1, when: 1 } }, 'ERR_INVALID_ARG_TYPE'],
    [{ send, retry: { times: 1 } }, 'ERR_INVALID_ARG_VALUE'],
    [{ send, encode: { newline: true } }, 'ERR_INVALID_ARG_VALUE'],
    [{ send, encode: { bigint: 'maybe' } }, 'ERR_INVALID_ARG_VALUE'],
    [{ send, onDrop: 5 }, 'ERR_INVALID_ARG_TYPE'],
  ] as const) {
    const thrown = t.throws((): unknown => Reflect.apply(createBatcher, undefined, [options]))
    t.is(codeOf(thrown), code, JSON.stringify(options))
  }
  const { batcher } = open()
  for (const [options, code] of [
    [5, 'ERR_INVALID_ARG_TYPE'],
    [{ timeout: 5 }, 'ERR_INVALID_ARG_VALUE'],
    [{ timeoutMs: -1 }, 'ERR_OUT_OF_RANGE'],
    [{ onProgress: 5 }, 'ERR_INVALID_ARG_TYPE'],
  ] as const) {
    const flushed: Promise<unknown> = Reflect.apply(Reflect.get(batcher, 'flush'), batcher, [options])
    t.is(codeOf(await flushed.catch((error: unknown) => error)), code)
  }
})

for (const [name, what] of [
  ['exit', 'a batcher that nobody waits for keeps no process alive'],
  ['flush', 'a flush does, through backoff and sends that never settle'],
  ['exhausted', 'where there is no memory for an item, it is dropped, and those before it are sent'],
] as const) {
  test(what, async (t) => {
    const ended = await runScenario('batcher', name)
    t.is(ended.stdout, 'played\n', ended.stderr)
    t.is(ended.code, 0, ended.stderr)
  })
}
