/**
 * Listens for aborts, on the JS thread: one listener per signal, however many calls wait for it, and none once they
 * have settled. The pool and the streams use it.
 */

class SignalListeners {
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

const listeners = new WeakMap<AbortSignal, SignalListeners>()

/** Calls back when the signal aborts, until the returned function is called. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let all = listeners.get(signal)
  if (all === undefined) {
    all = new SignalListeners(signal)
    listeners.set(signal, all)
  }
  const added = all
  added.add(callback)
  return () => added.remove(callback)
}
