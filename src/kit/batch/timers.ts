/** Timers that keep the process alive only while a flush waits for them. Run on the JS thread; the batcher and its sender use them. */

import { clearTimeout, setTimeout } from 'node:timers'

export class Timers {
  readonly #running = new Set<NodeJS.Timeout>()
  #holds = 0

  /** Calls `callback` once after `milliseconds`. Returns a function that cancels that. */
  start(milliseconds: number, callback: () => void): () => void {
    const timer = setTimeout(() => {
      this.#running.delete(timer)
      callback()
    }, milliseconds)
    if (this.#holds === 0) timer.unref()
    this.#running.add(timer)
    return () => {
      this.#running.delete(timer)
      clearTimeout(timer)
    }
  }

  wait(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      this.start(milliseconds, resolve)
    })
  }

  /** Makes the timers keep the process alive, until `release` was called as often. */
  hold(): void {
    this.#holds += 1
    if (this.#holds === 1) for (const timer of this.#running) timer.ref()
  }

  release(): void {
    this.#holds -= 1
    if (this.#holds === 0) for (const timer of this.#running) timer.unref()
  }
}
