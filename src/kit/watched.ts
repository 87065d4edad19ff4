/** Promises that know whether anybody awaits them. Live on the JS thread; the defer queue makes them. */

import { types } from 'node:util'
import { apply } from '../runtime/intrinsics.ts'

// oxlint-disable-next-line typescript/unbound-method -- it is called with a promise as its `this`
const { then: promiseThen } = Promise.prototype

/**
 * Pair of a watched promise and the functions that settle it.
 *
 * `await`, `Promise.all`, `catch` and an async function that returns the promise all call its `then`, since its class is not Promise
 * itself; `then` sets a flag. Rejected alternatives: the event `unhandledRejection`, which ends the process; reporting promises
 * when they are collected, which comes late or never.
 */
export class WatchedDeferred<T> {
  readonly promise: WatchedPromise<T>
  #resolve: (value: T) => void = ignore
  #reject: (error: unknown) => void = ignore

  constructor() {
    this.promise = new WatchedPromise<T>((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.promise.quieten()
  }

  resolve(value: T): void {
    this.#resolve(value)
  }

  /** Rejects the promise. Returns true if nobody awaits it yet. */
  reject(error: unknown): boolean {
    this.#reject(error)
    return !this.promise.isAwaited
  }
}

/**
 * Marks rejections of these promises as handled. It calls `Promise.prototype.then`, never their own `then`: a `WatchedPromise`
 * still reports its failure, and a lazy thenable does not start.
 */
export function quietenAll(promises: readonly unknown[]): void {
  for (const promise of promises) if (types.isPromise(promise)) apply(promiseThen, promise, [undefined, ignore])
}

/** A promise that calls `onAwaited` when it is awaited for the first time. */
export class WatchedPromise<T> extends Promise<T> {
  /** Promises derived from it are plain ones. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  #isAwaited = false
  readonly #onAwaited: () => void

  constructor(start: ConstructorParameters<typeof Promise<T>>[0], onAwaited: () => void = ignore) {
    super(start)
    this.#onAwaited = onAwaited
  }

  get isAwaited(): boolean {
    return this.#isAwaited
  }

  /** Marks a rejection as handled without counting as awaited. */
  quieten(): void {
    void super.then(undefined, ignore)
  }

  // oxlint-disable-next-line unicorn/no-thenable -- it is a promise
  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    if (!this.#isAwaited) this.#onAwaited()
    this.#isAwaited = true
    return super.then(onFulfilled, onRejected)
  }
}

function ignore(): void {}
