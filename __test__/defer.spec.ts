import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import * as fc from 'fast-check'
import { createDeferQueue, type DeferQueue } from '../src/kit/index.ts'
import { runScenario } from './fixtures/child.ts'
import { warningOf } from './fixtures/warning.ts'

/** Work that ends when it is told to. */
class Gate {
  readonly opened: Promise<void>
  open: () => void = () => {}
  fail: (error: unknown) => void = () => {}

  constructor() {
    this.opened = new Promise((resolve, reject) => {
      this.open = resolve
      this.fail = reject
    })
  }
}

/** A queue turn starts one piece of work at most. */
async function turns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await nextTurn()
}

function collecting(): { readonly errors: unknown[]; readonly onError: (error: unknown) => void } {
  const errors: unknown[] = []
  return { errors, onError: (error) => errors.push(error) }
}

test('work is started off the turn of its caller, in order, and what it gives comes back', async (t) => {
  const queue = createDeferQueue()
  const order: string[] = []
  const results = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => queue.defer(() => order.push(name)))
  t.is(queue.size, 6)
  await Promise.resolve()
  t.deepEqual(order, [])
  t.deepEqual(await Promise.all(results), [1, 2, 3, 4, 5, 6])
  t.deepEqual(order, ['a', 'b', 'c', 'd', 'e', 'f'])
  t.is(queue.size, 0)
})

test('a turn of the loop starts one piece of work', async (t) => {
  const queue = createDeferQueue()
  let started = 0
  for (let index = 0; index < 10; index += 1) void queue.defer(() => (started += 1))
  for (let turn = 0; turn < 12; turn += 1) {
    const before = started
    await nextTurn()
    t.true(started - before <= 1)
  }
  t.is(started, 10)
})

test('no more than `concurrency` run at once, and what ends makes room', async (t) => {
  const queue = createDeferQueue({ concurrency: 3 })
  const gates = Array.from({ length: 7 }, () => new Gate())
  let running = 0
  const all = gates.map((gate) =>
    queue.defer(async () => {
      running += 1
      t.true(running <= 3)
      await gate.opened
      running -= 1
    }),
  )
  for (const [index, gate] of gates.entries()) {
    await turns()
    t.is(running, Math.min(3, 7 - index))
    gate.open()
  }
  await Promise.all(all)
})

test('work that defers and awaits work four deep ends with one slot, in whatever way it waits', async (t) => {
  const queue = createDeferQueue({ concurrency: 1 })
  const deep = (depth: number): Promise<number> =>
    queue.defer(async () => {
      if (depth === 0) return 0
      await sleep(1)
      const [below, beside] = await Promise.all([deep(depth - 1), queue.after([deep(0)], async ([zero]) => zero)])
      return 1 + below + beside
    })
  t.deepEqual(await Promise.all([deep(4), deep(4), deep(2)]), [4, 4, 2])
})

test('two queues of one slot that defer into each other do not wait for each other', async (t) => {
  const [one, other] = [createDeferQueue({ concurrency: 1 }), createDeferQueue({ concurrency: 1 })]
  const result = one.defer(() => other.defer(() => one.defer(() => other.defer(() => 'deep'))))
  void one.defer(() => 'behind')
  t.is(await result, 'deep')
})

test('what is deferred after its parent has ended takes a slot as everything does', async (t) => {
  const queue = createDeferQueue({ concurrency: 1 })
  const parent = new Gate()
  const order: string[] = []
  let late: Promise<unknown> = Promise.resolve()
  await queue.defer(() => {
    void parent.opened.then(() => (late = queue.defer(() => order.push('late'))))
  })
  const gate = new Gate()
  void queue.defer(() => gate.opened)
  await turns()
  parent.open()
  await turns()
  t.deepEqual(order, [])
  t.is(queue.size, 2)
  gate.open()
  await turns()
  await late
  t.deepEqual(order, ['late'])
})

test('pieces of work that each defer the next are forgotten', async (t) => {
  const queue = createDeferQueue({ concurrency: 1 })
  let left = 2000
  const collected: WeakRef<object>[] = []
  await new Promise<void>((resolve) => {
    const next = (): void => {
      left -= 1
      const held = { memory: Buffer.alloc(1000) }
      collected.push(new WeakRef(held))
      void queue.defer(() => (left === 0 || held.memory.length === 0 ? resolve() : next()))
    }
    next()
  })
  await turns()
  globalThis.gc?.()
  const kept = collected.filter((ref) => ref.deref() !== undefined).length
  t.true(kept < 100, `${kept}`)
})

test('work runs in the async context of its call', async (t) => {
  const storage = new AsyncLocalStorage<string>()
  const queue = createDeferQueue({ concurrency: 1 })
  const read = (): string | undefined => storage.getStore()
  const calls = ['a', 'b'].map((name) => storage.run(name, () => queue.defer(read)))
  const behind = storage.run('c', () => queue.after(calls, read))
  t.deepEqual(await Promise.all([...calls, behind]), ['a', 'b', 'c'])
})

test('`after` runs with the results of its promises, and holds no slot while it waits', async (t) => {
  const queue = createDeferQueue({ concurrency: 1 })
  const gate = new Gate()
  const outside = gate.opened.then(() => 2)
  const first = queue.defer(() => 'one')
  const sum = queue.after([first, outside], ([text, number]) => `${text} ${number.toFixed(1)}`)
  t.is(await queue.defer(() => 'meanwhile'), 'meanwhile')
  t.is(queue.size, 1)
  gate.open()
  t.is(await sum, 'one 2.0')
  t.is(await queue.after([], (none) => none.length), 0)
})

test('a promise that rejects rejects what is after it, which does not run', async (t) => {
  const { errors, onError } = collecting()
  const queue = createDeferQueue({ onError })
  const failed = queue.defer(() => Promise.reject(new Error('first')))
  let runs = 0
  const never = new Promise<void>(() => {})
  await t.throwsAsync(
    queue.after([failed, never], () => (runs += 1)),
    { message: 'first' },
  )
  t.is(runs, 0)
  t.is(queue.size, 0)
  t.deepEqual(errors, [])
})

test('a failure rejects its promise and nothing else', async (t) => {
  const { errors, onError } = collecting()
  const queue = createDeferQueue({ concurrency: 1, onError })
  const outcomes = await Promise.allSettled([
    queue.defer(() => 1),
    queue.defer(() => {
      throw new Error('thrown')
    }),
    queue.defer(() => Promise.reject(new Error('rejected'))),
    queue.defer(() => 4),
  ])
  t.deepEqual(
    outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : String(outcome.reason))),
    [1, 'Error: thrown', 'Error: rejected', 4],
  )
  t.deepEqual(errors, [])
})

test('a failure that nobody awaits is told once, before a flush ends; one that is awaited is not', async (t) => {
  const { errors, onError } = collecting()
  const queue = createDeferQueue({ onError })
  const fail = (message: string) => (): Promise<never> => Promise.reject(new Error(message))
  const forgotten = queue.defer(fail('forgotten'))
  const awaited = (async () => {
    await queue.defer(fail('awaited'))
  })()
  const caught = queue.defer(fail('caught')).catch(() => 'caught')
  const returned = (async () => queue.defer(fail('returned')))()
  void queue.after([queue.defer(fail('in after'))], () => 1)
  await t.throwsAsync(awaited, { message: 'awaited' })
  await t.throwsAsync(returned, { message: 'returned' })
  t.is(await caught, 'caught')
  await queue.flush()
  const messages = errors.map((error) => (error instanceof Error ? error.message : error))
  t.deepEqual(messages, ['forgotten', 'in after'])
  await t.throwsAsync(forgotten, { message: 'forgotten' })
  t.is(errors.length, 2)
})

test('promises of the queue are promises, and what is made of them are plain ones', async (t) => {
  const queue = createDeferQueue()
  const promise = queue.defer(() => 1)
  t.true(promise instanceof Promise)
  t.is(promise.then(() => 2).constructor, Promise)
  t.is(await promise.finally(() => 3), 1)
})

test('what onError throws is a warning of the process', async (t) => {
  const warning = warningOf(/thrown by onError/)
  const queue = createDeferQueue({
    onError: (error) => {
      throw new Error(`thrown by onError: ${String(error)}`)
    },
  })
  void queue.defer(() => Promise.reject(new Error('mine')))
  t.is((await warning).message, 'thrown by onError: Error: mine')
  t.is(await queue.defer(() => 1), 1)
})

test('a queue that is full refuses with ERR_OFFLOOP_FULL, takes nothing, and tells those who do not ask', async (t) => {
  const { errors, onError } = collecting()
  const queue = createDeferQueue({ maxSize: 2, onError })
  const gate = new Gate()
  void queue.defer(() => gate.opened)
  const waiting = queue.after([gate.opened], () => 1)
  const refused = { name: 'OffloopError', code: 'ERR_OFFLOOP_FULL' }
  await t.throwsAsync(
    queue.defer(() => t.fail('must not run')),
    refused,
  )
  await t.throwsAsync(
    queue.after([], () => t.fail('must not run')),
    refused,
  )
  t.is(queue.size, 2)
  t.deepEqual(errors, [])
  void queue.defer(() => t.fail('must not run'))
  await turns()
  t.like(errors, { length: 1, 0: { code: 'ERR_OFFLOOP_FULL' } })
  gate.open()
  t.is(await waiting, 1)
  t.is(await queue.defer(() => 2), 2)
})

test('a flush waits for all, what is added meanwhile included, and counts what ended', async (t) => {
  const { onError } = collecting()
  const queue = createDeferQueue({ concurrency: 1, onError })
  await queue.defer(() => 'before')
  let more = 5
  const again = (): void => {
    more -= 1
    if (more !== 0) setImmediate(() => void queue.defer(again))
    if (more === 2) throw new Error('one fails')
  }
  // Something is under way all the time, so that the queue is never empty.
  const gate = new Gate()
  void queue.after([gate.opened], () => 1)
  void queue.defer(again)
  const flushed = queue.flush()
  await turns()
  gate.open()
  t.deepEqual(await flushed, { completed: 5, failed: 1, pending: 0 })
  t.deepEqual(await queue.flush(), { completed: 0, failed: 0, pending: 0 })
})

test('a flush tells how much is left', async (t) => {
  const queue = createDeferQueue({ concurrency: 1 })
  for (let index = 0; index < 3; index += 1) void queue.defer(() => index)
  const told: number[] = []
  await queue.flush({ onProgress: (left) => told.push(left) })
  t.deepEqual(told, [2, 1, 0])
})

test('what onProgress throws rejects the flush, and the work goes on', async (t) => {
  const queue = createDeferQueue()
  const results = [queue.defer(() => 1), queue.defer(() => 2)]
  const flushed = queue.flush({
    onProgress: () => {
      throw new Error('mine')
    },
  })
  await t.throwsAsync(flushed, { message: 'mine' })
  t.deepEqual(await Promise.all(results), [1, 2])
})

test('a flush ends at its timeout, and tells what is left', async (t) => {
  const queue = createDeferQueue({ concurrency: 1 })
  const gate = new Gate()
  const done = queue.defer(() => 1)
  void queue.defer(() => gate.opened)
  void queue.defer(() => 2)
  await done
  const start = performance.now()
  t.deepEqual(await queue.flush({ timeoutMs: 50 }), { completed: 0, failed: 0, pending: 2 })
  // Libuv counts in whole milliseconds.
  t.true(performance.now() - start >= 49)
  t.deepEqual(await queue.flush({ timeoutMs: 0 }), { completed: 0, failed: 0, pending: 2 })
  gate.open()
  t.deepEqual(await queue.flush({ timeoutMs: 60_000 }), { completed: 2, failed: 0, pending: 0 })
})

const WOULD_WAIT_FOR_ITSELF = {
  name: 'Error',
  code: 'ERR_INVALID_STATE',
  message: 'Invalid state: running work cannot flush its own queue, as the flush would wait for that work',
}

test('a flush that running work calls rejects with ERR_INVALID_STATE, and the work goes on', async (t) => {
  const queue = createDeferQueue({ concurrency: 1 })
  const order: string[] = []
  const outer = queue.defer(async () => {
    await t.throwsAsync(queue.flush(), WOULD_WAIT_FOR_ITSELF)
    await sleep(1)
    await t.throwsAsync(queue.flush({ timeoutMs: 1 }), WOULD_WAIT_FOR_ITSELF)
    order.push('outer')
  })
  void queue.defer(() => order.push('behind'))
  const last = queue.after([outer], () => order.push('last'))
  t.deepEqual(await queue.flush(), { completed: 3, failed: 0, pending: 0 })
  await last
  t.deepEqual(order, ['outer', 'behind', 'last'])
})

test('a flush that nested work calls rejects, whatever queue the work between is of', async (t) => {
  const [one, other] = [createDeferQueue({ concurrency: 1 }), createDeferQueue({ concurrency: 1 })]
  await one.defer(() => one.defer(() => t.throwsAsync(one.flush(), WOULD_WAIT_FOR_ITSELF)))
  await one.defer(() => other.defer(() => t.throwsAsync(one.flush(), WOULD_WAIT_FOR_ITSELF)))
  await one.after([Promise.resolve()], () => t.throwsAsync(one.flush(), WOULD_WAIT_FOR_ITSELF))
  t.is(one.size + other.size, 0)
})

test('running work can flush another queue, and its own once the work has ended', async (t) => {
  const [one, other] = [createDeferQueue({ concurrency: 1 }), createDeferQueue({ concurrency: 1 })]
  let late: Promise<unknown> = Promise.resolve()
  const gate = new Gate()
  const flushed = await one.defer(() => {
    late = gate.opened.then(() => one.flush())
    void other.defer(() => 1)
    return other.flush()
  })
  t.deepEqual(flushed, { completed: 1, failed: 0, pending: 0 })
  gate.open()
  t.deepEqual(await late, { completed: 0, failed: 0, pending: 0 })
})

test('running work cannot dispose of its own queue, which stays open', async (t) => {
  const queue = createDeferQueue({ concurrency: 1 })
  await queue.defer(() => t.throwsAsync(async () => queue[Symbol.asyncDispose](), WOULD_WAIT_FOR_ITSELF))
  t.is(await queue.defer(() => 1), 1)
})

test('a disposed queue ends its work, nested work included, and refuses more with ERR_OFFLOOP_CLOSED', async (t) => {
  const queue = createDeferQueue({ concurrency: 1 })
  const gate = new Gate()
  const nested = queue.defer(async () => {
    await gate.opened
    return await queue.defer(() => 'nested')
  })
  const behind = queue.after([nested], ([text]) => `${text} and behind`)
  const disposed = queue[Symbol.asyncDispose]()
  const refused = { name: 'OffloopError', code: 'ERR_OFFLOOP_CLOSED' }
  await t.throwsAsync(
    queue.defer(() => 1),
    refused,
  )
  gate.open()
  await disposed
  t.is(queue.size, 0)
  t.is(await behind, 'nested and behind')
  await t.throwsAsync(
    queue.after([], () => 1),
    refused,
  )
  await queue[Symbol.asyncDispose]()
  t.deepEqual(await queue.flush(), { completed: 0, failed: 0, pending: 0 })
})

const MISMADE: readonly (readonly [what: string, options: unknown, code: string])[] = [
  ['null', null, 'ERR_INVALID_ARG_TYPE'],
  ['a number', 4, 'ERR_INVALID_ARG_TYPE'],
  ['an unknown option', { threads: 4 }, 'ERR_INVALID_ARG_VALUE'],
  ['a concurrency of zero', { concurrency: 0 }, 'ERR_OUT_OF_RANGE'],
  ['a fractional concurrency', { concurrency: 1.5 }, 'ERR_OUT_OF_RANGE'],
  ['a concurrency that is a string', { concurrency: '4' }, 'ERR_INVALID_ARG_TYPE'],
  ['a size of zero', { maxSize: 0 }, 'ERR_OUT_OF_RANGE'],
  ['a size that is no number', { maxSize: Number.NaN }, 'ERR_OUT_OF_RANGE'],
  ['a listener that is none', { onError: {} }, 'ERR_INVALID_ARG_TYPE'],
]

for (const [what, options, code] of MISMADE) {
  test(`createDeferQueue refuses ${what} with ${code}`, (t) => {
    t.throws(() => Reflect.apply(createDeferQueue, undefined, [options]), { code })
  })
}

const WRONG: readonly (readonly [
  what: string,
  method: 'defer' | 'after' | 'flush',
  args: readonly unknown[],
  code: string,
])[] = [
  ['no work', 'defer', [], 'ERR_INVALID_ARG_TYPE'],
  ['a promise', 'defer', [Promise.resolve()], 'ERR_INVALID_ARG_TYPE'],
  ['a promise alone', 'after', [Promise.resolve(), () => 1], 'ERR_INVALID_ARG_TYPE'],
  ['no work', 'after', [[]], 'ERR_INVALID_ARG_TYPE'],
  ['null', 'flush', [null], 'ERR_INVALID_ARG_TYPE'],
  ['an unknown option', 'flush', [{ timeout: 5 }], 'ERR_INVALID_ARG_VALUE'],
  ['a negative timeout', 'flush', [{ timeoutMs: -1 }], 'ERR_OUT_OF_RANGE'],
  ['an endless timeout', 'flush', [{ timeoutMs: Infinity }], 'ERR_OUT_OF_RANGE'],
  ['a listener that is none', 'flush', [{ onProgress: 1 }], 'ERR_INVALID_ARG_TYPE'],
]

for (const [what, method, args, code] of WRONG) {
  test(`${method} rejects ${what} with ${code}`, async (t) => {
    const queue = createDeferQueue()
    let promise: unknown
    t.notThrows(() => {
      promise = Reflect.apply(queue[method], queue, args)
    })
    await t.throwsAsync(Promise.resolve(promise), { code })
    t.is(queue.size, 0)
  })
}

for (const [name, what, stdout] of [
  ['deferred', 'what waits, and a flush nobody awaits, keep no process alive', 'played\n'],
  ['awaited', 'a flush that somebody awaits ends at its timeout, with nothing else to do', 'played\n'],
  ['started', 'what can start does so before the process ends', 'played\none\ntwo\n'],
  ['failing', 'a failure that nobody awaits is a warning, and ends no process', 'played\n'],
  ['refused', 'promises given to an `after` that is refused end no process', 'played\n'],
  ['refusedDeferred', 'a failure is reported though an `after` of its promise was refused', 'played\n'],
] as const) {
  test(what, async (t) => {
    const ended = await runScenario('kit', name)
    t.is(ended.stdout, stdout, ended.stderr)
    t.is(ended.code, 0)
  })
}

/** One piece of work as a test sees it. */
interface Piece {
  readonly gate: Gate
  readonly parent: Piece | undefined
  state: 'waiting' | 'running' | 'ended'
  /** Does something inside of it. */
  enter: (work: () => void) => void
  readonly promise: Promise<unknown>
  /** Whether it needed a slot when it was ready. */
  takesSlot: boolean
}

/** A queue that is driven at random, with what must be true of it whatever is done to it. */
class Driven {
  readonly concurrency: number
  readonly pieces: Piece[] = []
  readonly started: Piece[] = []
  /** Those that need slots, in the order in which they were ready. */
  readonly ready: Piece[] = []
  readonly flushes: Promise<unknown>[] = []
  readonly refusals: Promise<unknown>[] = []
  readonly queue: DeferQueue
  /** Those that need none. */
  readonly #nested = new Set<Piece>()

  constructor(concurrency: number) {
    this.concurrency = concurrency
    this.queue = createDeferQueue({ concurrency, onError: () => {} })
  }

  get running(): readonly Piece[] {
    return this.pieces.filter(({ state }) => state === 'running')
  }

  add(parent: Piece | undefined, after: readonly Piece[] | undefined): void {
    const gate = new Gate()
    const work = async (): Promise<void> => {
      piece.state = 'running'
      piece.enter = AsyncResource.bind((inner: () => void) => inner())
      this.started.push(piece)
      try {
        await gate.opened
      } finally {
        piece.state = 'ended'
      }
    }
    let promise: Promise<unknown> = Promise.resolve()
    const submit = (): void => {
      promise =
        after === undefined
          ? this.queue.defer(work)
          : this.queue.after(
              after.map((one) => one.promise),
              work,
            )
    }
    if (parent === undefined) submit()
    else parent.enter(submit)
    const piece: Piece = { gate, parent, state: 'waiting', enter: () => {}, promise, takesSlot: false }
    this.pieces.push(piece)
    if (after === undefined) this.noteReady(piece)
    else
      void Promise.all(after.map((one) => one.promise)).then(
        () => this.noteReady(piece),
        () => (piece.state = 'ended'),
      )
    promise.catch(() => {})
  }

  noteReady(piece: Piece): void {
    piece.takesSlot = !ancestors(piece.parent).some(({ state }) => state === 'running')
    if (piece.takesSlot) this.ready.push(piece)
    else this.#nested.add(piece)
  }

  flush(): void {
    this.flushes.push(this.queue.flush())
  }

  /** Flushes inside a piece of running work, which is refused. */
  flushWithin(piece: Piece): void {
    piece.enter(() => {
      this.refusals.push(
        this.queue.flush().then(
          () => 'flushed',
          (error: { readonly code?: unknown }) => error.code,
        ),
      )
    })
  }

  /** After a while in which nothing was done to it. */
  check(): void {
    const wrong = this.wrong()
    if (wrong !== undefined) throw new Error(wrong)
  }

  wrong(): string | undefined {
    const left = this.pieces.filter(({ state }) => state !== 'ended').length
    if (this.queue.size !== left) return `${this.queue.size} left, not ${left}`
    const order = this.started.filter(({ takesSlot }) => takesSlot)
    if (order.some((piece, index) => piece !== this.ready[index])) return 'started in another order'
    const taken = this.running.filter(({ takesSlot }) => takesSlot).length
    if (taken < this.concurrency && order.length < this.ready.length) return 'a slot is free, and work waits'
    const stuck = [...this.#nested].some((piece) => piece.state === 'waiting')
    return stuck ? 'nested work waits for a slot' : undefined
  }

  async end(): Promise<void> {
    while (this.queue.size !== 0) {
      for (const { gate } of this.pieces) gate.open()
      await nextTurn()
    }
    await Promise.all(this.flushes)
    const codes = await Promise.all(this.refusals)
    if (codes.some((code) => code !== 'ERR_INVALID_STATE')) throw new Error(`refused with ${codes.join()}`)
  }
}

function ancestors(piece: Piece | undefined): Piece[] {
  return piece === undefined ? [] : [piece, ...ancestors(piece.parent)]
}

const STEP = fc.record({
  what: fc.constantFrom(
    'defer',
    'defer',
    'nest',
    'nest',
    'after',
    'nest after',
    'open',
    'open',
    'fail',
    'flush',
    'flush within',
  ),
  which: fc.nat(),
  other: fc.nat(),
})

test('whatever is done to a queue: slots are used and kept, order is kept, all flushes end', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 3 }),
      fc.array(STEP, { maxLength: 40, size: 'max' }),
      async (concurrency, steps) => {
        const driven = new Driven(concurrency)
        const pick = (pieces: readonly Piece[], at: number): Piece | undefined =>
          pieces[at % Math.max(1, pieces.length)]
        for (const { what, which, other } of steps) {
          const one = pick(driven.running, which)
          const awaited = [pick(driven.pieces, which), pick(driven.pieces, other)].filter(
            (piece) => piece !== undefined,
          )
          if (what === 'defer') driven.add(undefined, undefined)
          else if (what === 'after') driven.add(undefined, awaited)
          else if (what === 'flush') driven.flush()
          else if (one === undefined) continue
          else if (what === 'nest') driven.add(one, undefined)
          else if (what === 'nest after')
            driven.add(
              one,
              awaited.filter((piece) => !ancestors(one).includes(piece)),
            )
          else if (what === 'flush within') driven.flushWithin(one)
          else if (what === 'fail') one.gate.fail(new Error('failed'))
          else one.gate.open()
          await turns(steps.length + 3)
          driven.check()
        }
        await driven.end()
      },
    ),
    { numRuns: 200 },
  )
  t.pass()
})
