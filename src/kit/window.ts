/** The latest samples, and what they come to. */

export interface LoopLag {
  readonly count: number
  readonly min: number
  readonly mean: number
  readonly median: number
  readonly p90: number
  readonly p99: number
  readonly max: number
}

/** A ring: adding costs the same however many samples are kept, and makes no garbage. */
export class SampleWindow {
  readonly size: number
  readonly #samples: Float64Array
  #count = 0
  #next = 0

  constructor(size: number) {
    this.size = size
    this.#samples = new Float64Array(size)
  }

  get count(): number {
    return this.#count
  }

  /** Tells which sample left for it. */
  add(sample: number): number | undefined {
    const left = this.#count === this.size ? this.#samples[this.#next] : undefined
    this.#samples[this.#next] = sample
    this.#next = (this.#next + 1) % this.size
    if (left === undefined) this.#count += 1
    return left
  }

  clear(): void {
    this.#count = 0
    this.#next = 0
  }

  /** In whatever order, valid until the next sample. */
  get samples(): Float64Array {
    return this.#samples.subarray(0, this.#count)
  }

  /** Sorts a copy: a millisecond for 10,000 samples. Zeros if there are none. */
  summarize(): LoopLag {
    const sorted = this.samples.toSorted()
    const count = sorted.length
    const at = (index: number): number => sorted[index] ?? 0
    let sum = 0
    for (let index = 0; index < count; index += 1) sum += at(index)
    return {
      count,
      min: at(0),
      mean: count === 0 ? 0 : sum / count,
      median: percentile(at, count, 0.5),
      p90: percentile(at, count, 0.9),
      p99: percentile(at, count, 0.99),
      max: at(count - 1),
    }
  }
}

/** Of `count` samples in ascending order, with linear interpolation between neighbours, as NumPy does it by default. */
function percentile(at: (index: number) => number, count: number, share: number): number {
  const place = share * Math.max(0, count - 1)
  const index = Math.floor(place)
  return between(at(index), at(Math.min(index + 1, count - 1)), place - index)
}

/** From the nearer end, so that rounding leaves neither. */
export function between(low: number, high: number, part: number): number {
  return part < 0.5 ? low + (high - low) * part : high - (high - low) * (1 - part)
}
