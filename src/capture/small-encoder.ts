/** Prints small tapes at once on the JS thread, into the memory that small results share. The writer calls it. */

import { allocUnsafeSlow, bufferOf } from '../runtime/intrinsics.ts'
import { bindSmallEncoder, type Lexicon, type SmallOutput } from '../runtime/native.ts'
import type { Segment } from './segment.ts'
import type { TapeStreams } from './streams.ts'

/** Nanoseconds below which a tape is printed at once: a task costs the JS thread more. */
export const AT_ONCE_NS = 25_000

/** Words in the header of a small encoder: see `crates/json/src/small.rs`. */
const HEADER_LENGTH = 6

// Taken on import.
const { Int32Array: Words } = globalThis

export class SmallEncoder {
  readonly #header: Int32Array
  readonly #encode: () => void

  /** Binds the encoder to the first segment of a tape. */
  constructor(segment: Segment, lexicon: Lexicon, slab: SmallOutput) {
    const header = allocUnsafeSlow(64)
    this.#header = new Words(bufferOf(header))
    this.#encode = bindSmallEncoder(header, segment.native, lexicon, slab)
  }

  /** Writes the JSON from `offset` on. Returns its length, or a negative number if it does not fit. */
  encode({ w, d, b, r, n }: TapeStreams, offset: number): number {
    const header = this.#header
    header[0] = w
    header[1] = d
    header[2] = b
    header[3] = r
    header[4] = n
    header[5] = offset
    this.#encode()
    return header[HEADER_LENGTH] ?? -1
  }
}
