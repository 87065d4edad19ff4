import test from 'ava'
import { configure, decodeBase64, encodeBase64, stats } from '../src/index.ts'
import { Queue } from '../src/runtime/queue.ts'
import { runScenario } from './fixtures/child.ts'
import { noise } from './fixtures/text.ts'

const TEXT = Buffer.from(noise(3_000_000).toString('base64'))

test.serial('never more than `concurrency` tasks are in the pool', async (t) => {
  const { concurrency } = stats()
  const calls = Array.from({ length: 40 }, async () => {
    await decodeBase64(TEXT)
    t.true(stats().running <= concurrency)
  })
  t.true(stats().running <= concurrency)
  await Promise.all(calls)
  t.is(stats().queued, 0)
  t.is(stats().running, 0)
})

test.serial('completed tasks are counted, and how long they waited', async (t) => {
  const { completed } = stats()
  await Promise.all(Array.from({ length: 10 }, () => encodeBase64(TEXT)))
  // The task that gives idle memory back may have run as well.
  t.true(completed + 10 <= stats().completed)
  const { p50, p99, max } = stats().waitMs
  t.true(0 <= p50 && p50 <= p99 && p99 <= max && 0 < max)
})

test.serial('a failure gives its slot back', async (t) => {
  const bad = Buffer.alloc(2_000_000, '*')
  await Promise.allSettled(Array.from({ length: 20 }, () => decodeBase64(bad)))
  t.is(stats().running, 0)
  t.is((await decodeBase64(TEXT)).length, 3_000_000)
})

test.serial('idle memory is bounded by maxIdleBytes', async (t) => {
  configure({ maxIdleBytes: 8 * 2 ** 20 })
  await Promise.all(Array.from({ length: 10 }, () => decodeBase64(TEXT)))
  t.true(0 < stats().idleBytes && stats().idleBytes <= 8 * 2 ** 20)
  configure({ maxIdleBytes: 0 })
  t.is(stats().idleBytes, 0)
  await decodeBase64(TEXT)
  t.is(stats().idleBytes, 0)
  configure({ maxIdleBytes: 128 * 2 ** 20 })
})

test('the default leaves a thread of libuv’s pool free', async (t) => {
  for (const [threads, most] of [
    ['1', 1],
    ['2', 1],
    ['3', 2],
    ['64', 63],
    ['none', 1],
  ] as const) {
    const { code, stdout, stderr } = await runScenario('pool', 'concurrency', { UV_THREADPOOL_SIZE: threads })
    t.is(code, 0, stderr)
    const { concurrency, processors } = JSON.parse(stdout.split('\n')[0] ?? '')
    t.is(concurrency, Math.max(1, Math.min(most, processors)))
  }
})

for (const [name, what] of [
  ['free', 'files are read while two hundred tasks run and wait'],
  ['gate', 'as many tasks run as may, the others wait in order'],
  ['prewarm', 'memory can be made warm before the first call'],
  ['tapes', 'tapes that wait are counted, bounded, and let go'],
  ['idle', 'recycled memory goes back to the system when nothing has run for a while'],
  ['exit', 'nothing keeps the process alive but work under way'],
  ['workers', 'four threads stay within concurrency + threads − 1'],
  ['terminated', 'a worker that is terminated takes no slot with it'],
  ['files', 'tasks on files hold half of the slots, and block no others'],
  ['first', 'the next step of work begun goes before what waits'],
] as const) {
  test(what, async (t) => {
    const ended = await runScenario('pool', name)
    t.is(ended.stdout, 'played\n', ended.stderr)
  })
}

test('a queue keeps its order whatever leaves it', (t) => {
  interface Item {
    readonly name: string
    before: Item | undefined
    after: Item | undefined
  }
  const item = (name: string): Item => ({ name, before: undefined, after: undefined })
  const queue = new Queue<Item>()
  const [a, b, c, d] = [item('a'), item('b'), item('c'), item('d')]
  queue.push(b)
  queue.push(c)
  queue.unshift(a)
  queue.push(d)
  queue.remove(c)
  queue.remove(a)
  t.is(queue.size, 2)
  t.is(queue.first?.name, 'b')
  queue.remove(b)
  t.is(queue.first?.name, 'd')
  queue.remove(d)
  t.is(queue.first, undefined)
  t.is(queue.size, 0)
  queue.unshift(c)
  t.is(queue.first?.name, 'c')
})
