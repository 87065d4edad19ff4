/** Makes results of what was captured: in tasks, and at once on the JS thread. `encoder.ts` calls it. */

import type { CaptureContext } from '../capture/context.ts'
import { checkSize } from '../capture/printable-tape.ts'
import { expectedOf } from '../capture/segment.ts'
import type { SnapshotTape } from '../capture/snapshot-tape.ts'
import { allocate, allocateNow, giveBack, resultOf, type Bytes } from '../runtime/bytes.ts'
import { absolute, lengthOf } from '../runtime/intrinsics.ts'
import {
  encodeTape,
  encodeTapeSync,
  Layout,
  takeOverflow,
  takeOverflowSync,
  unwrap,
  type Lexicon,
  type TapeParts,
} from '../runtime/native.ts'
import { run } from '../runtime/pool.ts'
import type { PrintOptions } from './config.ts'
import { DIGESTS, EXACT, SizeGuess, type Sizes } from './size-guess.ts'

/** Memory for a result. */
export interface ExpectedSize {
  /** Estimate of the tape. */
  readonly usual: number
  /** Bytes of the result. */
  readonly size: number
  /** Bytes of recycled memory. */
  readonly block: number
  /** Guesses of results of this kind, which learn from this one. */
  readonly sizes: Pick<Sizes, 'learn'>
}

/** A captured value, for a task. */
export interface Printable {
  readonly parts: TapeParts
  readonly lexicon: Lexicon
  readonly expected: ExpectedSize
}

export class ResultPrinter {
  readonly #narrowSizes = new SizeGuess(1)
  readonly #wideSizes = new SizeGuess()
  readonly #jsonSizes = new SizeGuess()
  readonly #spacedSizes = new SizeGuess()
  readonly #msgpackSizes = new SizeGuess()

  /** Guesses the size of a result from the estimate of its tape. */
  guess(usual: number, printOptions: PrintOptions): ExpectedSize {
    return guessFrom(usual, this.#sizesOf(printOptions))
  }

  /** Guesses the size of a text of JSON.stringify in UTF-8. Most texts of one-byte characters are ASCII. */
  guessOfText({ length }: string, isWide: boolean, printOptions: PrintOptions): ExpectedSize {
    const isCopied = printOptions.gap === undefined && (printOptions.layout & ~Layout.Newline) === 0
    if (!isCopied) return this.guess(length, printOptions)
    return guessFrom(length, isWide ? this.#wideSizes : this.#narrowSizes)
  }

  /** Prints in a task. */
  async print(printable: Printable, printOptions: PrintOptions, signal: AbortSignal | undefined): Promise<Bytes> {
    const { parts, lexicon, expected } = printable
    const out = allocate(expected.size)
    let written = 0
    try {
      const launch = (stop: Parameters<typeof encodeTape>[5]): ReturnType<typeof encodeTape> =>
        encodeTape(parts, lexicon, printOptions, out, expected.block, stop)
      written = unwrap(await run(launch, { signal }))
    } catch (error) {
      giveBack(out)
      throw error
    }
    const size = learnSize(expected, written)
    if (0 <= written) return withinBound(resultOf(out, size), printOptions)
    giveBack(out)
    return withinBound(await takeOverflowing(parts, size, signal), printOptions)
  }

  /** Prints on the JS thread. */
  printNow({ parts, lexicon, expected }: Printable, printOptions: PrintOptions): Bytes {
    const out = allocateNow(expected.size)
    const written = unwrap(encodeTapeSync(parts, lexicon, printOptions, out, expected.block))
    const size = learnSize(expected, written)
    if (0 <= written) return withinBound(resultOf(out, size), printOptions)
    giveBack(out)
    const whole = allocateNow(size)
    unwrap(takeOverflowSync(parts, whole))
    return withinBound(whole, printOptions)
  }

  #sizesOf({ layout, gap }: PrintOptions): Sizes {
    if ((layout & (Layout.Digest | Layout.Size)) !== 0) return DIGESTS
    if (isPacked(layout)) return this.#msgpackSizes
    return gap === undefined ? this.#jsonSizes : this.#spacedSizes
  }
}

function guessFrom(usual: number, sizes: Sizes): ExpectedSize {
  return { usual, size: sizes.predict(usual), block: expectedOf(usual), sizes }
}

/** Returns the size of a result that is known. */
export function exactly(size: number): ExpectedSize {
  return { usual: size, size, block: size, sizes: EXACT }
}

/** Remembers the size of a result, and returns it. It is negative where the result did not fit. */
function learnSize({ usual, sizes }: ExpectedSize, written: number): number {
  const size = absolute(written)
  sizes.learn(usual, size)
  return size
}

/** Returns a result that is not larger than `maxBytes`; gives the memory of a larger one back. */
export function withinBound(bytes: Bytes, { maxBytes }: Pick<PrintOptions, 'maxBytes'>): Bytes {
  if (maxBytes < lengthOf(bytes)) giveBack(bytes)
  checkSize(lengthOf(bytes), maxBytes)
  return bytes
}

/** Estimated length of the result. */
export function usualOf(captured: CaptureContext | SnapshotTape, { layout }: PrintOptions): number {
  return isPacked(layout) ? captured.usualPackedSize : captured.usualSize
}

function isPacked(layout: number): boolean {
  return (layout & Layout.Msgpack) !== 0
}

/** Copies a result that a task left in recycled memory. */
async function takeOverflowing(parts: TapeParts, size: number, signal: AbortSignal | undefined): Promise<Bytes> {
  const whole = allocate(size)
  try {
    unwrap(await run((stop) => takeOverflow(parts, whole, stop), { signal, first: true }))
    return whole
  } catch (error) {
    giveBack(whole)
    throw error
  }
}
