/**
 * Promises that know whether anybody has asked for what becomes of them. `await`, `Promise.all`, `catch` and the like all call
 * `then` of a promise whose class is not Promise itself, and so does an async function that returns one: a flag there tells.
 * Rejected: `unhandledRejection`, which is the process's and ends it; and reporting what is collected, which comes late or never.
 */
export class Outcome<T> {
  readonly promise: Watched<T>
  #resolve: (value: T) => void = ignore
  #reject: (error: unknown) => void = ignore

  constructor() {
    this.promise = new Watched<T>((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.promise.quieten()
  }

  resolve(value: T): void {
    this.#resolve(value)
  }

  /** True if nobody has asked yet. */
  reject(error: unknown): boolean {
    this.#reject(error)
    return !this.promise.isAwaited
  }
}

/** Says so when somebody asks for the first time. */
export class Watched<T> extends Promise<T> {
  /** What is made of it is the caller's own. */
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

  /** Makes it no unhandled rejection, without being asked for. */
  quieten(): void {
    void super.then(undefined, ignore)
  }

  // It is a promise.
  // oxlint-disable-next-line unicorn/no-thenable
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
