/**
 * The gate before libuv's pool, on the JS thread. At most `concurrency` of our tasks are in the pool at once, so that
 * fs and dns keep a thread. The count is native and process-wide. A thread that finds no slot waits, FIFO, for one of
 * its own tasks to end; a thread without a running task starts one regardless. So no thread has to wake another. Every
 * asynchronous function runs its tasks here.
 */

import { availableParallelism } from 'node:os'
import { OffloopError } from './errors.ts'
import { copyOptions, readInteger, tableOf, withoutPrototype } from './options.ts'
import {
  ABORTED,
  backend,
  errorOf,
  idleBytes,
  isFailure,
  Lane,
  maxIdleBytes,
  poolStats,
  prewarm,
  releaseIdle,
  releaseSlot,
  reserveSlot,
  setConcurrency,
  setMaxIdleBytes,
  Stop,
  type Failure,
} from './native.ts'
import { Queue, type Queued } from './queue.ts'
import { onAbort } from './abort.ts'
import { onIdle, releaseIdleFor, releaseWhenIdle } from './idle.ts'
import { resultStats } from './results.ts'

const MAX_THREADS = 1024
const KEPT_WAITS = 1024
const KEYS = tableOf({ concurrency: true, maxIdleBytes: true, prewarmBytes: true })

/**
 * Configures the pool. At most `concurrency` tasks of ours are in libuv's pool at once, so that fs and dns keep a
 * thread; tasks that touch files hold at most half of them (one at least). A thread that finds none free waits for one
 * of its own; a thread that has none running starts one regardless, so the bound is concurrency + threads − 1. @default
 * max(1, min(UV_THREADPOOL_SIZE − 1, availableParallelism()))
 */
export function configure(options: {
  readonly concurrency?: number | undefined
  /** Most idle memory that is kept for reuse: native blocks, tapes, and results that were given back. @default 128 MiB */
  readonly maxIdleBytes?: number | undefined
  /** Makes this much recycled memory ready now, off the JS thread, so that the first large calls find it warm. */
  readonly prewarmBytes?: number | undefined
}): void {
  const own = copyOptions(options, KEYS)
  const concurrency = readInteger('options.concurrency', own.concurrency, 1, MAX_THREADS)
  const maxIdle = readInteger('options.maxIdleBytes', own.maxIdleBytes, 0, Number.MAX_SAFE_INTEGER)
  const warm = readInteger('options.prewarmBytes', own.prewarmBytes, 0, maxIdle ?? maxIdleBytes())
  if (maxIdle !== undefined) {
    setMaxIdleBytes(maxIdle)
    if (maxIdle < idleBytes()) releaseIdleFor(0)
  }
  if (warm !== undefined) void makeWarm(warm)
  if (concurrency !== undefined) {
    setConcurrency(concurrency, false)
    startWaiting()
  }
}

/** Returns counts. They are process-wide, except `queued`, `waitMs` and `results`, which are this
 * thread's. */
export function stats(): {
  readonly backend: 'native' | 'wasm'
  readonly concurrency: number
  readonly running: number
  readonly queued: number
  readonly completed: number
  readonly idleBytes: number
  readonly waitMs: { readonly p50: number; readonly p99: number; readonly max: number }
  /** ArrayBuffers of 64 KiB or more for results: new ones, reused ones, and those that were given back. */
  readonly results: {
    readonly made: number
    readonly madeBytes: number
    readonly reused: number
    readonly returned: number
  }
} {
  const { concurrency, running, completed } = poolStats()
  const queued = waiting.memory.size + waiting.files.size
  const [waitMs, results] = [summarizeWaits(), resultStats()]
  return { backend, concurrency, running, queued, completed, idleBytes: idleBytes(), waitMs, results }
}

/**
 * Starts a task of the addon. A slot is reserved when it is called; the task claims it in the same turn of the loop.
 */
export type Launch<T> = (stop: Stop | undefined) => Promise<T | Failure>

export interface RunOptions {
  readonly signal?: AbortSignal | undefined
  /** Resource that the task works on. @default 'memory' */
  readonly lane?: 'memory' | 'files' | undefined
  /** Whether the task goes before all waiting ones: it continues work already begun. @default false */
  readonly first?: boolean | undefined
}

/** Runs a task when there is a slot for it. Rejects with the signal's reason if the signal stops it. */
export function run<T>(launch: Launch<T>, options: RunOptions = {}): Promise<T | Failure> {
  const { signal, lane = 'memory', first = false } = withoutPrototype(options)
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason)
      return
    }
    const call = new PooledCall(launch, lane, signal, resolve, reject)
    if (first) waiting[lane].unshift(call)
    else waiting[lane].push(call)
    call.watch()
    startFirsts(lane)
  })
}

interface Waiting extends Queued<Waiting> {
  start(): void
}

const waiting = { memory: new Queue<Waiting>(), files: new Queue<Waiting>() }

let isFilesTurn = false

/** Tasks of this thread that were launched and have not reported their end. */
let running = 0

function reserve(lane: 'memory' | 'files'): boolean {
  return reserveSlot(lane === 'files' ? Lane.Files : Lane.Memory, running === 0)
}

/** Starts waiting tasks. Lanes come in the order of their next turn: neither starves the other where there is one slot. */
export function startWaiting(): void {
  isFilesTurn = !isFilesTurn
  startFirsts(isFilesTurn ? 'files' : 'memory')
  startFirsts(isFilesTurn ? 'memory' : 'files')
}

function startFirsts(lane: 'memory' | 'files'): void {
  const queue = waiting[lane]
  for (let call = queue.first; call !== undefined && reserve(lane); call = queue.first) {
    queue.remove(call)
    call.start()
  }
}

class PooledCall<T> implements Waiting {
  before: Waiting | undefined
  after: Waiting | undefined
  readonly #launch: Launch<T>
  readonly #lane: 'memory' | 'files'
  readonly #signal: AbortSignal | undefined
  readonly #stop: Stop | undefined
  #unwatch: (() => void) | undefined
  readonly #resolve: (outcome: T | Failure) => void
  readonly #reject: (reason: unknown) => void
  readonly #since: number = performance.now()
  #launched = false

  constructor(
    launch: Launch<T>,
    lane: 'memory' | 'files',
    signal: AbortSignal | undefined,
    resolve: (outcome: T | Failure) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#launch = launch
    this.#lane = lane
    this.#resolve = resolve
    this.#reject = reject
    if (signal === undefined) return
    this.#signal = signal
    this.#stop = new Stop()
  }

  /** Listens to the signal, once the call stands in its queue: a signal may abort at any moment. */
  watch(): void {
    if (this.#signal !== undefined) this.#unwatch = onAbort(this.#signal, () => this.#abort())
  }

  /** Launches the task. A slot is reserved. */
  start(): void {
    this.#launched = true
    running += 1
    keepWait(performance.now() - this.#since)
    let work: Promise<T | Failure>
    try {
      work = this.#launch(this.#stop)
    } catch (error) {
      releaseSlot()
      work = Promise.reject(error)
    }
    work.then(
      (outcome) => this.#end(outcome),
      (error: unknown) => this.#fail(error),
    )
  }

  #end(outcome: T | Failure): void {
    if (this.#signal !== undefined && isAborted(outcome)) this.#reject(this.#signal.reason)
    else this.#resolve(outcome)
    this.#leave()
  }

  #fail(error: unknown): void {
    if (error instanceof OffloopError) this.#reject(error)
    else this.#reject(new OffloopError('ERR_OFFLOOP_INTERNAL', 'a task could not be launched', { cause: error }))
    this.#leave()
  }

  #leave(): void {
    running -= 1
    startWaiting()
    if (running === 0 && idleBytes() !== 0) releaseWhenIdle()
    this.#unwatch?.()
  }

  /** Stops the call. One that has not begun rejects now. One that has begun ends when its task looks at the flag. */
  #abort(): void {
    this.#unwatch?.()
    if (!this.#launched) waiting[this.#lane].remove(this)
    else if (this.#stop?.request() !== true) return
    this.#reject(this.#signal?.reason)
  }
}

/** Returns whether a task has found its flag raised. */
export function isAborted(outcome: unknown): boolean {
  return isFailure(outcome) && outcome.code === ABORTED
}

/** Milliseconds that the latest calls waited for their slots, in a ring. */
const waits: number[] = []
let waitCount = 0

function keepWait(milliseconds: number): void {
  waits[waitCount % KEPT_WAITS] = milliseconds
  waitCount += 1
}

function summarizeWaits(): { p50: number; p99: number; max: number } {
  const sorted = waits.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? 0
  return { p50: at(0.5), p99: at(0.99), max: at(1) }
}

async function makeWarm(bytes: number): Promise<void> {
  const outcome = await run(() => prewarm(bytes))
  if (typeof outcome === 'object') process.emitWarning(errorOf(outcome))
}

onIdle((idleMs) => {
  // A task: returning 32 MB to the system takes a millisecond.
  if (idleBytes() !== 0) void run(() => releaseIdle(idleMs))
})

/** Reads UV_THREADPOOL_SIZE as libuv does. */
function threadsOfPool(): number {
  const { UV_THREADPOOL_SIZE: text } = process.env
  if (text === undefined) return 4
  const size = Number.parseInt(text, 10) || 1
  return size < 0 ? MAX_THREADS : Math.min(size, MAX_THREADS)
}

setConcurrency(Math.max(1, Math.min(threadsOfPool() - 1, availableParallelism())), true)
