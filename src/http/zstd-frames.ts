/**
 * Knows where zstd data may end, on the JS thread: Node 22 decodes data that is cut off without an error. `decoder.ts` asks.
 * Frames and blocks are those of RFC 8878; it reads their headers and skips the rest.
 */

/** Sizes in bytes, by the bits of a frame's descriptor. */
const DICTIONARY_SIZES = [0, 1, 2, 4]
const CONTENT_SIZES = [0, 2, 4, 8]

/** Asks for bytes: so many to read, or, below zero, to skip. */
type Wish = number

/** Follows the frames of zstd data that comes in chunks. */
export class ZstdFrames {
  /** Whether the data may end here. */
  isWhole = true
  readonly #steps = this.#walk()
  readonly #read: number[] = []
  #wish: Wish

  constructor() {
    this.#wish = this.#steps.next([]).value
  }

  add(chunk: Uint8Array): void {
    let at = 0
    while (at < chunk.length) {
      this.isWhole = false
      at += this.#wish < 0 ? this.#skip(chunk.length - at) : this.#take(chunk[at] ?? 0)
      if (this.#wish === 0) this.#wish = this.#steps.next(this.#read.splice(0)).value
    }
  }

  #skip(available: number): number {
    const size = Math.min(-this.#wish, available)
    this.#wish += size
    return size
  }

  #take(byte: number): number {
    this.#read.push(byte)
    this.#wish -= 1
    return 1
  }

  *#walk(): Generator<Wish, never, number[]> {
    for (;;) {
      const magic = yield 4
      const isSkippable = ((magic[0] ?? 0) & 0xf0) === 0x50 && magic[1] === 0x2a
      if (isSkippable) yield* skipped(numberOf(yield 4))
      else yield* this.#walkFrame()
      this.isWhole = true
    }
  }

  *#walkFrame(): Generator<Wish, void, number[]> {
    const [descriptor = 0] = yield 1
    const isSingle = (descriptor & 0x20) !== 0
    const flag = descriptor >> 6
    const contentSize = flag === 0 && isSingle ? 1 : (CONTENT_SIZES[flag] ?? 0)
    yield* skipped((isSingle ? 0 : 1) + (DICTIONARY_SIZES[descriptor & 3] ?? 0) + contentSize)
    let header: number
    do {
      header = numberOf(yield 3)
      // A block of one repeated byte.
      const isRepeated = ((header >> 1) & 3) === 1
      yield* skipped(isRepeated ? 1 : header >> 3)
    } while ((header & 1) === 0)
    if ((descriptor & 4) !== 0) yield* skipped(4)
  }
}

function* skipped(size: number): Generator<Wish, void, number[]> {
  if (size !== 0) yield -size
}

function numberOf(bytes: readonly number[]): number {
  return bytes.reduceRight((value, byte) => value * 256 + byte, 0)
}
