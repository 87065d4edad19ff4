/**
 * The tape: the flat form of a value. The walks write it on the JS thread; tasks read it (`crates/json/src/tape.rs`).
 */

import { OffloopError } from '../runtime/errors.ts'
import { OWN_BUFFER, takeableOf } from '../runtime/results.ts'
import { lengthOf, setBytes } from '../runtime/intrinsics.ts'
import { check, TapeParts, type Lexicon, type RawJsonBytes, type SmallOutput } from '../runtime/native.ts'
import {
  BYTES,
  DATE,
  DOUBLE,
  IN_LATIN1,
  IN_LONG,
  IN_ROPE,
  IN_UTF16,
  LATIN1,
  LONG,
  LONG_BYTES,
  MOST_INT,
  NAME,
  RAW,
  ROPE,
  ROW,
  TEXT,
  UTF16,
} from './opcodes.ts'
import { Places } from './places.ts'
import {
  addSegment,
  usualPackedSizeOf,
  usualSizeOf,
  wordsOf,
  type Segment,
  type SegmentRoom,
  type TapeRooms,
} from './segment.ts'
import { AT_ONCE_NS, SmallEncoder } from './small-encoder.ts'
import { SegmentPrinter, type EarlyPrint } from './segment-printer.ts'
import { TapeStreams, type TapeMark } from './streams.ts'
import { LONG_ROPE, LONG_STRING, mayBeWide, SHORT_STRING } from './strings.ts'

/** Most times by which an estimate exceeds the bytes: doubles that are small integers, and keys of no length. */
const MOST_ESTIMATE = 16

export class Tape extends TapeStreams {
  readonly #smallEncoder: SmallEncoder

  readonly #lexicon: Lexicon

  parts: TapeParts | undefined
  /** How full segments are printed while the capture goes on; undefined if all are printed at the end. */
  early: EarlyPrint | undefined
  /** Most bytes of the result. A tape that cannot become less throws. */
  maxBytes: number = Infinity
  #printer: SegmentPrinter | undefined

  /** Whether bytes are taken instead of copied. */
  transfer = false
  readonly places: Places = new Places()

  constructor(lexicon: Lexicon, slab: SmallOutput, rooms: TapeRooms) {
    super(rooms)
    this.#lexicon = lexicon
    this.#smallEncoder = new SmallEncoder(this.small, lexicon, slab)
  }

  number(value: number): void {
    const int = value | 0
    if (int === value && int < MOST_INT && -MOST_INT <= int) {
      this.words[this.w++] = int << 4
      return
    }
    this.words[this.w++] = DOUBLE
    this.doubles[this.d++] = value
  }

  string(value: string): void {
    const { length } = value
    if (length <= SHORT_STRING) {
      this.words[this.w++] = (length << 4) | ROPE
      this.text += value
      if (LONG_ROPE < this.text.length) this.flushLong()
      return
    }
    if (length < LONG_STRING) {
      // The word and its bytes must be in one segment.
      this.byteRoom(length * 2)
      this.words[this.w++] = (length << 4) | (this.characters(value, length) ? UTF16 : LATIN1)
      return
    }
    this.words[this.w++] = (this.#long(value) << 4) | LONG
  }

  /** Writes the characters for a generated function and returns their word; −1 where `string` must be called. */
  middling(value: string, length: number): number {
    if (LONG_STRING <= length || this.segment.room.bytes < this.b + length * 2) return -1
    return (length << 4) | (this.characters(value, length) ? UTF16 : LATIN1)
  }

  #long(value: string): number {
    const areWide = mayBeWide(value)
    this.parts ??= new TapeParts()
    check(this.parts.addText(value, areWide))
    const size = areWide ? value.length * 2 : value.length
    this.longSize += size
    this.longPackedSize += size
    return this.longs++
  }

  /** Writes a key that is not in the lexicon. */
  name(key: string): void {
    this.room()
    const { length } = key
    if (length <= SHORT_STRING) {
      this.words[this.w++] = (IN_ROPE << 4) | NAME
      this.words[this.w++] = length
      this.text += key
      // The next capture makes room for its words, not for its characters.
      if (LONG_ROPE < this.text.length) this.flushLong()
      return
    }
    this.#located(NAME, key)
  }

  /** Writes the characters from `from` to `to` of JSON text. */
  json(text: string, from: number, to: number): void {
    this.room()
    this.#located(TEXT, text)
    this.words[this.w++] = from
    this.words[this.w++] = to
  }

  #located(tag: number, text: string): void {
    const { length } = text
    if (LONG_STRING <= length) {
      const index = this.#long(text)
      this.words[this.w++] = (IN_LONG << 4) | tag
      this.words[this.w++] = index
      return
    }
    this.byteRoom(length * 2)
    this.words[this.w++] = ((this.characters(text, length) ? IN_UTF16 : IN_LATIN1) << 4) | tag
    this.words[this.w++] = length
  }

  date(time: number): void {
    this.room()
    this.words[this.w++] = DATE
    this.doubles[this.d++] = time
  }

  /**
   * Writes bytes in a form of `typed.ts`. `growth` and `packedGrowth` are the bytes of JSON and MessagePack that each
   * usually becomes.
   */
  bytes(form: number, value: Uint8Array, growth: number, packedGrowth: number): void {
    this.room()
    const length = lengthOf(value)
    const isTaken = this.transfer && OWN_BUFFER <= length && takeableOf(value) !== undefined
    if (isTaken || LONG_STRING <= length) {
      this.parts ??= new TapeParts()
      if (isTaken) this.places.add(this.parts, this.longs, value)
      else check(this.parts.addBytes(value))
      this.longSize += length * growth
      this.longPackedSize += length * packedGrowth
      this.words[this.w++] = LONG_BYTES
      this.words[this.w++] = form
      this.words[this.w++] = this.longs++
      return
    }
    this.byteRoom(length)
    this.words[this.w++] = BYTES
    this.words[this.w++] = form
    this.words[this.w++] = length
    // Detached memory has no length and cannot be read.
    if (0 < length) setBytes(this.segment.bytes, value, this.b)
    this.b += length
  }

  /** Writes the text of a RawJson. */
  raw(fragment: RawJsonBytes): void {
    this.room()
    this.parts ??= new TapeParts()
    const size = this.parts.addRawJson(fragment)
    this.longSize += size
    this.longPackedSize += size
    this.words[this.w++] = RAW
    this.words[this.w++] = this.longs++
  }

  literal(word: number): void {
    this.room()
    this.words[this.w++] = word
  }

  /** Ends a row, or a document that ends with a newline. */
  row(): void {
    this.literal(ROW)
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

  /** Forgets everything written since the mark. Nothing may be printed early. */
  override goBack(mark: TapeMark): void {
    super.goBack(mark)
    this.parts?.cutLongs(this.longs)
    this.places.cut(this.longs)
  }

  /** Makes the tape empty. No task may read it. */
  reset(): void {
    this.clearStreams()
    this.transfer = false
    this.early = undefined
    this.maxBytes = Infinity
    if (this.parts === undefined) return
    this.#printer?.release()
    this.#printer = undefined
    this.parts.clear()
    this.parts = undefined
    this.places.clear()
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
