import { setTimeout as sleep } from 'node:timers/promises'
import { stats } from '../../src/index.ts'
import { createDeferQueue, createRolloutStore, keepTrimmed, monitorLoop, trimMemory } from '../../src/kit/index.ts'
import { expect, play } from '../fixtures/scenario.ts'

const MB = 2 ** 20

/** So much in pieces that the C library takes from its heap, each tenth of which stays, so that nothing shrinks by itself. */
function scatter(bytes: number): Buffer[] {
  const size = 50_000
  const pieces = Array.from({ length: bytes / size }, () => Buffer.allocUnsafeSlow(size).fill(1))
  return pieces.filter((_, index) => index % 10 === 0)
}

async function collect(): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    globalThis.gc?.()
    await sleep(20)
  }
}

async function trimmed(): Promise<void> {
  const rest = scatter(200 * MB)
  await collect()
  const { rssBefore, rssAfter } = await trimMemory()
  expect(rssAfter < rssBefore - 100 * MB, `a hundred megabytes less, not ${rssBefore} and then ${rssAfter}`)
  expect(
    rest.every((piece) => piece[0] === 1),
    'what is in use to stay as it is',
  )
}

/** When half a second has passed in which no task ended: how many have by then. */
async function quiet(): Promise<number> {
  const { completed } = stats()
  await sleep(500)
  return stats().completed === completed ? completed : await quiet()
}

async function kept(): Promise<void> {
  using _ = keepTrimmed({ everyMs: 20 })
  await collect()
  const completed = await quiet()
  const rest = scatter(200 * MB)
  const before = process.memoryUsage.rss()
  await collect()
  while (before - 100 * MB < process.memoryUsage.rss()) await sleep(10)
  expect(completed < stats().completed, 'a task to have done it')
  expect(
    rest.every((piece) => piece[0] === 1),
    'what is in use to stay as it is',
  )
}

async function disposed(): Promise<void> {
  const keeper = keepTrimmed({ everyMs: 10 })
  keeper[Symbol.dispose]()
  keeper[Symbol.dispose]()
  const rest = scatter(100 * MB)
  await collect()
  await sleep(200)
  expect(stats().completed === 0 && rest.length !== 0, 'no task to have run')
}

/** These end by themselves, with something armed. */
function keeping(): void {
  keepTrimmed()
  keepTrimmed({ everyMs: 1 })
}

function monitored(): void {
  monitorLoop()
  monitorLoop({ intervalMs: 1, warn: { max: 1 } })
}

function deferred(): void {
  const queue = createDeferQueue()
  const never = new Promise<void>(() => {})
  void queue.defer(() => never)
  void queue.after([never], () => {})
  void queue.flush({ timeoutMs: 1e9 })
}

/** Who awaits a flush sees it end, though nothing else keeps the process. */
async function awaited(): Promise<void> {
  const queue = createDeferQueue()
  void queue.defer(() => new Promise(() => {}))
  const { pending } = await queue.flush({ timeoutMs: 50 })
  expect(pending === 1, `one to be left, not ${pending}`)
}

/** What could start does, before the process ends. */
function started(): void {
  const queue = createDeferQueue({ concurrency: 1 })
  for (const text of ['one\n', 'two\n']) void queue.defer(() => process.stdout.write(text))
}

function stored(): void {
  const store = createRolloutStore<Buffer>({ trimAfterBytes: 1 })
  store.put('a', Buffer.alloc(1000))
  store.deliver('a')
}

/** What was delivered is in use for a while, and goes when it is not. */
async function later(): Promise<void> {
  const store = createRolloutStore<Buffer>()
  let bodies = Array.from({ length: 4000 }, () => Buffer.allocUnsafeSlow(50_000).fill(1))
  for (const [index, body] of bodies.entries()) store.put(`${index}`, body)
  for (const index of bodies.keys()) store.deliver(`${index}`)
  // One of what was let go at first, one of what was let go meanwhile.
  while (store.stats().trims < 2) await sleep(1)
  const before = process.memoryUsage.rss()
  bodies = bodies.filter((_, index) => index % 10 === 0)
  await collect()
  while (store.stats().trims === 2) await sleep(10)
  const after = process.memoryUsage.rss()
  expect(after < before - 100 * MB, `a hundred megabytes less, not ${before} and then ${after}`)
}

/** Failures that nobody awaits end no process. */
async function failing(): Promise<void> {
  let told = 0
  process.on('warning', ({ message }) => (told += Number(message === 'deferred')))
  const queue = createDeferQueue({ maxSize: 3 })
  const fail = (): never => {
    throw new Error('deferred')
  }
  void queue.defer(fail)
  void queue.defer(async () => fail())
  void queue.after([Promise.reject(new Error('deferred'))], () => 1)
  await queue.flush()
  await sleep(10)
  expect(told === 3, `three warnings, not ${told}`)
}

/** Promises given to a call that is refused end no process, whether they have rejected by then or reject later. */
async function refused(): Promise<void> {
  const failLater = async (): Promise<never> => {
    await sleep(5)
    throw new Error('given')
  }
  const given = (): Promise<never>[] => [Promise.reject(new Error('given')), failLater()]
  const full = createDeferQueue({ maxSize: 1 })
  void full.defer(() => sleep(50))
  const closed = createDeferQueue()
  await closed[Symbol.asyncDispose]()
  const open = createDeferQueue()
  const outcomes = await Promise.allSettled([
    full.after(given(), () => 1),
    closed.after(given(), () => 1),
    Reflect.apply(open.after.bind(open), undefined, [given(), 'no function']),
  ])
  const codes = outcomes.map((outcome) => (outcome.status === 'rejected' ? Reflect.get(outcome.reason, 'code') : ''))
  await sleep(20)
  const expected = 'ERR_OFFLOOP_FULL,ERR_OFFLOOP_CLOSED,ERR_INVALID_ARG_TYPE'
  expect(codes.join() === expected, `${expected}, not ${codes.join()}`)
}

/** A failure of deferred work is reported, though a call that was given its promise was refused. */
async function refusedDeferred(): Promise<void> {
  const errors: unknown[] = []
  const queue = createDeferQueue({ maxSize: 1, onError: (error) => errors.push(error) })
  const deferring = queue.defer(() => Promise.reject(new Error('deferred')))
  await queue.after([deferring], () => 1).catch(() => {})
  await queue.flush()
  expect(errors.length === 1, `one error, not ${errors.length}`)
}

await play({
  trimmed,
  kept,
  disposed,
  keeping,
  monitored,
  deferred,
  awaited,
  started,
  stored,
  later,
  failing,
  refused,
  refusedDeferred,
})
