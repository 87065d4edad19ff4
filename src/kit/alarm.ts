/** Decides when a loop monitor warns. Runs on the JS thread, with every sample; `monitorLoop` calls it. */

import { between, type SampleWindow } from './window.ts'

/** Warns at once when a sample or a percentile exceeds its threshold, then not for a window of samples. */
export class Alarm {
  readonly #window: SampleWindow
  readonly #limits: readonly Limit[]
  readonly #max: number
  /** Number of samples before the next warning is allowed. */
  #quiet = 0

  constructor(
    window: SampleWindow,
    { p90, p99, max }: { readonly p90: number; readonly p99: number; readonly max: number },
  ) {
    this.#window = window
    this.#limits = [new Limit(window, 0.9, p90), new Limit(window, 0.99, p99)]
    this.#max = max
  }

  /** Notes a sample that the window added and one that left it. Returns whether to warn. */
  isDue(added: number, left: number | undefined): boolean {
    let isExceeded = this.#max < added
    for (const limit of this.#limits) {
      limit.note(added, left)
      if (!isExceeded && this.#quiet <= 1) isExceeded = limit.isExceeded
    }
    this.#quiet = Math.max(0, this.#quiet - 1)
    if (!isExceeded || this.#quiet !== 0) return false
    this.#quiet = this.#window.size
    return true
  }

  clear(): void {
    this.#quiet = 0
    for (const limit of this.#limits) limit.clear()
  }
}

/** Compares a percentile with a limit by counting the samples above it, which needs no sorting. */
export class Limit {
  readonly #window: SampleWindow
  readonly #share: number
  readonly #most: number
  /** Number of samples below which a single one would decide. */
  readonly #least: number
  #above = 0

  constructor(window: SampleWindow, share: number, most: number) {
    this.#window = window
    this.#share = share
    this.#most = most
    this.#least = Math.min(window.size, Math.round(1 / (1 - share)) + 1)
  }

  /** Notes a sample that the window added and one that left it. */
  note(added: number, left: number | undefined): void {
    if (this.#most < added) this.#above += 1
    if (left !== undefined && this.#most < left) this.#above -= 1
  }

  clear(): void {
    this.#above = 0
  }

  get isExceeded(): boolean {
    const { count } = this.#window
    if (count < this.#least || this.#above === 0) return false
    const place = this.#share * (count - 1)
    // The percentile lies between two neighbours in ascending order. This many samples follow the lower one.
    const behind = count - 1 - Math.floor(place)
    if (this.#above !== behind) return behind < this.#above
    return this.#most < this.#interpolated(place - Math.floor(place))
  }

  /** Returns the percentile between the largest sample up to the limit and the smallest above it. */
  #interpolated(part: number): number {
    let low = 0
    let high = Infinity
    for (const sample of this.#window.samples) {
      if (this.#most < sample) high = Math.min(high, sample)
      else low = Math.max(low, sample)
    }
    return between(low, high, part)
  }
}
