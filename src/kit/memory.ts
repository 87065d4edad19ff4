/** Memory that is free, but still the process's. */

import { clearInterval, setInterval } from 'node:timers'
import { trimHeap, unwrap } from '../native.ts'
import { checkKeys, MAX_DELAY_MS, readInteger, tableOf } from '../options.ts'
import { releaseAll, run } from '../pool.ts'
import { warn } from './tell.ts'

const KEYS = tableOf({ everyMs: true })
const EVERY_MS = 10_000
/** Less is not worth a walk over the heap. */
const LEAST_GAIN = 4 << 20

/**
 * Returns freed heap pages and our idle memory to the system, on a pool thread. `trimmed` is false where the platform has no such call
 * (all but glibc); it never throws for that.
 *
 * Takes some tens of milliseconds of that thread after 200 MB were freed. glibc locks the part of its heap that it works on, and
 * whoever allocates there waits, the calling thread among them: trim often, or when there is little else to do. What V8
 * has not collected yet is not free. The next large calls of offloop pay for page faults, as their memory is no longer warm.
 */
export async function trimMemory(): Promise<{
  readonly trimmed: boolean
  readonly rssBefore: number
  readonly rssAfter: number
}> {
  const rssBefore = process.memoryUsage.rss()
  releaseAll()
  const trimmed = unwrap(await run(() => trimHeap()))
  return { trimmed, rssBefore, rssAfter: process.memoryUsage.rss() }
}

/**
 * Does so every now and then, only when memory was let go since the last time. Keeps nothing alive.
 *
 * Looks every `everyMs` at how much resident memory is neither V8's heap nor what its objects hold outside of it, which takes
 * some 50 µs, and trims when that has grown by 4 MiB. Memory of other threads and of other addons counts as such when it grows.
 */
export function keepTrimmed(
  options: { /** @default 10 000 */ readonly everyMs?: number | undefined } = {},
): Disposable {
  checkKeys(options, KEYS)
  return new Keeper(readInteger('options.everyMs', options.everyMs, 1, MAX_DELAY_MS) ?? EVERY_MS)
}

class Keeper implements Disposable {
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

/** Whether memory was let go since it was marked: resident, but held by no object of this thread. */
export class FreeMemory {
  #marked: number = unowned()

  get hasGrown(): boolean {
    return this.#marked + LEAST_GAIN <= unowned()
  }

  /** What there is now no trim gives back. */
  mark(): void {
    this.#marked = unowned()
  }
}

function unowned(): number {
  const { rss, heapTotal, external } = process.memoryUsage()
  return rss - heapTotal - external
}
