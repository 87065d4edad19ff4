/** Batchers under whatever their callers do: every item is sent once or dropped and reported, and everything comes to an end. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import test from 'ava'
import * as fc from 'fast-check'
import { createBatcher, type Batcher } from '../src/kit/index.ts'
import { FUZZ } from './fixtures/extent.ts'

type Options = Parameters<typeof createBatcher>[0]
type Drop = Parameters<NonNullable<Options['onDrop']>>[0]
type Send = Options['send']

function circle(): object {
  const value: Record<string, unknown> = {}
  value['self'] = value
  return value
}

/** What an item is, or does when it is captured. */
const ITEMS = [
  'small',
  'long',
  'large',
  'too large',
  'bigint',
  'circle',
  'nothing',
  'throws',
  'adds',
  'flushes',
  'disposes',
] as const
/** How a send goes. */
const SENDS = ['ok', 'slow', 'adds', 'flushes', 'rejects', 'throws', 'never', 'late', 'mutates', 'transfers'] as const

type Step =
  | { readonly do: 'add'; readonly item: (typeof ITEMS)[number] }
  | { readonly do: 'flush'; readonly timeoutMs: number | undefined }
  | { readonly do: 'turn' }
  | { readonly do: 'dispose' }

interface Plan {
  readonly steps: readonly Step[]
  readonly sends: readonly (typeof SENDS)[number][]
  readonly options: Partial<Options>
  readonly onDrop: 'counts' | 'adds' | 'throws'
  readonly onProgress: 'counts' | 'adds' | 'throws'
}

const STEP: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 120,
    arbitrary: fc.record({ do: fc.constant('add' as const), item: fc.constantFrom(...ITEMS.slice(0, -1)) }),
  },
  {
    weight: 20,
    arbitrary: fc.record({ do: fc.constant('flush' as const), timeoutMs: fc.constantFrom(undefined, 0, 2) }),
  },
  { weight: 30, arbitrary: fc.record({ do: fc.constant('turn' as const) }) },
  { weight: 2, arbitrary: fc.constantFrom({ do: 'dispose' } as const, { do: 'add', item: 'disposes' } as const) },
)
const PLAN: fc.Arbitrary<Plan> = fc.record({
  steps: fc.array(STEP, { maxLength: 60, size: 'max' }),
  sends: fc.array(fc.constantFrom(...SENDS), { minLength: 1, maxLength: 8 }),
  options: fc.record({
    maxBatchBytes: fc.constantFrom(40, 300, 1_000_000),
    maxBatchItems: fc.constantFrom(1, 3, 1000),
    maxItemBytes: fc.constant(300_000),
    maxQueuedBytes: fc.constantFrom(2000, 700_000, 2 ** 28),
    maxDelayMs: fc.constantFrom(0, 1, 1e6),
    concurrency: fc.constantFrom(1, 2, 4),
    sendTimeoutMs: fc.constant(4),
    retry: fc.record({ attempts: fc.constantFrom(1, 2, 3), baseMs: fc.constant(1), maxMs: fc.constant(2) }),
  }),
  onDrop: fc.constantFrom('counts', 'counts', 'adds', 'throws'),
  onProgress: fc.constantFrom('counts', 'counts', 'adds', 'throws'),
})

/** Plays a plan, and watches that nothing is lost, sent twice, or held for ever. */
class World {
  readonly batcher: Batcher<unknown>
  readonly #plan: Plan
  /** Items added, by number; those that `add` took and that have not been sent. */
  added = 0
  readonly #waiting = new Set<number>()
  #refused = 0
  #reported = 0
  #sent = 0
  #sends = 0
  #active = 0
  #broken: unknown
  /** What user code adds is little, so that it comes to an end. */
  #extras = 20

  constructor(plan: Plan) {
    this.#plan = plan
    this.batcher = createBatcher({
      ...plan.options,
      send: (...call) => this.#send(...call),
      onDrop: (drop) => this.#drop(drop),
    })
  }

  add(kind: (typeof ITEMS)[number]): void {
    const id = this.added
    this.added += 1
    this.#waiting.add(id)
    if (this.batcher.add(this.#item(id, kind))) return
    this.#refused += 1
    this.#waiting.delete(id)
  }

  /** Drops are to be reported still. */
  get hasReports(): boolean {
    return this.#reported < this.batcher.stats().dropped
  }

  /** Everything that is always so. */
  check(): void {
    if (this.#broken !== undefined) throw this.#broken
    const { queuedItems, queuedBytes, sent, dropped } = this.batcher.stats()
    ok(sent + dropped + queuedItems === this.added, 'every item to be somewhere')
    ok(0 <= queuedItems && 0 <= queuedBytes, 'no count below zero')
    ok(sent === this.#sent, `${this.#sent} items to be sent, not ${sent}`)
    ok(this.#refused <= dropped && this.#reported <= dropped, 'drops to be counted')
    ok(this.#active <= (this.#plan.options.concurrency ?? 4), 'no more bodies on their way than may be')
  }

  /** Everything that is so when all is over. */
  checkEnd(): void {
    this.check()
    const { queuedItems, queuedBytes, dropped } = this.batcher.stats()
    ok(queuedItems === 0 && queuedBytes === 0, `nothing to be left, not ${queuedItems} items, ${queuedBytes} bytes`)
    ok(this.#reported === dropped, `${dropped} drops to be reported, not ${this.#reported}`)
    ok(this.#refused + this.#waiting.size === dropped, 'what was not sent to be dropped')
  }

  async flush(timeoutMs: number | undefined): Promise<void> {
    const before = this.batcher.stats().queuedItems
    const onProgress = (): void => {
      if (this.#plan.onProgress === 'adds') this.#extra()
      if (this.#plan.onProgress === 'throws') throw new RangeError('of onProgress')
    }
    try {
      const { sent, dropped, pending } = await this.batcher.flush({ timeoutMs, onProgress })
      ok(sent + dropped + pending === before, `a flush of ${before} items to count them`)
      ok(timeoutMs !== undefined || pending === 0, 'a flush to wait')
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
    }
  }

  #extra(): void {
    if (this.#extras === 0) return
    this.#extras -= 1
    this.add('small')
  }

  #item(id: number, kind: (typeof ITEMS)[number]): unknown {
    switch (kind) {
      case 'long':
        return { id, text: 'x'.repeat(200) }
      case 'large':
        return { id, text: 'é'.repeat(100_000) }
      case 'too large':
        return { id, text: '\u0001'.repeat(60_000) }
      case 'bigint':
        return { id, value: [1n] }
      case 'circle':
        return [id, circle()]
      case 'nothing':
        return undefined
      case 'small':
        return { id }
      default:
        return { toJSON: () => this.#capture(id, kind) }
    }
  }

  #capture(id: number, kind: (typeof ITEMS)[number]): unknown {
    if (kind === 'adds') this.#extra()
    if (kind === 'flushes') void this.batcher.flush()
    if (kind === 'disposes') void this.batcher[Symbol.asyncDispose]()
    this.check()
    if (kind === 'throws') throw new Error('of an item')
    return { id }
  }

  #drop({ items }: Drop): void {
    this.#reported += items
    if (this.#plan.onDrop === 'adds') this.#extra()
    if (this.#plan.onDrop === 'throws') throw new Error('of onDrop')
  }

  async #send(body: Parameters<Send>[0], { items, signal }: Parameters<Send>[1]): Promise<void> {
    const ids = this.#try(() => this.#idsOf(body, items))
    const how = this.#plan.sends[this.#sends % this.#plan.sends.length] ?? 'ok'
    this.#sends += 1
    this.#active += 1
    let isActive = true
    const leave = (): void => {
      if (isActive) this.#active -= 1
      isActive = false
    }
    signal.addEventListener('abort', leave)
    try {
      await this.#behave(how, body, signal)
      if (signal.aborted) return
      for (const id of ids) this.#try(() => ok(this.#waiting.delete(id), `item ${id} to be sent once`))
      this.#sent += ids.length
    } finally {
      leave()
    }
  }

  /** What throws in a send is no failure of the test yet, but a reason to send again. */
  #try<T>(call: () => T): T {
    try {
      return call()
    } catch (error) {
      this.#broken ??= error
      throw error
    }
  }

  #idsOf(body: Buffer, items: number): number[] {
    const batch: { readonly id: number }[] = JSON.parse(body.toString())
    const ids = batch.map(({ id }) => id)
    const { maxBatchBytes = 0, maxBatchItems = 0 } = this.#plan.options
    ok(ids.length === items && items <= maxBatchItems, 'as many items as were told')
    ok(items === 1 || body.length <= maxBatchBytes, 'a body that is not too large')
    ok(
      ids.every((id, index) => index === 0 || (ids[index - 1] ?? 0) < id),
      `items in order, not ${ids.join()}`,
    )
    return ids
  }

  async #behave(how: (typeof SENDS)[number], body: Parameters<Send>[0], signal: AbortSignal): Promise<void> {
    if (how === 'adds') this.#extra()
    if (how === 'flushes') void this.batcher.flush()
    if (how === 'mutates') body.fill(0)
    if (how === 'transfers' && 65536 <= body.length) structuredClone(body.buffer, { transfer: [body.buffer] })
    if (how === 'slow') await nextTurn()
    if (how === 'never') await new Promise(() => {})
    if (how === 'late') await new Promise((resolve) => signal.addEventListener('abort', resolve))
    if (['rejects', 'throws', 'mutates', 'transfers'].includes(how)) throw new Error(how)
  }
}

function ok(condition: boolean, what: string): void {
  if (!condition) throw new Error(`expected ${what}`)
}

const PLANS = Math.ceil(FUZZ / 1000)

test('no sequence of adds, failures, slow sends, flushes and disposals loses an item or wedges a batcher', async (t) => {
  // Of callbacks that throw.
  Object.assign(process, { emitWarning: () => {} })
  const play = async (plan: Plan): Promise<void> => {
    const world = new World(plan)
    const flushes: Promise<void>[] = []
    for (const step of plan.steps) {
      if (step.do === 'add') world.add(step.item)
      if (step.do === 'flush') flushes.push(world.flush(step.timeoutMs))
      if (step.do === 'turn') await nextTurn()
      if (step.do === 'dispose') flushes.push(Promise.resolve(world.batcher[Symbol.asyncDispose]()))
      world.check()
    }
    await Promise.all(flushes)
    // What the flush before it has added is flushed by the next.
    while (0 < world.batcher.stats().queuedItems) await world.batcher.flush()
    while (world.hasReports) await nextTurn()
    world.checkEnd()
  }
  await t.notThrowsAsync(fc.assert(fc.asyncProperty(PLAN, play), { numRuns: PLANS }))
})
