/**
 * The tape: the flat form of a value. The walks write it on the JS thread; tasks read it (`crates/json/src/tape.rs`).
 */

import { OWN_BUFFER, takeableOf } from '../runtime/results.ts'
import { lengthOf, setBytes } from '../runtime/intrinsics.ts'
import { check, TapeParts, type RawJsonBytes } from '../runtime/native.ts'
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
import type { TapeRooms } from './segment.ts'
import { TapeStreams, type TapeMark } from './streams.ts'
import { LONG_ROPE, LONG_STRING, LONG_TEXT, mayBeWide, SHORT_STRING } from './strings.ts'

export class Tape extends TapeStreams {
  parts: TapeParts | undefined

  /** Whether bytes are taken instead of copied. */
  transfer = false
  readonly places: Places = new Places()

  // Without it, the engine would iterate over the arguments, with an iterator that may be replaced.
  // oxlint-disable-next-line eslint/no-useless-constructor -- see above
  constructor(rooms: TapeRooms) {
    super(rooms)
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
    // A text of JSON.stringify is often all there is on the tape: a block of its own size is touched less than a segment.
    if (LONG_TEXT <= length) {
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
   * Writes bytes in a form of `typed-array.ts`. `growth` and `packedGrowth` are the bytes of JSON and MessagePack that
   * each usually becomes.
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
    if (this.parts === undefined) return
    this.parts.clear()
    this.parts = undefined
    this.places.clear()
  }
}
