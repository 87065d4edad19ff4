/** One listener per signal, however many calls wait for it; none is left when they have settled. */

class Watch {
  readonly #signal: AbortSignal
  readonly #callbacks = new Set<() => void>()

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  add(callback: () => void): void {
    if (this.#callbacks.size === 0) this.#signal.addEventListener('abort', this.#fire)
    this.#callbacks.add(callback)
  }

  remove(callback: () => void): void {
    if (!this.#callbacks.delete(callback) || this.#callbacks.size !== 0) return
    this.#signal.removeEventListener('abort', this.#fire)
  }

  readonly #fire = (): void => {
    for (const callback of this.#callbacks) callback()
  }
}

const watches = new WeakMap<AbortSignal, Watch>()

/** Calls back when the signal aborts, until the function it returns is called. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let watch = watches.get(signal)
  if (watch === undefined) {
    watch = new Watch(signal)
    watches.set(signal, watch)
  }
  const added = watch
  added.add(callback)
  return () => added.remove(callback)
}
