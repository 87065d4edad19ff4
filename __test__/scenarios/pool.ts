import { getEventListeners } from 'node:events'
import { stat } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { configure, decodeBase64, encode, stats } from '../../src/index.ts'
import { run } from '../../src/runtime/pool.ts'
import { loadHooks } from '../fixtures/hooks.ts'
import { expect, play } from '../fixtures/scenario.ts'
import { noise } from '../fixtures/text.ts'

const hooks = loadHooks()
const TEXT = Buffer.from(noise(3_000_000).toString('base64'))

function wait(milliseconds: number, options: Parameters<typeof run>[1] = {}): Promise<unknown> {
  return run((stop) => hooks.waitTask(milliseconds, stop), options)
}

function concurrency(): void {
  process.stdout.write(`${JSON.stringify({ concurrency: stats().concurrency, processors: availableParallelism() })}\n`)
}

async function prewarm(): Promise<void> {
  configure({ prewarmBytes: 40 * 2 ** 20 })
  while (stats().running !== 0) await sleep(1)
  expect(stats().idleBytes === 40 * 2 ** 20, 'forty megabytes to be warm')
  configure({ maxIdleBytes: 2 ** 25 + 1, prewarmBytes: 2 ** 25 + 1 })
  while (stats().running !== 0) await sleep(1)
  expect(stats().idleBytes === 2 ** 25, `32 MiB to be kept, not ${stats().idleBytes}`)
}

/** Tapes are recycled memory too. */
async function tapes(): Promise<void> {
  const before = stats().idleBytes
  const numbers = Array.from({ length: 3_000_000 }, (_, index) => index / 3)
  const texts = Array.from({ length: 20_000 }, (_, index) => `${index} `.repeat(100))
  await encode([numbers, texts])
  const { idleBytes } = stats()
  expect(idleBytes - before > 40 * 2 ** 20, `tapes to be kept, not ${idleBytes}`)
  expect(idleBytes <= 128 * 2 ** 20, `no more to be kept than may be, ${idleBytes}`)
  configure({ maxIdleBytes: 20 * 2 ** 20 })
  expect(stats().idleBytes <= 20 * 2 ** 20, `what is too much to go at once, not ${stats().idleBytes}`)
  await encode([numbers, texts])
  expect(stats().idleBytes <= 20 * 2 ** 20, `no more to be kept, not ${stats().idleBytes}`)
  configure({ maxIdleBytes: 0 })
  expect(stats().idleBytes === 0, `nothing to be kept, not ${stats().idleBytes}`)
}

async function idle(): Promise<void> {
  await decodeBase64(TEXT)
  expect(stats().idleBytes > 0, 'memory to be kept')
  // The timer keeps nothing alive; this waits for what it does.
  while (stats().idleBytes !== 0) await sleep(100)
}

/** Ends by itself, with a timer armed. */
async function exit(): Promise<void> {
  await decodeBase64(TEXT)
}

async function stops(): Promise<void> {
  const [begun, notBegun] = [new AbortController(), new AbortController()]
  configure({ concurrency: 16 })
  // Libuv has four threads: it begins these and no others.
  const running = Array.from({ length: 4 }, () => wait(60_000, { signal: begun.signal }))
  const waiting = Array.from({ length: 12 }, () => wait(60_000, { signal: notBegun.signal }))
  await sleep(100)
  const outcomes = Promise.allSettled([...running, ...waiting])
  let settled = 0
  for (const task of waiting) void task.catch(() => (settled += 1))
  notBegun.abort('stop')
  await Promise.resolve()
  await Promise.resolve()
  expect(settled === 12, `twelve to be rejected at once, not ${settled}`)
  begun.abort('stop')
  expect(
    (await outcomes).every((result) => result.status === 'rejected' && result.reason === 'stop'),
    'the reason',
  )
  while (stats().running !== 0) await sleep(1)
}

/** Calls that wait for a thread, all of which are taken. */
async function aborted(): Promise<void> {
  configure({ concurrency: 2 })
  const [taken, given] = [new AbortController(), new AbortController()]
  const busy = [1, 2].map(() => wait(60_000, { signal: taken.signal }))
  const before = decodeBase64(TEXT)
  const calls = Array.from({ length: 20 }, () => decodeBase64(TEXT, { signal: given.signal }))
  const behind = decodeBase64(TEXT)
  expect(stats().queued === 22, `all to wait, not ${stats().queued}`)
  const outcomes = Promise.allSettled(calls)
  given.abort('enough')
  expect(stats().queued === 2, `twenty to wait no longer, not ${22 - stats().queued}`)
  expect(getEventListeners(given.signal, 'abort').length === 0, 'no listener')
  for (const outcome of await outcomes) {
    expect(outcome.status === 'rejected' && outcome.reason === 'enough', 'the reason')
  }
  taken.abort()
  await Promise.allSettled(busy)
  for (const bytes of [await before, await behind]) expect(bytes.length === 3_000_000, 'the others undisturbed')
}

/** A thread of libuv's stays free, however many tasks wait: had the files to wait for tasks, some of these would be over. */
async function free(): Promise<void> {
  const { concurrency: most, completed } = stats()
  const controller = new AbortController()
  const tasks = Array.from({ length: 200 }, () => wait(60_000, { signal: controller.signal }))
  const { queued } = stats()
  expect(queued === 200 - most, `all but ${most} tasks to wait, not ${queued}`)
  for (let round = 0; round < 100; round += 1) {
    const { size } = await stat(fileURLToPath(import.meta.url))
    expect(size > 0, 'what stat tells')
    expect(stats().queued === queued && stats().running === most, 'as many tasks to run and to wait as before')
    expect(stats().completed === completed, `no task to have ended at stat ${round}`)
  }
  controller.abort()
  const outcomes = await Promise.allSettled(tasks)
  expect(
    outcomes.every(({ status }) => status === 'rejected'),
    'all to be aborted',
  )
}

async function gate(): Promise<void> {
  configure({ concurrency: 3 })
  const controllers = Array.from({ length: 10 }, () => new AbortController())
  const order: number[] = []
  const tasks = controllers.map(({ signal }, index) => wait(60_000, { signal }).catch(() => order.push(index)))
  for (const [index, controller] of controllers.entries()) {
    const left = controllers.length - index
    // A task that libuv had not begun when it was aborted holds its slot for a moment longer than its promise.
    while (stats().running !== Math.min(3, left) || stats().queued !== Math.max(0, left - 3)) await sleep(1)
    controller.abort()
    await tasks[index]
  }
  expect(order.join(' ') === '0 1 2 3 4 5 6 7 8 9', order.join(' '))
  const last = new AbortController()
  const more = Array.from({ length: 8 }, () => wait(60_000, { signal: last.signal }))
  configure({ concurrency: 7 })
  expect(stats().running === 7, 'more tasks to start at once when more may')
  last.abort()
  await Promise.allSettled(more)
}

async function files(): Promise<void> {
  configure({ concurrency: 4 })
  const controller = new AbortController()
  const onFiles = Array.from({ length: 6 }, () => wait(60_000, { lane: 'files', signal: controller.signal }))
  expect(stats().running === 2, 'two tasks on files')
  const inMemory = Array.from({ length: 4 }, () => wait(1))
  expect(stats().running === 4, 'two tasks in memory beside them')
  await Promise.all(inMemory)
  expect(stats().queued === 4, `four tasks on files to wait, not ${stats().queued} ${stats().running}`)
  controller.abort()
  await Promise.allSettled(onFiles)
  configure({ concurrency: 1 })
  await Promise.all([wait(1, { lane: 'files' }), wait(1, { lane: 'files' })])
}

async function first(): Promise<void> {
  configure({ concurrency: 1 })
  const order: string[] = []
  const note =
    (name: string): (() => void) =>
    () =>
      order.push(name)
  const controller = new AbortController()
  const tasks = [
    wait(60_000, { signal: controller.signal }).catch(note('a')),
    wait(1).then(note('b')),
    wait(1).then(note('c')),
    wait(1, { first: true }).then(note('first')),
  ]
  controller.abort()
  await Promise.all(tasks)
  expect(order.join(' ') === 'a first b c', `another order than ${order.join(' ')}`)
}

const THREADS = 4

function startWorkers(): Worker[] {
  return Array.from({ length: THREADS }, () => new Worker(new URL(import.meta.url), { argv: ['worker'] }))
}

function messageOf(worker: Worker, wanted: string): Promise<void> {
  return new Promise((resolve, reject) => {
    worker.on('message', (message) => message === wanted && resolve()).once('error', reject)
  })
}

/** In a worker: 50 tasks, all at once. */
async function work(): Promise<void> {
  const tasks = Array.from({ length: 50 }, () => wait(5))
  parentPort?.postMessage('queued')
  await Promise.all(tasks)
  parentPort?.postMessage('done')
}

async function workers(): Promise<void> {
  configure({ concurrency: 2 })
  const { completed } = stats()
  let most = 0
  const sampler = setInterval(() => (most = Math.max(most, stats().running)), 1)
  await Promise.all(startWorkers().map((thread) => messageOf(thread, 'done')))
  clearInterval(sampler)
  expect(stats().completed === completed + 50 * THREADS, 'every task to end')
  expect(1 < most && most <= 2 + THREADS - 1, `at most five tasks at once, not ${most}`)
  expect(stats().running === 0, 'no slot to be held')
}

async function terminated(): Promise<void> {
  configure({ concurrency: 2 })
  for (let round = 0; round < 5; round += 1) {
    const started = startWorkers()
    await Promise.all(started.map((thread) => messageOf(thread, 'queued')))
    await Promise.all(started.map((thread) => thread.terminate()))
  }
  while (stats().running !== 0) await sleep(1)
  const controller = new AbortController()
  const tasks = Array.from({ length: 4 }, () => wait(60_000, { signal: controller.signal }))
  expect(stats().running === 2 && stats().queued === 2, 'both slots to be free')
  controller.abort()
  await Promise.allSettled(tasks)
}

if (isMainThread)
  await play({ concurrency, aborted, free, gate, prewarm, tapes, idle, exit, stops, files, first, workers, terminated })
else await work()
