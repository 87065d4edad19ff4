/**
 * A tape and the ways in which it is printed: a small one at once, a large one segment by segment, others at the end. Runs
 * on the JS thread; tasks print.
 */

import { OffloopError } from '../runtime/errors.ts'
import { TapeParts, type Lexicon, type SmallOutput } from '../runtime/native.ts'
import {
  addSegment,
  usualPackedSizeOf,
  usualSizeOf,
  wordsOf,
  type Segment,
  type SegmentRoom,
  type TapeRooms,
} from './segment.ts'
import { SegmentPrinter, type EarlyPrint } from './segment-printer.ts'
import { AT_ONCE_NS, SmallEncoder } from './small-encoder.ts'
import { Tape } from './writer.ts'

/** Most times by which an estimate exceeds the bytes: doubles that are small integers, and keys of no length. */
const MOST_ESTIMATE = 16

export class PrintableTape extends Tape {
  /** How full segments are printed while the capture goes on; undefined if all are printed at the end. */
  early: EarlyPrint | undefined
  /** Most bytes of the result. A tape that cannot become less throws. */
  maxBytes: number = Infinity
  readonly #lexicon: Lexicon
  readonly #smallEncoder: SmallEncoder
  #printer: SegmentPrinter | undefined

  constructor(lexicon: Lexicon, slab: SmallOutput, rooms: TapeRooms) {
    super(rooms)
    this.#lexicon = lexicon
    this.#smallEncoder = new SmallEncoder(this.small, lexicon, slab)
  }

  /** Prints full segments early, if that is wanted. */
  protected override handOver(isSmall: boolean): void {
    if (this.maxBytes < Infinity) checkSize(this.leastSize, this.maxBytes)
    if (this.early === undefined || isSmall) return
    this.parts ??= new TapeParts()
    this.#printer ??= new SegmentPrinter(this.parts, this.#lexicon, this.places, this.early)
    this.#print(this.#printer, false)
  }

  #print(printer: SegmentPrinter, all: boolean): void {
    this.moveSegments(all, (sealed) => printer.add(sealed, sealed.segment === this.small))
    printer.queueAll()
  }

  protected override takeBack(room: SegmentRoom): Segment | undefined {
    return this.#printer?.takeBack(room)
  }

  /** Prints full segments; undefined where none was printed early. */
  get printer(): SegmentPrinter | undefined {
    return this.#printer
  }

  /** Makes the tape empty. No task may read it. */
  override reset(): void {
    this.early = undefined
    this.maxBytes = Infinity
    this.#printer?.release()
    this.#printer = undefined
    super.reset()
  }

  /** Whether everything is in the first segment. */
  get isSmall(): boolean {
    return this.segment === this.small && this.longs === 0 && this.parts === undefined
  }

  /** Whether printing takes less time than a task costs the JS thread. */
  get isCheap(): boolean {
    return this.isSmall && this.cost <= AT_ONCE_NS
  }

  /**
   * Writes the JSON of a small tape to the memory of small results, from `offset` on. Returns its length, or a negative
   * number if it does not fit.
   */
  encodeInto(offset: number): number {
    this.flush()
    return this.#smallEncoder.encode(this, offset)
  }

  /** Hands everything over to a task. */
  finish(): TapeParts {
    this.places.copy()
    this.flush()
    const parts = (this.parts ??= new TapeParts())
    if (this.#printer === undefined) this.eachSegment((sealed) => addSegment(parts, sealed))
    else this.#print(this.#printer, true)
    return parts
  }

  /** Estimated bytes of JSON, if nothing is escaped and numbers have usual lengths. */
  get usualSize(): number {
    return this.sum(this.longSize + (this.#printer?.usualSize ?? 0), usualSizeOf)
  }

  /** Estimated bytes of MessagePack. */
  get usualPackedSize(): number {
    return this.sum(this.longPackedSize, usualPackedSizeOf)
  }

  /** Bytes that are printed, and estimated bytes of the rest. */
  get expectedSize(): number {
    return this.usualSize + (this.#printer?.excess ?? 0)
  }

  /** Least bytes of the result: those that are printed, and a bound of the rest. */
  get leastSize(): number {
    const printed = this.parts?.printedSize ?? 0
    return printed + (this.expectedSize - printed) / MOST_ESTIMATE
  }

  /** Words in all segments. */
  get written(): number {
    return this.sum(this.#printer?.words ?? 0, wordsOf)
  }

  override get hasNothing(): boolean {
    return super.hasNothing && this.#printer === undefined
  }
}

/** Throws where a result of `size` bytes is too large. */
export function checkSize(size: number, maxBytes: number): void {
  if (size <= maxBytes) return
  throw new OffloopError('ERR_OFFLOOP_TOO_LARGE', `the result has more than maxBytes, ${maxBytes}, bytes`)
}
