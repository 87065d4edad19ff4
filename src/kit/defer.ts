/** Queue of work that may wait. Work runs on the JS thread, in later turns of the event loop; `offloop/kit` exports it. */

import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import { clearTimeout, setImmediate, setTimeout } from 'node:timers'
import { invalidType, OffloopError } from '../runtime/errors.ts'
import { copyOptions, MAX_DELAY_MS, readInteger, readLimit, readListener, tableOf } from '../runtime/options.ts'
import { Queue, type Queued } from '../runtime/queue.ts'
import { quietenAll, WatchedDeferred, WatchedPromise } from './watched.ts'
import { notify, warn } from './warn.ts'

/** Work that may wait. It starts in order of submission, not in the caller's turn of the loop, at most `concurrency` at once. */
export interface DeferQueue extends AsyncDisposable {
  /**
   * Runs `work` on the JS thread, in the async context of the call. Work deferred by running work takes no slot of its own, so
   * nesting cannot deadlock. Work that waits for work deferred elsewhere belongs in `after`.
   */
  defer<T>(work: () => T | Promise<T>): Promise<T>
  /** Runs `work` when all promises have settled; it holds no slot while it waits. If one of them rejects, it rejects. */
  after<const A extends readonly unknown[], T>(
    promises: { readonly [K in keyof A]: Promise<A[K]> },
    work: (results: A) => T | Promise<T>,
  ): Promise<T>
  /**
   * Resolves when the queue is empty, including work added meanwhile. Never rejects for failed work. Called by running work, it rejects with
   * ERR_INVALID_STATE: it would wait for itself. Rejects with what `onProgress` throws.
   * `completed` and `failed` count what ended during this flush, `pending` what is left at the timeout.
   */
  flush(options?: {
    readonly timeoutMs?: number | undefined
    readonly onProgress?: ((left: number) => void) | undefined
  }): Promise<{
    readonly completed: number
    readonly failed: number
    readonly pending: number
  }>
  /** Pieces of work that have not ended: they wait for a slot or for promises, or they run. */
  readonly size: number
  /**
   * Closes the queue and resolves when all work has ended. A closed queue accepts work from running work only. Called by running work,
   * it rejects with ERR_INVALID_STATE and closes nothing.
   */
  [Symbol.asyncDispose](): PromiseLike<void>
}

type FlushOptions = NonNullable<Parameters<DeferQueue['flush']>[0]>
type DeferFlushCounts = Awaited<ReturnType<DeferQueue['flush']>>

const KEYS = tableOf({ concurrency: true, maxSize: true, onError: true })
const FLUSH_KEYS = tableOf({ timeoutMs: true, onProgress: true })
const CONCURRENCY = 4

/**
 * Creates a queue of work on the JS thread. A turn of the loop starts at most one piece of work, so synchronous work blocks the loop
 * no longer than its own run. Deferring costs some microseconds and a turn of the loop.
 *
 * The promises of `defer` and `after` never become unhandled rejections. If nobody has asked for a promise when it rejects (with `await`,
 * `then`, `catch`, `Promise.all` and so on), `onError` gets its error, once. A caller that asks later gets the error as well.
 * For calls that are refused at once, callers have until the next turn to ask.
 *
 * Work that waits for a slot or for promises does not keep the process alive; nor does the timeout of a flush. Work that can start
 * does so before the process ends by itself.
 */
export function createDeferQueue(
  options: {
    /** @default 4 */
    readonly concurrency?: number | undefined
    /** Above it `defer` rejects with ERR_OFFLOOP_FULL. @default Infinity */
    readonly maxSize?: number | undefined
    /** Called for failures that nobody awaits. @default process.emitWarning */
    readonly onError?: ((error: unknown) => void) | undefined
  } = {},
): DeferQueue {
  const { concurrency = CONCURRENCY, maxSize, onError } = copyOptions(options, KEYS)
  return new WorkQueue(
    readLimit('options.concurrency', concurrency, 1),
    readLimit('options.maxSize', maxSize, 1),
    readListener('options.onError', onError) ?? warn,
  )
}

/**
 * The work item, of any queue, that runs in the current async context. All queues share one storage: each storage slows down every
 * promise of the process.
 */
const currentItem = new AsyncLocalStorage<WorkItem>()

class WorkQueue implements DeferQueue {
  readonly #concurrency: number
  readonly #maxSize: number
  readonly #onError: (error: unknown) => void
  /** Items that have not ended, in the order of the calls. */
  readonly #items = new Set<WorkItem>()
  readonly #ready = new Queue<WorkItem>()
  /** Ready items that need no slot. */
  readonly #nested = new Queue<WorkItem>()
  readonly #flushes = new Set<DeferFlush>()
  #slotsTaken = 0
  #isStarting = false
  #isClosed = false

  constructor(concurrency: number, maxSize: number, onError: (error: unknown) => void) {
    this.#concurrency = concurrency
    this.#maxSize = maxSize
    this.#onError = onError
  }

  get size(): number {
    return this.#items.size
  }

  defer<T>(work: () => T | Promise<T>): Promise<T> {
    const outcome = new WatchedDeferred<T>()
    this.#submit(outcome, (item) => {
      checkWork(work)
      item.start = () => void this.#run(item, work, outcome)
      return () => this.#enqueue(item)
    })
    return outcome.promise
  }

  after<const A extends readonly unknown[], T>(
    promises: { readonly [K in keyof A]: Promise<A[K]> },
    work: (results: A) => T | Promise<T>,
  ): Promise<T>
  // `Promise.all` of the promises of A resolves to A, which the compiler cannot see.
  after<T>(promises: readonly unknown[], work: (results: readonly unknown[]) => T | Promise<T>): Promise<T> {
    const outcome = new WatchedDeferred<T>()
    this.#submit(outcome, (item) => {
      if (!Array.isArray(promises)) throw invalidType('promises', 'an instance of Array', promises)
      const awaited: readonly unknown[] = [...promises]
      // A refused call must not turn one of them into an unhandled rejection.
      quietenAll(awaited)
      checkWork(work)
      return () => void this.#await(item, awaited, work, outcome)
    })
    return outcome.promise
  }

  flush(options: FlushOptions = {}): Promise<DeferFlushCounts> {
    let timer: NodeJS.Timeout | undefined
    const flushed = async (): Promise<DeferFlushCounts> => {
      const own = copyOptions(options, FLUSH_KEYS)
      const timeoutMs = readInteger('options.timeoutMs', own.timeoutMs, 0, MAX_DELAY_MS)
      const onProgress = readListener('options.onProgress', own.onProgress)
      this.#checkOutside()
      const flush = this.#openFlush(onProgress)
      if (timeoutMs !== undefined) timer = setTimeout(() => this.#endFlush(flush), timeoutMs).unref()
      try {
        return await flush.ended
      } finally {
        clearTimeout(timer)
      }
    }
    // A caller that awaits the flush keeps the process alive until the timeout.
    return new WatchedPromise(
      (resolve) => resolve(flushed()),
      () => timer?.ref(),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#checkOutside()
    this.#isClosed = true
    await this.#openFlush(undefined).ended
  }

  /** Checks the arguments with `prepare`, takes the item, and calls what `prepare` returned. */
  #submit<T>(outcome: WatchedDeferred<T>, prepare: (item: WorkItem) => () => void): void {
    const item = new WorkItem(this)
    try {
      const proceed = prepare(item)
      this.#admit(item)
      proceed()
    } catch (error) {
      outcome.reject(error)
      setImmediate(() => {
        if (!outcome.promise.isAwaited) notify(this.#onError, error)
      })
    }
  }

  #admit(item: WorkItem): void {
    if (this.#isClosed && !item.isNestedIn(this)) {
      throw new OffloopError('ERR_OFFLOOP_CLOSED', 'the queue is closed')
    }
    if (this.#maxSize <= this.#items.size) {
      throw new OffloopError(
        'ERR_OFFLOOP_FULL',
        `the queue holds ${this.#items.size} pieces of work, as many as it may`,
      )
    }
    this.#items.add(item)
  }

  async #await<T>(
    item: WorkItem,
    promises: readonly unknown[],
    work: (results: readonly unknown[]) => T | Promise<T>,
    outcome: WatchedDeferred<T>,
  ): Promise<void> {
    try {
      const results = await Promise.all(promises)
      item.start = () => void this.#run(item, () => work(results), outcome)
    } catch (error) {
      this.#fail(item, outcome, error)
      return
    }
    this.#enqueue(item)
  }

  #enqueue(item: WorkItem): void {
    // The outer work may have ended while the item waited for promises. Then no slot waits for the item.
    item.takesSlot = !item.isNestedIn(this)
    const queue = item.takesSlot ? this.#ready : this.#nested
    queue.push(item)
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

  #startable(): WorkItem | undefined {
    return this.#nested.first ?? (this.#slotsTaken < this.#concurrency ? this.#ready.first : undefined)
  }

  #startNext(): void {
    const item = this.#startable()
    if (item === undefined) return
    const queue = item.takesSlot ? this.#ready : this.#nested
    queue.remove(item)
    if (item.takesSlot) this.#slotsTaken += 1
    item.isRunning = true
    item.start()
  }

  async #run<T>(item: WorkItem, work: () => T | Promise<T>, outcome: WatchedDeferred<T>): Promise<void> {
    let value: T
    try {
      value = await item.context.runInAsyncScope(() => currentItem.run(item, work))
    } catch (error) {
      this.#fail(item, outcome, error)
      return
    }
    this.#remove(item)
    outcome.resolve(value)
    this.#noteEnd(true)
  }

  #fail<T>(item: WorkItem, outcome: WatchedDeferred<T>, error: unknown): void {
    this.#remove(item)
    if (outcome.reject(error)) notify(this.#onError, error)
    this.#noteEnd(false)
  }

  #remove(item: WorkItem): void {
    this.#items.delete(item)
    if (item.isRunning && item.takesSlot) this.#slotsTaken -= 1
    item.isRunning = false
    // A caller that keeps the promise keeps neither the work nor the memory it refers to.
    item.start = ignore
    this.#wake()
  }

  /** Throws inside running work of this queue: waiting for the queue would be waiting for that work. */
  #checkOutside(): void {
    if (!isInside(this, currentItem.getStore())) return
    const message = 'Invalid state: running work cannot flush its own queue, as the flush would wait for that work'
    throw Object.assign(new Error(message), { code: 'ERR_INVALID_STATE' })
  }

  #openFlush(onProgress: ((left: number) => void) | undefined): DeferFlush {
    const flush = new DeferFlush(onProgress)
    this.#flushes.add(flush)
    if (this.size === 0) this.#endFlush(flush)
    return flush
  }

  #endFlush(flush: DeferFlush): void {
    if (this.#flushes.delete(flush)) flush.end(this.size)
  }

  #noteEnd(isCompleted: boolean): void {
    for (const flush of this.#flushes) flush.note(isCompleted, this.size)
    // A listener may have deferred more work.
    for (const flush of this.#flushes) if (this.size === 0) this.#endFlush(flush)
  }
}

/** One piece of work and its place in the nesting of work. */
class WorkItem implements Queued<WorkItem> {
  before: WorkItem | undefined
  after: WorkItem | undefined
  readonly queue: DeferQueue
  /** The async context of the call, in which the work runs: it reads the same storages as its caller. */
  readonly context: AsyncResource = new AsyncResource('OFFLOOP_DEFER')
  /** The innermost item, of any queue, whose work made the call. */
  outer: WorkItem | undefined
  start: () => void = ignore
  isRunning = false
  takesSlot = true

  constructor(queue: DeferQueue) {
    this.queue = queue
    this.outer = innermostRunning(currentItem.getStore())
    // Without this step, a chain of items that each submit the next would never be collected.
    if (this.outer !== undefined) this.outer.outer = innermostRunning(this.outer.outer)
  }

  /** Returns whether work of `queue` that still runs submitted this item, directly or through other work. */
  isNestedIn(queue: DeferQueue): boolean {
    return isInside(queue, this.outer)
  }
}

function innermostRunning(item: WorkItem | undefined): WorkItem | undefined {
  let found = item
  while (found !== undefined && !found.isRunning) found = found.outer
  return found
}

/** Returns whether `innermost`, or an item around it, is running work of `queue`. */
function isInside(queue: DeferQueue, innermost: WorkItem | undefined): boolean {
  for (let item = innermost; item !== undefined; item = item.outer) {
    if (item.isRunning && item.queue === queue) return true
  }
  return false
}

/** A caller that waits for the queue to be empty, and its counts. */
class DeferFlush {
  readonly ended: Promise<DeferFlushCounts>
  readonly #onProgress: ((left: number) => void) | undefined
  #completed = 0
  #failed = 0
  #resolve: (counts: DeferFlushCounts) => void = ignore
  #reject: (error: unknown) => void = ignore

  constructor(onProgress: ((left: number) => void) | undefined) {
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

function checkWork(work: unknown): void {
  if (typeof work !== 'function') throw invalidType('work', 'of type function', work)
}

function ignore(): void {}
