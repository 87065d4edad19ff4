/**
 * The streams of a tape, from segment to segment. Written on the JS thread.
 */

import { writeLatin1, writeUtf16 } from '../runtime/intrinsics.ts'
import {
  DOUBLE_MARGIN,
  giveIdle,
  ROPE_MARGIN,
  RUN_MARGIN,
  Segment,
  takeSegment,
  WORD_MARGIN,
  type Sealed,
  type SegmentRoom,
  type TapeRooms,
} from './segment.ts'
import { mayBeWide } from './strings.ts'

/** Position of a tape, to go back to. */
export interface TapeMark {
  readonly sealed: Sealed | undefined
  readonly end: Sealed
  readonly text: string
}

export class TapeStreams {
  readonly #rooms: TapeRooms
  readonly #small: Segment

  // The current segment, its streams, and their limits. Generated functions read and write them too.
  segment: Segment
  words: Int32Array
  doubles: Float64Array
  w = 0
  d = 0
  b = 0
  r = 0
  n = 0
  wordLimit = 0
  doubleLimit = 0
  /** Characters of short strings that no segment has yet. */
  text = ''

  /** Number of long strings, and the bytes that they become. */
  longs = 0
  longSize = 0
  longPackedSize = 0

  #firstSealed: Sealed | undefined
  #lastSealed: Sealed | undefined

  constructor(rooms: TapeRooms) {
    this.#rooms = rooms
    this.#small = new Segment(rooms.small)
    this.segment = this.#small
    this.words = this.#small.words
    this.doubles = this.#small.doubles
    this.#open(this.#small)
  }

  /** Segment that every tape begins with. */
  protected get small(): Segment {
    return this.#small
  }

  #open(segment: Segment): void {
    this.segment = segment
    this.words = segment.words
    this.doubles = segment.doubles
    this.wordLimit = segment.room.words - WORD_MARGIN
    this.doubleLimit = segment.room.doubles - DOUBLE_MARGIN
    this.w = 0
    this.d = 0
    this.b = 0
    this.r = 0
    this.n = 0
  }

  #seal(): void {
    this.flush()
    const sealed = this.#end()
    if (this.#lastSealed === undefined) this.#firstSealed = sealed
    else this.#lastSealed.next = sealed
    this.#lastSealed = sealed
  }

  /** Frees the segments sealed after `last`, except `kept`. */
  #unseal(last: Sealed | undefined, kept?: Segment): void {
    const first = last === undefined ? this.#firstSealed : last.next
    for (let sealed = first; sealed !== undefined; sealed = sealed.next) {
      if (sealed.segment !== kept) this.#free(sealed.segment)
    }
    if (last === undefined) this.#firstSealed = undefined
    else last.next = undefined
    this.#lastSealed = last
  }

  #end(): Sealed {
    return {
      next: undefined,
      segment: this.segment,
      words: this.w,
      doubles: this.d,
      bytes: this.b,
      rope: this.r,
      runs: this.n,
      longs: this.longs,
      longSize: this.longSize,
      longPackedSize: this.longPackedSize,
    }
  }

  /** Continues in a new segment. */
  next(): void {
    const { large, texts } = this.#rooms
    const room = this.segment.room.bytes / 2 < this.b && this.w < texts.words ? texts : large
    // The segment comes first: where there is none, the tape stays as it is.
    const segment = this.takeBack(room) ?? takeSegment(room)
    const isSmall = this.segment === this.#small
    this.#seal()
    this.#open(segment)
    this.handOver(isSmall)
  }

  /** Returns a segment of this tape that can be written again. */
  protected takeBack(_room: SegmentRoom): Segment | undefined {
    return undefined
  }

  /** Looks at the segments that are full. `isSmall` says that the last of them is the first of the tape. */
  protected handOver(_isSmall: boolean): void {}

  /** Removes all full segments; with `all`, the current one too. Calls back for each. */
  protected moveSegments(all: boolean, callback: (sealed: Sealed) => void): void {
    if (all) {
      this.#seal()
      this.#open(this.#small)
    }
    const first = this.#firstSealed
    this.#firstSealed = undefined
    this.#lastSealed = undefined
    for (let sealed = first; sealed !== undefined; sealed = sealed.next) callback(sealed)
  }

  /** Writes the joined characters to the rope. */
  flush(): void {
    const { text } = this
    const { length } = text
    if (length === 0) return
    const { rope, runs } = this.segment
    this.text = ''
    if (mayBeWide(text)) {
      runs[this.n] = (length << 1) | 1
      this.r += writeUtf16(rope, text, this.r, length * 2)
    } else {
      runs[this.n] = length << 1
      this.r += writeLatin1(rope, text, this.r, length)
    }
    this.n += 1
  }

  /** Writes the joined characters if they have become many. */
  flushLong(): void {
    this.flush()
    const { room } = this.segment
    if (room.rope - ROPE_MARGIN < this.r || room.runs - RUN_MARGIN < this.n) this.next()
  }

  /** Makes room for so many words and doubles. */
  reserve(count: number): void {
    if (this.wordLimit - count < this.w || this.doubleLimit - count < this.d) this.next()
  }

  /** Makes room for `WORD_MARGIN` words and as many of the rest as they may need. */
  room(): void {
    if (this.wordLimit < this.w || this.doubleLimit < this.d) this.next()
  }

  /** Makes room for so many bytes. */
  byteRoom(size: number): void {
    if (this.segment.room.bytes < this.b + size) this.next()
  }

  /** Writes characters that fit. Returns whether they are wide. */
  characters(text: string, length: number): boolean {
    const { bytes } = this.segment
    const areWide = mayBeWide(text)
    this.b += areWide ? writeUtf16(bytes, text, this.b, length * 2) : writeLatin1(bytes, text, this.b, length)
    return areWide
  }

  mark(): TapeMark {
    return { sealed: this.#lastSealed, end: this.#end(), text: this.text }
  }

  /** Forgets everything written since the mark. */
  goBack({ sealed, end, text }: TapeMark): void {
    if (this.segment !== end.segment) {
      this.#free(this.segment)
      this.#unseal(sealed, end.segment)
      this.#open(end.segment)
    }
    this.w = end.words
    this.d = end.doubles
    this.b = end.bytes
    this.r = end.rope
    this.n = end.runs
    this.longs = end.longs
    this.longSize = end.longSize
    this.longPackedSize = end.longPackedSize
    this.text = text
  }

  #free(segment: Segment): void {
    if (segment !== this.#small && !segment.isKept) giveIdle(segment)
  }

  /** Makes the streams empty. */
  protected clearStreams(): void {
    if (this.segment !== this.#small) {
      this.#unseal(undefined)
      this.#free(this.segment)
    }
    this.#open(this.#small)
    this.text = ''
    this.longs = 0
    this.longSize = 0
    this.longPackedSize = 0
  }

  /** Calls back for each segment, in the order of the tape. */
  eachSegment(callback: (sealed: Sealed) => void): void {
    for (let sealed = this.#firstSealed; sealed !== undefined; sealed = sealed.next) callback(sealed)
    callback(this.#end())
  }

  protected sum(first: number, sizeOfPart: (sealed: Sealed) => number): number {
    let size = first + sizeOfPart(this.#end())
    for (let sealed = this.#firstSealed; sealed !== undefined; sealed = sealed.next) size += sizeOfPart(sealed)
    return size
  }

  get hasNothing(): boolean {
    return this.w === 0 && this.#firstSealed === undefined
  }

  /** Estimated nanoseconds to print a small tape. */
  get cost(): number {
    return this.w * 6 + this.d * 28 + (this.b + this.r + this.text.length) * 0.25
  }

  /** Estimated bytes of JSON of a small tape. */
  get size(): number {
    return this.w * 6 + this.d * 18 + this.b + this.r + this.text.length
  }
}
