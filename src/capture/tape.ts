/**
 * The flat form of a value, written on the JS thread and read by `crates/json`: words, and the streams they draw from.
 * A word is `payload << 4 | tag`; `crates/json/src/tape.rs` says what each tag means.
 */

import {
  allocUnsafeSlow,
  bufferFrom,
  bufferOf,
  byteLengthOfText,
  defineProperty,
  execRegExp,
  lengthOf,
  setBytes,
  writeLatin1,
  writeUtf16,
} from '../intrinsics.ts'
import {
  bindDesk,
  check,
  KeptParts,
  TapeParts,
  TapeSegment,
  type Fragment,
  type Lexicon,
  type Slab,
} from '../native.ts'
import type { Vocabulary } from './place.ts'
import { NO_RULES, type Rules } from './rules.ts'

// 0 is the tag of an integer.
export const DOUBLE = 1
const LATIN1 = 2
const UTF16 = 3
export const ROPE = 4
const LITERAL = 5
const OPEN = 6
const CLOSE = 7
export const ENTRY = 8
export const NAME = 9
export const INTS = 10
export const DOUBLES = 11
const LONG = 12
const TEXT = 13
export const DATE = 14
const EXTRA = 15

export const NULL: number = LITERAL
export const TRUE: number = (1 << 4) | LITERAL
export const FALSE: number = (2 << 4) | LITERAL
export const OPEN_ARRAY: number = OPEN
export const OPEN_OBJECT: number = (1 << 4) | OPEN
export const OPEN_MAP: number = (2 << 4) | OPEN
export const CLOSE_ARRAY: number = CLOSE
export const CLOSE_OBJECT: number = (1 << 4) | CLOSE
export const CLOSE_MAP: number = (2 << 4) | CLOSE
const ROW = EXTRA
const BYTES = (1 << 4) | EXTRA
const LONG_BYTES = (2 << 4) | EXTRA
const RAW = (3 << 4) | EXTRA
export const ONLY_JSON: number = (4 << 4) | EXTRA
export const ONLY_MSGPACK: number = (5 << 4) | EXTRA
export const IN_BOTH: number = (6 << 4) | EXTRA

/** Payloads of `NAME` and `TEXT`: where the characters are. */
const IN_LATIN1 = 0
const IN_UTF16 = 1
const IN_ROPE = 2
const IN_LONG = 3

/** Integers that fit the payload of a word. */
export const MOST_INT: number = 2 ** 27

/** The major version of Node. */
export const NODE: number = Number.parseInt(process.versions.node, 10)

/**
 * Strings up to this length are joined in JavaScript, thousands at a time, before they are copied out of V8: joining
 * costs 10 ns, a copy of its own 30. How long they may be for that to pay depends on the engine.
 */
export const SHORT_STRING: number = NODE < 22 ? 192 : NODE < 24 ? 64 : 112
/** How many characters are joined. Longer ropes fall out of the cache before they are flattened. */
export const LONG_ROPE: number = 1 << 14
/** Strings from this length on have memory of their own. */
const LONG_STRING = 1 << 18

/** V8 14 checks wide strings for their length in UTF-8 faster than for their widest character. */
const HAS_FAST_LENGTH = 25 <= NODE
const FAST_LENGTH_FROM = 512

/** Constant time on strings that V8 keeps as one byte a character. */
// oxlint-disable-next-line no-control-regex
const WIDE = /[^\x00-\xff]/

/** Whether the characters need two bytes; some that do not may be taken for such that do. */
export function isWide(text: string): boolean {
  if (HAS_FAST_LENGTH && FAST_LENGTH_FROM <= text.length) return byteLengthOfText(text) !== text.length
  return execRegExp(WIDE, text) !== null
}

/** Elements of each stream. */
interface Room {
  readonly words: number
  readonly doubles: number
  readonly runs: number
  readonly bytes: number
  readonly rope: number
}

/** What every tape begins with. */
const SMALL: Room = { words: 1 << 14, doubles: 1 << 13, runs: 1 << 8, bytes: 1 << 17, rope: 1 << 18 }
/** 7 MB, of which only what is written to becomes present. */
const LARGE: Room = { words: 1 << 19, doubles: 1 << 18, runs: 1 << 12, bytes: 1 << 21, rope: 1 << 20 }
/** The same for what is mostly strings too long for the rope. */
const TEXTS: Room = { words: 1 << 16, doubles: 1 << 14, runs: 1 << 10, bytes: 6 << 20, rope: 1 << 19 }

/** What may be written between two looks at how much is left. */
const WORD_MARGIN = 64
const DOUBLE_MARGIN = 16
const RUN_MARGIN = 4
/** More than two bytes for every character that generated code, or a run of strings, may have joined. */
const ROPE_MARGIN = 1 << 17

// As they are on import, and no arrays of segments below: nobody but this module gets hold of memory that tasks read.
const { Float64Array: Doubles, Int32Array: Words } = globalThis

class Segment {
  /** Below it on the stack of idle ones. */
  below: Segment | undefined
  readonly room: Room
  readonly words: Int32Array
  readonly doubles: Float64Array
  readonly runs: Int32Array
  readonly bytes: Buffer
  readonly rope: Buffer
  readonly native: TapeSegment
  /** It belongs to what was kept of a tape. */
  isKept = false

  constructor(room: Room) {
    this.room = room
    const words = room.doubles * 8
    const runs = words + room.words * 4
    const bytes = runs + room.runs * 4
    const rope = bytes + room.bytes
    const memory = allocUnsafeSlow(rope + room.rope)
    const buffer = bufferOf(memory)
    this.doubles = new Doubles(buffer, 0, room.doubles)
    this.words = new Words(buffer, words, room.words)
    this.runs = new Words(buffer, runs, room.runs)
    this.bytes = bufferFrom(buffer, bytes, room.bytes)
    this.rope = bufferFrom(buffer, rope, room.rope)
    this.native = new TapeSegment(memory, room.words, room.doubles, room.bytes, room.runs, room !== SMALL)
  }
}

/** The stacks of large segments that no tape uses. */
const idle: { large: Segment | undefined; texts: Segment | undefined } = { large: undefined, texts: undefined }

function takeIdle(kind: keyof typeof idle): Segment | undefined {
  const segment = idle[kind]
  if (segment === undefined) return undefined
  idle[kind] = segment.below
  segment.below = undefined
  segment.native.wake()
  return segment
}

function giveIdle(segment: Segment): void {
  // What is too much is left to the collector.
  if (!segment.native.rest()) return
  const kind = segment.room === TEXTS ? 'texts' : 'large'
  segment.below = idle[kind]
  idle[kind] = segment
}

/** Gives the memory of idle segments back. */
export function releaseSegments(): void {
  while (takeIdle('large') !== undefined || takeIdle('texts') !== undefined);
}

/** A segment that is full, and how much of it is written. */
interface Sealed {
  /** Sealed after it. */
  next: Sealed | undefined
  readonly segment: Segment
  readonly words: number
  readonly doubles: number
  readonly bytes: number
  readonly rope: number
  readonly runs: number
}

/** Where a tape was, to go back to. */
export interface Mark {
  readonly sealed: Sealed | undefined
  readonly longs: number
  readonly longSize: number
  readonly longPackedSize: number
  readonly end: Sealed
  readonly text: string
}

/** What takes less time to print than a task takes of the thread is printed at once. */
export const AT_ONCE_NS = 25_000

/** The header of a desk: see `Desk` in `crates/binding/json.rs`. */
const HEADER_LENGTH = 6

/** So deep the path is there from the start: what somebody adds to `Array.prototype` is of no concern to it. */
const SHALLOW = 128

/** A list with so many elements of its own. */
function blank<T>(element: T): T[] {
  const list: T[] = []
  for (let index = 0; index < SHALLOW; index += 1) {
    defineProperty(list, index, { value: element, writable: true, enumerable: true, configurable: true })
  }
  return list
}

export class Tape {
  readonly vocabulary: Vocabulary
  /** What the options of the call say. */
  rules: Rules = NO_RULES
  readonly #desk: Segment
  readonly #header: Int32Array
  readonly #encodeDesk: () => void

  // The current segment, its streams, and where they end. Generated functions read and write them too.
  segment: Segment
  words: Int32Array
  doubles: Float64Array
  w = 0
  d = 0
  b = 0
  r = 0
  n = 0
  wordLimit: number
  doubleLimit: number
  /** Characters of short strings that stand in no segment yet. */
  text = ''

  /** Under it on the stack of idle tapes of an encoder. */
  below: Tape | undefined
  #firstSealed: Sealed | undefined
  #lastSealed: Sealed | undefined
  parts: TapeParts | undefined
  longs = 0
  /** Characters of long strings. */
  longSize = 0
  longPackedSize = 0

  /** What is written is for JSON alone, or for MessagePack alone. */
  isPart = false
  /** Why no JSON, or no MessagePack, can be made of it: what was kept to be thrown when it is asked for. */
  jsonError: unknown
  msgpackError: unknown

  /** The containers that are being captured, each in the one before, and the key or index of each in that. */
  readonly path: unknown[] = blank(undefined)
  readonly names: (string | number)[] = blank('')
  depth = 0

  /** How badly the keys are predicted: 1 for one in the wrong place, 4 for one never seen. */
  score = 0
  /** The element that a loop over numbers stopped at. */
  stopped: unknown
  /** Where that was. */
  at = 0
  /** How many elements a generated function could not capture itself. */
  missed = 0

  constructor(vocabulary: Vocabulary, slab: Slab) {
    this.vocabulary = vocabulary
    this.#desk = new Segment(SMALL)
    const header = allocUnsafeSlow(64)
    this.#header = new Words(bufferOf(header))
    this.#encodeDesk = bindDesk(header, this.#desk.native, vocabulary.lexicon, slab)
    this.segment = this.#desk
    this.words = this.#desk.words
    this.doubles = this.#desk.doubles
    this.wordLimit = 0
    this.doubleLimit = 0
    this.#open(this.#desk)
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

  /** Frees what was sealed after `last`, but for one segment. */
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
    }
  }

  /** Goes on in a new segment. */
  next(): void {
    const { room } = this.segment
    const areTexts = room.bytes / 2 < this.b && this.w < TEXTS.words
    this.#seal()
    this.#open(areTexts ? (takeIdle('texts') ?? new Segment(TEXTS)) : (takeIdle('large') ?? new Segment(LARGE)))
  }

  /** Writes the joined characters. */
  flush(): void {
    const { text } = this
    const { length } = text
    if (length === 0) return
    const { rope, runs } = this.segment
    this.text = ''
    if (isWide(text)) {
      runs[this.n] = (length << 1) | 1
      this.r += writeUtf16(rope, text, this.r, length * 2)
    } else {
      runs[this.n] = length << 1
      this.r += writeLatin1(rope, text, this.r, length)
    }
    this.n += 1
  }

  /** Writes the joined characters where they have become many. */
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
      // The word must stand in the segment that the bytes are in.
      this.#byteRoom(length * 2)
      this.words[this.w++] = (length << 4) | (this.#characters(value, length) ? UTF16 : LATIN1)
      return
    }
    this.words[this.w++] = (this.#long(value) << 4) | LONG
  }

  /** For generated functions: writes the characters and gives their word; -1 where `string` must be called. */
  middling(value: string, length: number): number {
    if (LONG_STRING <= length || this.segment.room.bytes < this.b + length * 2) return -1
    return (length << 4) | (this.#characters(value, length) ? UTF16 : LATIN1)
  }

  /** Writes them where there is room; tells whether they are wide. */
  #characters(text: string, length: number): boolean {
    const { bytes } = this.segment
    const areWide = isWide(text)
    this.b += areWide ? writeUtf16(bytes, text, this.b, length * 2) : writeLatin1(bytes, text, this.b, length)
    return areWide
  }

  #byteRoom(size: number): void {
    if (this.segment.room.bytes < this.b + size) this.next()
  }

  #long(value: string): number {
    const areWide = isWide(value)
    this.parts ??= new TapeParts()
    check(this.parts.addText(value, areWide))
    const size = areWide ? value.length * 2 : value.length
    this.longSize += size
    this.longPackedSize += size
    return this.longs++
  }

  /** A key that is not in the lexicon. */
  name(key: string): void {
    this.room()
    const { length } = key
    if (length <= SHORT_STRING) {
      this.words[this.w++] = (IN_ROPE << 4) | NAME
      this.words[this.w++] = length
      this.text += key
      // What is captured next makes room for its words, not for its characters.
      if (LONG_ROPE < this.text.length) this.flushLong()
      return
    }
    this.#located(NAME, key)
  }

  /** Characters from `from` to `to` of JSON text. */
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
    this.#byteRoom(length * 2)
    this.words[this.w++] = ((this.#characters(text, length) ? IN_UTF16 : IN_LATIN1) << 4) | tag
    this.words[this.w++] = length
  }

  date(time: number): void {
    this.room()
    this.words[this.w++] = DATE
    this.doubles[this.d++] = time
  }

  /** Bytes, to be written as `form` says: see `typed.ts`. Each becomes so many in JSON, and in MessagePack, mostly. */
  bytes(form: number, value: Uint8Array, growth: number, packedGrowth: number): void {
    this.room()
    const length = lengthOf(value)
    if (LONG_STRING <= length) {
      this.parts ??= new TapeParts()
      check(this.parts.addBytes(value))
      this.longSize += length * growth
      this.longPackedSize += length * packedGrowth
      this.words[this.w++] = LONG_BYTES
      this.words[this.w++] = form
      this.words[this.w++] = this.longs++
      return
    }
    this.#byteRoom(length)
    this.words[this.w++] = BYTES
    this.words[this.w++] = form
    this.words[this.w++] = length
    // Memory that is gone has no length, and cannot be read.
    if (0 < length) setBytes(this.segment.bytes, value, this.b)
    this.b += length
  }

  /** JSON as it is. */
  raw(fragment: Fragment): void {
    this.room()
    this.parts ??= new TapeParts()
    const size = this.parts.addFragment(fragment)
    this.longSize += size
    this.longPackedSize += size
    this.words[this.w++] = RAW
    this.words[this.w++] = this.longs++
  }

  literal(word: number): void {
    this.room()
    this.words[this.w++] = word
  }

  /** The end of a row, or of a document that ends with a newline. */
  row(): void {
    this.literal(ROW)
  }

  mark(): Mark {
    const { longs, longSize, longPackedSize, text } = this
    return { sealed: this.#lastSealed, longs, longSize, longPackedSize, end: this.#end(), text }
  }

  /** Forgets what was written since. */
  goBack({ sealed, longs, longSize, longPackedSize, end, text }: Mark): void {
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
    this.text = text
    this.parts?.cutLongs(longs)
    this.longs = longs
    this.longSize = longSize
    this.longPackedSize = longPackedSize
    this.leaveAll()
  }

  #free(segment: Segment): void {
    if (segment !== this.#desk && !segment.isKept) giveIdle(segment)
  }

  /** Lets go of the containers. */
  leaveAll(): void {
    const { path } = this
    this.depth = 0
    for (let index = 0; index < path.length && path[index] !== undefined; index += 1) path[index] = undefined
    if (SHALLOW < path.length) path.length = SHALLOW
  }

  /** Begins anew. */
  reset(): void {
    if (this.isSmall) {
      this.w = 0
      this.d = 0
      this.b = 0
      this.r = 0
      this.n = 0
    } else this.#resetAll()
    this.text = ''
    this.score = 0
    this.isPart = false
    this.jsonError = undefined
    this.msgpackError = undefined
    if (this.path[0] !== undefined) this.leaveAll()
  }

  #resetAll(): void {
    this.#unseal(undefined)
    this.#free(this.segment)
    this.parts?.clear()
    this.parts = undefined
    this.longs = 0
    this.longSize = 0
    this.longPackedSize = 0
    this.#open(this.#desk)
  }

  /** Everything is in the first segment. */
  get isSmall(): boolean {
    return this.segment === this.#desk && this.longs === 0 && this.parts === undefined
  }

  /** About how many nanoseconds it takes to print a small tape: of words, doubles, characters. */
  get cost(): number {
    return this.w * 6 + this.d * 28 + (this.b + this.r + this.text.length) * 0.25
  }

  /** It takes less time to print it than a task takes of the thread. */
  get isCheap(): boolean {
    return this.isSmall && this.cost <= AT_ONCE_NS
  }

  /** About how many bytes a small tape becomes. */
  get size(): number {
    return this.w * 6 + this.d * 18 + this.b + this.r + this.text.length
  }

  /** Writes the JSON of a small tape into the slab, from `offset` on; tells how long it is, or less than 0. */
  encodeInto(offset: number): number {
    this.flush()
    const header = this.#header
    header[0] = this.w
    header[1] = this.d
    header[2] = this.b
    header[3] = this.r
    header[4] = this.n
    header[5] = offset
    this.#encodeDesk()
    return header[HEADER_LENGTH] ?? -1
  }

  /** Everything, for a task. */
  finish(): TapeParts {
    this.flush()
    this.parts ??= new TapeParts()
    for (let sealed = this.#firstSealed; sealed !== undefined; sealed = sealed.next) addSegment(this.parts, sealed)
    addSegment(this.parts, this.#end())
    return this.parts
  }

  /** Everything, to be kept: large segments that are mostly full go with it, of others what is written is copied. */
  keep(): Kept {
    const cost = this.isSmall ? this.cost : undefined
    this.flush()
    this.parts ??= new TapeParts()
    let kept: Segment | undefined
    for (let sealed = this.#firstSealed; sealed !== undefined; sealed = sealed.next) {
      kept = keepSegment(this.parts, sealed, kept)
    }
    kept = keepSegment(this.parts, this.#end(), kept)
    return new Kept(this, new KeptParts(this.parts), kept, cost)
  }

  /** How long the JSON is if nothing is escaped and numbers have the usual length. */
  get usualSize(): number {
    return this.#sum(this.longSize, usualSizeOf)
  }

  /** The same of MessagePack. */
  get usualPackedSize(): number {
    return this.#sum(this.longPackedSize, usualPackedSizeOf)
  }

  #sum(first: number, sizeOfPart: (sealed: Sealed) => number): number {
    let size = first + sizeOfPart(this.#end())
    for (let sealed = this.#firstSealed; sealed !== undefined; sealed = sealed.next) size += sizeOfPart(sealed)
    return size
  }

  get hasNothing(): boolean {
    return this.w === 0 && this.#firstSealed === undefined
  }
}

/** What was captured, for any number of tasks. */
export class Kept {
  readonly parts: KeptParts
  readonly lexicon: Lexicon
  /** See `Tape`. */
  readonly usualSize: number
  readonly usualPackedSize: number
  /** Undefined for what is not small. */
  readonly cost: number | undefined
  readonly jsonError: unknown
  readonly msgpackError: unknown
  #segments: Segment | undefined

  constructor(tape: Tape, parts: KeptParts, segments: Segment | undefined, cost: number | undefined) {
    this.parts = parts
    this.lexicon = tape.vocabulary.lexicon
    this.usualSize = tape.usualSize
    this.usualPackedSize = tape.usualPackedSize
    this.cost = cost
    this.jsonError = tape.jsonError
    this.msgpackError = tape.msgpackError
    this.#segments = segments
  }

  /** When no task reads it any more, and none will. */
  release(): void {
    this.parts.clear()
    for (let segment = this.#segments; segment !== undefined; segment = this.#segments) {
      this.#segments = segment.below
      segment.isKept = false
      giveIdle(segment)
    }
  }
}

/** Gives the stack of those that are kept as they are. */
function keepSegment(parts: TapeParts, sealed: Sealed, kept: Segment | undefined): Segment | undefined {
  const { segment, words, doubles, bytes, rope, runs } = sealed
  if (segment.room !== SMALL && sizeOf(segment.room) < 2 * sizeOf(sealed)) {
    addSegment(parts, sealed)
    segment.isKept = true
    segment.below = kept
    return segment
  }
  check(parts.copySegment(segment.native, words, doubles, bytes, rope, runs))
  return kept
}

function sizeOf({ words, doubles, bytes, rope, runs }: Room): number {
  return (words + runs) * 4 + doubles * 8 + bytes + rope
}

function addSegment(parts: TapeParts, { segment, words, doubles, bytes, rope, runs }: Sealed): void {
  parts.addSegment(segment.native, words, doubles, bytes, rope, runs)
}

function usualPackedSizeOf({ words, doubles, bytes, rope }: Sealed): number {
  return words * 3 + doubles * 9 + bytes + rope
}

function usualSizeOf({ words, doubles, bytes, rope }: Sealed): number {
  return words * 6 + doubles * 18 + bytes + rope
}
