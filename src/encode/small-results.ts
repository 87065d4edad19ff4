/** Memory that small results share, on the JS thread. `encoder.ts` prints small tapes into it. */

import type { CaptureContext } from '../capture/context.ts'
import type { Bytes } from '../runtime/bytes.ts'
import { bufferFrom, partOf, zeros } from '../runtime/intrinsics.ts'
import { SmallOutput } from '../runtime/native.ts'

/** Size of the memory that small results share. */
export const SLAB_SIZE: number = 64 * 1024

/** Memory that small results share, like Node's pool, but zeroed. */
export class SmallResults {
  readonly native: SmallOutput = new SmallOutput()
  #memory = bufferFrom(zeros(0).buffer)
  #offset = SLAB_SIZE

  /** Prints a small tape. Returns undefined if it does not fit after all. */
  print(tape: CaptureContext, expected: number): Bytes | undefined {
    // Whoever has a result can transfer the memory away. It then has no first byte.
    if (SLAB_SIZE - this.#offset < expected || this.#memory[0] === undefined) this.#replace()
    let size = tape.encodeInto(this.#offset)
    if (size < 0) {
      this.#replace()
      size = tape.encodeInto(0)
      if (size < 0) return undefined
    }
    return this.#take(size)
  }

  #take(size: number): Bytes {
    const start = this.#offset
    this.#offset += (size + 7) & ~7
    return partOf(this.#memory, start, start + size)
  }

  #replace(): void {
    const memory = zeros(SLAB_SIZE)
    this.#memory = bufferFrom(memory.buffer)
    this.#offset = 0
    this.native.replace(memory)
  }
}
