import { createBatcher } from '../../src/kit/index.ts'
import { loadHooks } from '../fixtures/hooks.ts'
import { expect, play } from '../fixtures/scenario.ts'

/** Items are queued, a send never settles, another waits for its next attempt. */
function exit(): void {
  const options = { maxBatchItems: 1, maxDelayMs: 2 ** 31 - 1, retry: { attempts: 9, baseMs: 2 ** 30, maxMs: 2 ** 30 } }
  const never = createBatcher<number>({ ...options, send: () => new Promise(() => {}) })
  const fails = createBatcher<number>({ ...options, send: () => Promise.reject(new Error('busy')) })
  const waits = createBatcher<number>({ ...options, maxBatchItems: 9, send: async () => {} })
  for (const batcher of [never, fails, waits]) batcher.add(1)
}

/** Nothing but the flush is there to keep the process alive. */
async function flush(): Promise<void> {
  const retry = { attempts: 3, baseMs: 50, maxMs: 50 }
  let sends = 0
  const batcher = createBatcher<number>({
    retry,
    sendTimeoutMs: 20,
    send: () => {
      sends += 1
      return sends === 1 ? new Promise(() => {}) : sends === 2 ? Promise.reject(new Error('busy')) : Promise.resolve()
    },
  })
  batcher.add(1)
  const { sent } = await batcher.flush()
  expect(sent === 1 && sends === 3, `three attempts, not ${sends}`)
  const never = createBatcher<number>({ send: () => new Promise(() => {}) })
  never.add(1)
  const { pending } = await never.flush({ timeoutMs: 20 })
  expect(pending === 1, 'one that is pending')
}

/** A page of small items and a large one, which there is no memory for. */
async function exhausted(): Promise<void> {
  const hooks = loadHooks()
  const bodies: unknown[] = []
  const drops: unknown[] = []
  const batcher = createBatcher<string>({
    send: async (body) => bodies.push(JSON.parse(body.toString())),
    onDrop: ({ reason, items }) => drops.push([reason, items]),
  })
  const small = ['a', 'b'.repeat(300_000), 'c']
  hooks.limitMemory(2 ** 21)
  for (const item of [...small, 'd'.repeat(2 ** 22), 'e'.repeat(2 ** 22), 'f']) expect(batcher.add(item), 'to be taken')
  const { sent, dropped } = await batcher.flush()
  expect(sent === 4 && dropped === 2, `four that are sent, not ${sent}`)
  expect(JSON.stringify(drops) === '[["too-large",1],["too-large",1]]', `two drops, not ${JSON.stringify(drops)}`)
  expect(JSON.stringify(bodies) === JSON.stringify([[...small, 'f']]), 'the small ones')
  expect(batcher.stats().queuedBytes === 0, 'nothing to be held')
  hooks.limitMemory(2 ** 40)
  batcher.add('g'.repeat(2 ** 22))
  expect((await batcher.flush()).sent === 1, 'all to be well again')
}

await play({ exit, flush, exhausted })
