/** Work that may wait. */

import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import { clearTimeout, setImmediate, setTimeout } from 'node:timers'
import { invalidType, OffloopError } from '../errors.ts'
import { checkKeys, MAX_DELAY_MS, readInteger, readLimit, readListener, tableOf } from '../options.ts'
import { Queue, type Queued } from '../queue.ts'
import { Outcome, Watched } from './outcome.ts'
import { tell, warn } from './tell.ts'

/** Work that may wait: started in order of submission, off the caller's turn, at most `concurrency` at once. */
export interface DeferQueue extends AsyncDisposable {
  /**
   * Runs `work` on this thread, in the async context of the call. Work deferred from inside running work takes no slot of its
   * own, so nesting cannot deadlock. Work that waits for work deferred elsewhere belongs in `after`.
   */
  defer<T>(work: () => T | Promise<T>): Promise<T>
  /** `work` runs when all promises have settled; it holds no slot while it waits. One of them rejecting rejects it. */
  after<const A extends readonly unknown[], T>(
    promises: { readonly [K in keyof A]: Promise<A[K]> },
    work: (results: A) => T | Promise<T>,
  ): Promise<T>
  /**
   * Resolves when the queue is empty, work added meanwhile included. Called inside work, it does not wait for that work, nor for
   * what waits for it in `after` or waits in a flush of its own, and lends its slot meanwhile. Never rejects for a failed task; what
   * `onProgress` throws rejects it. `completed` and `failed` count what ended during this flush, `pending` what is left at the timeout.
   */
  flush(options?: {
    readonly timeoutMs?: number | undefined
    readonly onProgress?: ((left: number) => void) | undefined
  }): Promise<{
    readonly completed: number
    readonly failed: number
    readonly pending: number
  }>
  /** What has not ended: waiting for a slot or for promises, and running. */
  readonly size: number
  /** Refuses what is deferred from now on, but from inside running work, and resolves when all work has ended. */
  [Symbol.asyncDispose](): PromiseLike<void>
}

type FlushOptions = NonNullable<Parameters<DeferQueue['flush']>[0]>
type Flushed = Awaited<ReturnType<DeferQueue['flush']>>

const KEYS = tableOf({ concurrency: true, maxSize: true, onError: true })
const FLUSH_KEYS = tableOf({ timeoutMs: true, onProgress: true })
const CONCURRENCY = 4

/**
 * A queue of work on this thread. A turn of the loop starts one piece at most, so that what is synchronous holds the loop
 * for no longer than itself. Deferring costs some microseconds, and a turn of the loop.
 *
 * The promises of `defer` and `after` are never unhandled rejections. One that nobody has asked by the time it rejects (with
 * `await`, `then`, `catch`, `Promise.all` and so on) is told to `onError`, once; who asks later gets the error as well. Of calls
 * that are refused at once, callers have until the next turn to ask. What waits for a slot, for promises, or for the timeout
 * of a flush keeps nothing alive; what may start does so before the process ends by itself.
 */
export function createDeferQueue(
  options: {
    /** @default 4 */
    readonly concurrency?: number | undefined
    /** Above it `defer` rejects with ERR_OFFLOOP_FULL. @default Infinity */
    readonly maxSize?: number | undefined
    /** Failures nobody awaits. @default process.emitWarning */
    readonly onError?: ((error: unknown) => void) | undefined
  } = {},
): DeferQueue {
  checkKeys(options, KEYS)
  const { concurrency = CONCURRENCY, maxSize, onError } = options
  return new Deferred(
    readLimit('options.concurrency', concurrency, 1),
    readLimit('options.maxSize', maxSize, 1),
    readListener('options.onError', onError) ?? warn,
  )
}

/** The piece of work, of whatever queue, that runs here. One storage for all: each costs every promise of the process something. */
const inside = new AsyncLocalStorage<Job>()
/** What the promises given out are of. */
const origins = new WeakMap<object, Job>()

class Deferred implements DeferQueue {
  readonly #concurrency: number
  readonly #maxSize: number
  readonly #onError: (error: unknown) => void
  /** All that has not ended, in the order of the calls. */
  readonly #jobs = new Set<Job>()
  readonly #ready = new Queue<Job>()
  /** Those that need no slot. */
  readonly #nested = new Queue<Job>()
  readonly #flushes = new Set<Flush>()
  #slotsTaken = 0
  /** How many wait for promises. */
  #waiting = 0
  /** How many wait in a flush. */
  #held = 0
  #isStarting = false
  #isClosed = false

  constructor(concurrency: number, maxSize: number, onError: (error: unknown) => void) {
    this.#concurrency = concurrency
    this.#maxSize = maxSize
    this.#onError = onError
  }

  get size(): number {
    return this.#jobs.size
  }

  defer<T>(work: () => T | Promise<T>): Promise<T> {
    const outcome = new Outcome<T>()
    this.#submit(outcome, (job) => {
      checkWork(work)
      job.start = () => void this.#run(job, work, outcome)
      return () => this.#enqueue(job)
    })
    return outcome.promise
  }

  after<const A extends readonly unknown[], T>(
    promises: { readonly [K in keyof A]: Promise<A[K]> },
    work: (results: A) => T | Promise<T>,
  ): Promise<T>
  // What `Promise.all` makes of the promises of A is A, which the compiler cannot see.
  after<T>(promises: readonly unknown[], work: (results: readonly unknown[]) => T | Promise<T>): Promise<T> {
    const outcome = new Outcome<T>()
    this.#submit(outcome, (job) => {
      if (!Array.isArray(promises)) throw invalidType('promises', 'an instance of Array', promises)
      checkWork(work)
      const awaited: readonly unknown[] = [...promises]
      return () => void this.#await(job, awaited, work, outcome)
    })
    return outcome.promise
  }

  flush(options: FlushOptions = {}): Promise<Flushed> {
    let timer: NodeJS.Timeout | undefined
    const flushed = async (): Promise<Flushed> => {
      checkKeys(options, FLUSH_KEYS)
      const timeoutMs = readInteger('options.timeoutMs', options.timeoutMs, 0, MAX_DELAY_MS)
      const flush = this.#begin(readListener('options.onProgress', options.onProgress))
      if (timeoutMs !== undefined) timer = setTimeout(() => this.#end(flush), timeoutMs).unref()
      try {
        return await flush.ended
      } finally {
        clearTimeout(timer)
      }
    }
    // Who awaits a flush that ends at a certain time is to see its end.
    return new Watched(
      (resolve) => resolve(flushed()),
      () => timer?.ref(),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await this.#begin(undefined).ended
  }

  /** `prepare` checks the arguments and says what to do with the job once it is taken. */
  #submit<T>(outcome: Outcome<T>, prepare: (job: Job) => () => void): void {
    const job = new Job(this)
    try {
      const proceed = prepare(job)
      this.#admit(job)
      origins.set(outcome.promise, job)
      proceed()
    } catch (error) {
      outcome.reject(error)
      setImmediate(() => {
        if (!outcome.promise.isAwaited) tell(this.#onError, error)
      })
    }
  }

  #admit(job: Job): void {
    if (this.#isClosed && job.runningIn(this) === undefined) {
      throw new OffloopError('ERR_OFFLOOP_CLOSED', 'the queue is closed')
    }
    if (this.#maxSize <= this.#jobs.size) {
      throw new OffloopError('ERR_OFFLOOP_FULL', `the queue holds ${this.#jobs.size} pieces of work, as many as it may`)
    }
    this.#jobs.add(job)
  }

  async #await<T>(
    job: Job,
    promises: readonly unknown[],
    work: (results: readonly unknown[]) => T | Promise<T>,
    outcome: Outcome<T>,
  ): Promise<void> {
    job.awaits = promises.map((promise) => originOf(promise)).filter((origin) => origin !== undefined)
    this.#waiting += 1
    try {
      const results = await Promise.all(promises)
      job.start = () => void this.#run(job, () => work(results), outcome)
    } catch (error) {
      this.#waiting -= 1
      this.#fail(job, outcome, error)
      return
    }
    this.#waiting -= 1
    job.awaits = []
    this.#enqueue(job)
  }

  #enqueue(job: Job): void {
    // Its parent may have ended while it waited for promises; then nobody waits for it in a slot.
    job.takesSlot = job.runningIn(this) === undefined
    const queue = job.takesSlot ? this.#ready : this.#nested
    queue.push(job)
    this.#wake()
  }

  #wake(): void {
    if (this.#isStarting || this.#startable() === undefined) return
    this.#isStarting = true
    setImmediate(() => {
      this.#isStarting = false
      this.#startNext()
      this.#wake()
    })
  }

  #startable(): Job | undefined {
    return this.#nested.first ?? (this.#slotsTaken < this.#concurrency ? this.#ready.first : undefined)
  }

  #startNext(): void {
    const job = this.#startable()
    if (job === undefined) return
    if (job.takesSlot) {
      this.#ready.remove(job)
      this.#slotsTaken += 1
    } else this.#nested.remove(job)
    job.isRunning = true
    job.start()
  }

  async #run<T>(job: Job, work: () => T | Promise<T>, outcome: Outcome<T>): Promise<void> {
    let value: T
    try {
      value = await job.context.runInAsyncScope(() => inside.run(job, work))
    } catch (error) {
      this.#fail(job, outcome, error)
      return
    }
    this.#remove(job)
    outcome.resolve(value)
    this.#tellFlushes(true)
  }

  #fail<T>(job: Job, outcome: Outcome<T>, error: unknown): void {
    this.#remove(job)
    if (outcome.reject(error)) tell(this.#onError, error)
    this.#tellFlushes(false)
  }

  #remove(job: Job): void {
    this.#jobs.delete(job)
    if (job.holds !== 0) this.#held -= 1
    else if (job.isRunning && job.takesSlot) this.#slotsTaken -= 1
    job.isRunning = false
    // Whoever keeps the promise keeps neither the work nor what it holds.
    job.start = ignore
    this.#wake()
  }

  #begin(onProgress: ((left: number) => void) | undefined): Flush {
    const inner = [...runningIn(this, inside.getStore())]
    const flush = new Flush(inner, onProgress)
    this.#flushes.add(flush)
    for (const job of inner) this.#hold(job)
    // It may be all that others have waited for, which are in flushes of their own.
    this.#endFlushes()
    return flush
  }

  #end(flush: Flush): void {
    if (!this.#flushes.delete(flush)) return
    flush.end(this.#left(flush))
    for (const job of flush.inner) this.#letGo(job)
  }

  /** Until its flush is over, others may have its slot: what the flush waits for may need it. */
  #hold(job: Job): void {
    job.holds += 1
    if (job.holds !== 1) return
    this.#held += 1
    if (job.takesSlot) this.#slotsTaken -= 1
    this.#wake()
  }

  #letGo(job: Job): void {
    job.holds -= 1
    if (job.holds !== 0 || !job.isRunning) return
    this.#held -= 1
    if (job.takesSlot) this.#slotsTaken += 1
  }

  #tellFlushes(isCompleted: boolean): void {
    for (const flush of this.#flushes) flush.note(isCompleted, this.#left(flush))
    this.#endFlushes()
  }

  #endFlushes(): void {
    for (const flush of this.#flushes) if (this.#left(flush) === 0) this.#end(flush)
  }

  /** How many jobs a flush waits for. */
  #left(flush: Flush): number {
    if (flush.inner.length === 0) return this.#jobs.size
    const left = this.#jobs.size - this.#held
    // Only where nothing else is left: looking is proportional to what waits.
    return left === this.#waiting ? left - this.#countBlocked() : left
  }

  /** How many wait for promises of work that waits in a flush, or for promises of such as these. */
  #countBlocked(): number {
    const blocked = new Set<Job>()
    // What a job waits for was submitted before it.
    for (const job of this.#jobs) {
      if (job.holds !== 0 || job.awaits.some((other) => blocked.has(other))) blocked.add(job)
    }
    return blocked.size - this.#held
  }
}

/** One piece of work. */
class Job implements Queued<Job> {
  before: Job | undefined
  after: Job | undefined
  readonly queue: DeferQueue
  /** Of the call: what it knows of its caller's storage, the work finds as well. */
  readonly context: AsyncResource = new AsyncResource('OFFLOOP_DEFER')
  /** The innermost piece of work that ran where this was submitted, of whatever queue. */
  outer: Job | undefined
  start: () => void = ignore
  isRunning = false
  takesSlot = true
  /** What it waits for, before it is ready. */
  awaits: readonly Job[] = []
  /** Flushes that wait inside of it. */
  holds = 0

  constructor(queue: DeferQueue) {
    this.queue = queue
    this.outer = running(inside.getStore())
    // Or a chain of pieces that each submit the next would never be forgotten.
    if (this.outer !== undefined) this.outer.outer = running(this.outer.outer)
  }

  /** The innermost piece of work of that queue that this was submitted in, and that still runs. */
  runningIn(queue: DeferQueue): Job | undefined {
    return runningIn(queue, this.outer).next().value ?? undefined
  }
}

function running(job: Job | undefined): Job | undefined {
  let found = job
  while (found !== undefined && !found.isRunning) found = found.outer
  return found
}

function* runningIn(queue: DeferQueue, innermost: Job | undefined): Generator<Job, undefined> {
  for (let job = innermost; job !== undefined; job = job.outer) if (job.isRunning && job.queue === queue) yield job
  return undefined
}

/** Somebody who waits for the queue to be empty. */
class Flush {
  /** What it was called inside of, the innermost first. */
  readonly inner: readonly Job[]
  readonly ended: Promise<Flushed>
  readonly #onProgress: ((left: number) => void) | undefined
  #completed = 0
  #failed = 0
  #resolve: (flushed: Flushed) => void = ignore
  #reject: (error: unknown) => void = ignore

  constructor(inner: readonly Job[], onProgress: ((left: number) => void) | undefined) {
    this.inner = inner
    this.#onProgress = onProgress
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  note(isCompleted: boolean, left: number): void {
    if (isCompleted) this.#completed += 1
    else this.#failed += 1
    try {
      this.#onProgress?.(left)
    } catch (error) {
      this.#reject(error)
    }
  }

  end(pending: number): void {
    this.#resolve({ completed: this.#completed, failed: this.#failed, pending })
  }
}

function originOf(promise: unknown): Job | undefined {
  return typeof promise === 'object' && promise !== null ? origins.get(promise) : undefined
}

function checkWork(work: unknown): void {
  if (typeof work !== 'function') throw invalidType('work', 'of type function', work)
}

function ignore(): void {}
