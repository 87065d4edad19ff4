/** Timers that keep the process alive only while somebody waits for what they lead to. */

import { clearTimeout, setTimeout } from 'node:timers'

export class Timers {
  readonly #running = new Set<NodeJS.Timeout>()
  #holds = 0

  /** Calls back once, unless the function it returns is called before. */
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

  /** From now on they keep the process alive, until as many calls of `release` have come. */
  hold(): void {
    this.#holds += 1
    if (this.#holds === 1) for (const timer of this.#running) timer.ref()
  }

  release(): void {
    this.#holds -= 1
    if (this.#holds === 0) for (const timer of this.#running) timer.unref()
  }
}
