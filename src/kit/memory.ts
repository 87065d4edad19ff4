/** Returns free memory to the system. The JS thread measures it, a task returns it; `offloop/kit` exports it. */

import { clearInterval, setInterval } from 'node:timers'
import { trimHeap, unwrap } from '../runtime/native.ts'
import { copyOptions, MAX_DELAY_MS, readInteger, tableOf } from '../runtime/options.ts'
import { releaseIdleFor } from '../runtime/idle.ts'
import { run } from '../runtime/pool.ts'
import { warn } from './warn.ts'

const KEYS = tableOf({ everyMs: true })
const EVERY_MS = 10_000
/** Bytes of growth below which a walk over the heap is not worth its time. */
const LEAST_GAIN = 4 << 20

/**
 * Returns freed heap pages and our idle memory to the system, on a pool thread. `trimmed` is false where the platform has no such call
 * (all but glibc); that is not an error.
 *
 * After 200 MB were freed it takes some tens of milliseconds of the pool thread. glibc locks the part of its heap that it works on.
 * Threads that allocate there wait, the calling thread among them: trim often, or when there is little else to do. Memory that V8
 * has not collected yet is not free. The next large calls of offloop pay for page faults, as their memory is no longer warm.
 */
export async function trimMemory(): Promise<{
  readonly trimmed: boolean
  readonly rssBefore: number
  readonly rssAfter: number
}> {
  const rssBefore = process.memoryUsage.rss()
  releaseIdleFor(0)
  const trimmed = unwrap(await run(() => trimHeap()))
  return { trimmed, rssBefore, rssAfter: process.memoryUsage.rss() }
}

/**
 * Trims from time to time, only if memory was freed since the last time. Does not keep the process alive.
 *
 * Every `everyMs` it measures the resident memory that belongs neither to V8's heap nor to objects outside of it, which takes
 * some 50 µs. It trims when that has grown by 4 MiB. Memory of other threads and addons counts, too.
 */
export function keepTrimmed(
  options: { /** @default 10 000 */ readonly everyMs?: number | undefined } = {},
): Disposable {
  const { everyMs } = copyOptions(options, KEYS)
  return new PeriodicTrimmer(readInteger('options.everyMs', everyMs, 1, MAX_DELAY_MS) ?? EVERY_MS)
}

class PeriodicTrimmer implements Disposable {
  readonly #timer: NodeJS.Timeout
  readonly #free: FreeMemory = new FreeMemory()
  #isTrimming = false

  constructor(everyMs: number) {
    this.#timer = setInterval(() => void this.#look(), everyMs)
    this.#timer.unref()
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  async #look(): Promise<void> {
    if (this.#isTrimming || !this.#free.hasGrown) return
    this.#isTrimming = true
    try {
      await trimMemory()
    } catch (error) {
      warn(error)
    }
    this.#free.mark()
    this.#isTrimming = false
  }
}

/** Estimates freed memory: resident memory that no object of this thread holds, compared with the last mark. */
export class FreeMemory {
  #marked: number = unowned()

  get hasGrown(): boolean {
    return this.#marked + LEAST_GAIN <= unowned()
  }

  /** Marks the present amount: no trim returns it to the system. */
  mark(): void {
    this.#marked = unowned()
  }
}

function unowned(): number {
  const { rss, heapTotal, external } = process.memoryUsage()
  return rss - heapTotal - external
}
