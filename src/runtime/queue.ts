/**
 * A queue, FIFO, of which any item can leave at once. Used on the JS thread by the pool, batchers and deferred work.
 *
 */

/** An item, which knows its neighbours in the queue. */
export interface Queued<T> {
  before: T | undefined
  after: T | undefined
}

/** A doubly linked queue. */
export class Queue<T extends Queued<T>> {
  #first: T | undefined
  #last: T | undefined
  #size = 0

  get first(): T | undefined {
    return this.#first
  }

  get last(): T | undefined {
    return this.#last
  }

  get size(): number {
    return this.#size
  }

  push(item: T): void {
    item.before = this.#last
    if (this.#last === undefined) this.#first = item
    else this.#last.after = item
    this.#last = item
    this.#size += 1
  }

  unshift(item: T): void {
    item.after = this.#first
    if (this.#first === undefined) this.#last = item
    else this.#first.before = item
    this.#first = item
    this.#size += 1
  }

  /** Removes an item, which must be in this queue. */
  remove(item: T): void {
    const { before, after } = item
    if (before === undefined) this.#first = after
    else before.after = after
    if (after === undefined) this.#last = before
    else after.before = before
    item.before = undefined
    item.after = undefined
    this.#size -= 1
  }
}
