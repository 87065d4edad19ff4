/** Counts the rows of one `appendMany`: written, bad, failed. Lives on the JS thread; logs use it. */

import { Gate } from './gate.ts'
import type { RowWaiter } from './group.ts'

export interface TallyResult {
  readonly written: number
  readonly bad: readonly { readonly index: number; readonly error: unknown }[]
}

export class Tally implements RowWaiter {
  #rows = 0
  #pending = 0
  #written = 0
  readonly #bad: { readonly index: number; readonly error: unknown }[] = []
  #failure: { readonly error: unknown } | undefined
  readonly #end = new Gate()
  #isEnding = false

  /** Counts a row. A row for which `append` throws is bad. */
  add(append: () => void): void {
    const index = this.#rows
    this.#rows += 1
    this.#pending += 1
    try {
      append()
    } catch (error) {
      this.#pending -= 1
      this.#bad.push({ index, error })
    }
  }

  written(): void {
    this.#written += 1
    this.#settle()
  }

  failed(error: unknown): void {
    this.#failure ??= { error }
    this.#settle()
  }

  #settle(): void {
    this.#pending -= 1
    if (this.#pending === 0 && this.#isEnding) this.#end.open()
  }

  /** Resolves when no row is pending. Rejects with the error of the first row that was not written. */
  async end(): Promise<TallyResult> {
    this.#isEnding = true
    if (this.#pending !== 0) await this.#end.opened
    if (this.#failure !== undefined) throw this.#failure.error
    return { written: this.#written, bad: this.#bad }
  }
}
