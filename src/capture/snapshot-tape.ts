/** The tape of a snapshot. It is made on the JS thread; any number of tasks print it. */

import { check, SnapshotParts, TapeParts, type Lexicon } from '../runtime/native.ts'
import type { CaptureContext } from './context.ts'
import { giveBackAll, type TakenMemory } from './places.ts'
import { addSegment, giveIdle, isLarge, sizeOf, type Sealed, type Segment } from './segment.ts'

/** Makes a snapshot: takes large segments that are mostly full, and copies the contents of others. */
export function keepTape(tape: CaptureContext): SnapshotTape {
  const cost = tape.isSmall ? tape.cost : undefined
  tape.flush()
  const parts = (tape.parts ??= new TapeParts())
  let segments: Segment | undefined
  tape.eachSegment((sealed) => {
    segments = keepSegment(parts, sealed, segments)
  })
  return new SnapshotTape(tape, new SnapshotParts(parts), { segments, taken: tape.places.moveTaken(), cost })
}

/** Memory of a snapshot, and the estimated time to print it. */
interface SnapshotMemory {
  readonly segments: Segment | undefined
  readonly taken: TakenMemory | undefined
  readonly cost: number | undefined
}

/** A captured value that any number of tasks can print. */
export class SnapshotTape {
  readonly parts: SnapshotParts
  readonly lexicon: Lexicon
  /** Estimates of the tape: see `Tape`. */
  readonly usualSize: number
  readonly usualPackedSize: number
  /** Estimated nanoseconds to print it; undefined for a large one. */
  readonly cost: number | undefined
  readonly jsonError: unknown
  readonly msgpackError: unknown
  #segments: Segment | undefined
  #taken: TakenMemory | undefined

  constructor(tape: CaptureContext, parts: SnapshotParts, { segments, taken, cost }: SnapshotMemory) {
    this.parts = parts
    this.lexicon = tape.vocabulary.lexicon
    this.usualSize = tape.usualSize
    this.usualPackedSize = tape.usualPackedSize
    this.cost = cost
    this.jsonError = tape.jsonError
    this.msgpackError = tape.msgpackError
    this.#segments = segments
    this.#taken = taken
  }

  /** Gives the memory back. No task may read it any more. */
  release(): void {
    this.parts.clear()
    giveBackAll(this.#taken)
    this.#taken = undefined
    for (let segment = this.#segments; segment !== undefined; segment = this.#segments) {
      this.#segments = segment.below
      segment.isKept = false
      giveIdle(segment)
    }
  }
}

/** Adds a segment to a snapshot. Returns the stack of segments that it keeps. */
function keepSegment(parts: TapeParts, sealed: Sealed, kept: Segment | undefined): Segment | undefined {
  const { segment, words, doubles, bytes, rope, runs } = sealed
  if (isLarge(segment) && sizeOf(segment.room) < 2 * sizeOf(sealed)) {
    addSegment(parts, sealed)
    segment.isKept = true
    segment.below = kept
    return segment
  }
  check(parts.copySegment(segment.native, words, doubles, bytes, rope, runs))
  return kept
}
