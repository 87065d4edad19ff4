/** Guesses the length of results, so that a task can print into their memory at once. Runs on the JS thread; `encoder.ts` calls it. */

import { leastOf, mostOf, truncate } from '../runtime/intrinsics.ts'
import { SLACK } from '../capture/segment.ts'

// Taken on import.
const { Float64Array: Ratios } = globalThis

/**
 * Guesses the length of results of one kind: the tape's estimate, times the ratio of actual to estimated length of the
 * last results.
 */
export class SizeGuess {
  /** Actual ÷ estimated length of the last results; 0 where there was none. */
  readonly #ratios = new Ratios(REMEMBERED)
  #next = 0

  /** `first`, if given, is the ratio that is expected before there was a result. */
  constructor(first = 0) {
    this.#ratios[0] = first
  }

  /**
   * Returns how much memory to make. 0 means that the last results differ too much: the task prints to recycled memory,
   * and a second task copies.
   */
  predict(usual: number): number {
    if (usual < SMALL_RESULT) return usual * MOST_GROWTH + SLACK
    let least = Infinity
    let most = 0
    for (let index = 0; index < REMEMBERED; index += 1) {
      const ratio = this.#ratios[index] ?? 0
      if (ratio === 0) continue
      least = leastOf(least, ratio)
      most = mostOf(most, ratio)
    }
    if (most === 0 || MOST_GROWTH < most || least * MOST_SPREAD < most) return 0
    return truncate(usual * (most + MARGIN)) + SLACK
  }

  learn(usual: number, size: number): void {
    if (usual < SMALL_RESULT) return
    this.#ratios[this.#next] = size / usual
    this.#next = (this.#next + 1) % REMEMBERED
  }
}

/** Predictor of the sizes of results of one kind. It learns from each. */
export type Sizes = Pick<SizeGuess, 'predict' | 'learn'>

/** Sizes of digests, which are always 64 bytes, and of lengths in digits, which are shorter. */
export const DIGESTS: Sizes = { predict: () => 64, learn: () => undefined }

/** Sizes of results that are known: their segments are printed. */
export const EXACT: Pick<Sizes, 'learn'> = { learn: () => undefined }

/** Estimated length below which memory is never far too large. */
const SMALL_RESULT = 16 * 1024
/** Results that are remembered. */
const REMEMBERED = 8
/** Most memory of a result, as a multiple of the tape's estimate. */
const MOST_GROWTH = 2
/** Most spread of the last ratios. With a wider one, the memory of the shortest result would be too large. */
const MOST_SPREAD = 1.4
const MARGIN = 0.02
