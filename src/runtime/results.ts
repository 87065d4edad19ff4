/**
 * The result pool, on the JS thread. V8 counts every new ArrayBuffer and marks the whole heap for each 32–140 MB of them,
 * so the memory of large results is used again once it has come back: taken by a call with `transfer`, or released.
 * `bytes.ts` makes results from it.
 */

import { OffloopError } from './errors.ts'
import {
  allocUnsafeSlow,
  bufferFrom,
  bufferOf,
  clone,
  deleteOf,
  getOf,
  isArrayBuffer,
  isResizable,
  isView,
  now,
  setOf,
  sizeOf,
  spanOf,
} from './intrinsics.ts'
import { onIdle, releaseWhenIdle } from './idle.ts'
import { reportIdle, reportUsed } from './native.ts'
import { Queue, type Queued } from './queue.ts'

/** A byte result. Accepted by fetch, Blob, fs and streams. */
export type Bytes = Buffer<ArrayBuffer>

/** Least size of a result that has an ArrayBuffer to itself, which can be transferred. */
export const OWN_BUFFER: number = 64 * 1024

/** Most bytes of an idle ArrayBuffer for each byte of a result that uses it. */
const MOST_SLACK = 1.4

/** Memory that waits for the next result. Nobody else has a view of it. */
class IdleMemory implements Queued<IdleMemory> {
  before: IdleMemory | undefined
  after: IdleMemory | undefined
  readonly since: number = now()
  readonly buffer: ArrayBuffer
  readonly size: number

  constructor(buffer: ArrayBuffer) {
    this.buffer = buffer
    this.size = sizeOf(buffer)
  }
}

/** Idle memory, in the order in which it came back. */
const idle = new Queue<IdleMemory>()

/** Length of the result in each ArrayBuffer of the pool. Whoever has a view of that length has the whole result. */
const lengths = new WeakMap<ArrayBuffer, number>()

const counts = { made: 0, madeBytes: 0, reused: 0, returned: 0 }

/** Returns counts of ArrayBuffers of 64 KiB or more for results: new ones, reused ones, and those that came back. */
export function resultStats(): { made: number; madeBytes: number; reused: number; returned: number } {
  return { ...counts }
}

/**
 * Makes memory for a result of `OWN_BUFFER` bytes or more. What lies behind it may hold earlier results: whoever fills it
 * clears that.
 */
export function makeResult(size: number): Bytes {
  const buffer = takeIdle(size) ?? makeBuffer(sizeClassOf(size), size)
  setOf(lengths, buffer, size)
  return bufferFrom(buffer, 0, size)
}

function makeBuffer(capacity: number, size: number): ArrayBuffer {
  const { buffer } = makeMemory(capacity, size)
  counts.made += 1
  counts.madeBytes += capacity
  return buffer
}

/** Makes memory that never enters the pool, for a result of `size` bytes or several of one call. */
export function makeMemory(capacity: number, size: number = capacity): Bytes {
  try {
    return allocUnsafeSlow(capacity)
  } catch (cause) {
    throw new OffloopError('ERR_OFFLOOP_TOO_LARGE', `no memory for a result of ${size} bytes`, { cause })
  }
}

/** Notes that `memory`, which nobody else reaches, begins with a result of `length` bytes. */
export function noteResult(memory: Bytes, length: number): void {
  const buffer = bufferOf(memory)
  if (OWN_BUFFER <= length && isArrayBuffer(buffer)) setOf(lengths, buffer, length)
}

/** Rounds up to a quarter of a power of two, so that results of similar sizes share memory. */
function sizeClassOf(size: number): number {
  let step = OWN_BUFFER / 4
  while (step * 8 <= size) step *= 2
  return size + ((step - (size % step)) % step)
}

/** Removes the smallest memory that fits; among equal sizes the one that came back last, which is warm. */
function takeIdle(size: number): ArrayBuffer | undefined {
  const most = size * MOST_SLACK
  let best: IdleMemory | undefined
  for (let memory = idle.last; memory !== undefined; memory = memory.before) {
    if (size <= memory.size && memory.size <= most && (best === undefined || memory.size < best.size)) best = memory
  }
  if (best === undefined) return undefined
  drop(best)
  counts.reused += 1
  return best.buffer
}

function drop(memory: IdleMemory): void {
  idle.remove(memory)
  reportUsed(memory.size)
}

/** Gives memory back to the pool, if it came from there. No task uses it any more, and nobody else has a view of it. */
export function giveBack(memory: Bytes): void {
  const buffer = bufferOf(memory)
  // Memory that is idle has no length: giving it back twice would make two results share it.
  if (!isArrayBuffer(buffer) || !deleteOf(lengths, buffer)) return
  counts.returned += 1
  const returned = new IdleMemory(buffer)
  if (!makeRoom(returned.size, now() - FRESH_MS)) return
  idle.push(returned)
  releaseWhenIdle()
}

/**
 * Milliseconds for which idle memory is not displaced by memory that comes back. A program that needs more than may be
 * idle, step after step, then reuses what fits. If the longest idle always left, nothing would be there when it is needed.
 */
const FRESH_MS = 5000

/**
 * Counts `size` bytes of memory of V8 as idle. Where that is too much, results that have been idle since `latest` leave.
 * Returns false if there is no room.
 */
export function makeRoom(size: number, latest: number = Infinity): boolean {
  while (!reportIdle(size)) {
    const oldest = idle.first
    if (oldest === undefined || latest < oldest.since) return false
    drop(oldest)
  }
  return true
}

/** Leaves memory that has been idle for `idleMs` to V8's collector. */
function dropIdle(idleMs: number): void {
  const latest = now() - idleMs
  for (let oldest = idle.first; oldest !== undefined && oldest.since <= latest; oldest = idle.first) drop(oldest)
}

/** Returns the memory of a view that covers all of it, or that is a whole result, if it could be taken. */
export function takeableOf(view: ArrayBufferView): ArrayBuffer | undefined {
  const { buffer, offset, length } = spanOf(view)
  if (!isArrayBuffer(buffer) || isResizable(buffer) || offset !== 0 || length === 0) return undefined
  return length === sizeOf(buffer) || isWhole(buffer, length) ? buffer : undefined
}

function isWhole(buffer: ArrayBuffer, length: number): boolean {
  return OWN_BUFFER <= length && getOf(lengths, buffer) === length
}

/** Takes memory away from its owner, whose views become empty. Returns undefined for memory that cannot be taken. */
export function takeBuffer(buffer: ArrayBuffer): ArrayBuffer | undefined {
  try {
    return renewed(buffer, clone(buffer, { transfer: [buffer] }))
  } catch {
    // DataCloneError: Node's pool, external memory, a WebAssembly memory, or marked as untransferable.
    return undefined
  }
}

/** Notes that `taken` is the memory that `buffer` was. Returns it. */
export function renewed(buffer: ArrayBuffer, taken: ArrayBuffer): ArrayBuffer {
  const length = getOf(lengths, buffer)
  if (length !== undefined) setOf(lengths, taken, length)
  return taken
}

/** Takes a whole result away from its owner and gives its memory back. Leaves other views alone. */
export function releaseView(view: unknown): void {
  if (!isView(view)) return
  const { buffer, offset, length } = spanOf(view)
  if (!isArrayBuffer(buffer) || offset !== 0 || !isWhole(buffer, length)) return
  const taken = takeBuffer(buffer)
  if (taken !== undefined) giveBack(bufferFrom(taken))
}

onIdle(dropIdle)
