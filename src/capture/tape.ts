/**
 * The tape: the flat form of a value. The walks write it on the JS thread; tasks read it (`crates/json/src/tape.rs`,
 * which has a table of the words). A word is `payload << 4 | tag`; some words draw from the other streams of their
 * segment: doubles, bytes, and the rope of short strings.
 */

import { giveBack, makeRoom, OWN_BUFFER, takeableOf } from '../runtime/results.ts'
import { takeAll } from '../runtime/bytes.ts'
import { invalidValue } from '../runtime/errors.ts'
import {
  addTo,
  allocUnsafeSlow,
  bufferFrom,
  bufferOf,
  byteLengthOfText,
  defineProperty,
  eachOf,
  lengthOf,
  newMap,
  now,
  setBytes,
  writeLatin1,
  writeUtf16,
} from '../runtime/intrinsics.ts'
import {
  bindSmallEncoder,
  check,
  reportUsed,
  SnapshotParts,
  TapeParts,
  TapeSegment,
  type RawJsonBytes,
  type Lexicon,
  type SmallOutput,
} from '../runtime/native.ts'
import { isWide } from '../runtime/text.ts'
import type { Vocabulary } from './path-node.ts'
import { NO_RULES, type CaptureRules } from './rules.ts'

// Tag 0 is an integer.
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

/** Payloads of `NAME` and `TEXT`: the stream that has the characters. */
const IN_LATIN1 = 0
const IN_UTF16 = 1
const IN_ROPE = 2
const IN_LONG = 3

/** Bound of integers that fit the payload of a word. */
export const MOST_INT: number = 2 ** 27

/** Major version of Node. */
export const NODE: number = Number.parseInt(process.versions.node, 10)

/**
 * Longest string that is joined in JavaScript, thousands at a time, before it is copied out of V8. Joining costs 10 ns,
 * a copy of its own 30 ns. The best bound depends on the engine.
 */
export const SHORT_STRING: number = NODE < 22 ? 192 : NODE < 24 ? 64 : 112
/** Characters that are joined. Longer ropes leave the cache before they are flattened. */
export const LONG_ROPE: number = 1 << 14
/** Least length of a string that gets memory of its own. */
const LONG_STRING = 1 << 18

/** Whether V8 measures the UTF-8 of wide strings faster than it finds their widest character: V8 14 and later. */
const HAS_FAST_LENGTH = 25 <= NODE
const FAST_LENGTH_FROM = 512

/** Whether the characters may need two bytes. It may be true for some strings that need one. */
export function mayBeWide(text: string): boolean {
  if (HAS_FAST_LENGTH && FAST_LENGTH_FROM <= text.length) return byteLengthOfText(text) !== text.length
  return isWide(text)
}

/** Capacity of each stream, in elements. */
interface SegmentRoom {
  readonly words: number
  readonly doubles: number
  readonly runs: number
  readonly bytes: number
  readonly rope: number
}

/** Capacity of the segment that every tape begins with. */
const SMALL: SegmentRoom = { words: 1 << 14, doubles: 1 << 13, runs: 1 << 8, bytes: 1 << 17, rope: 1 << 18 }
/** Capacity of later segments: 7 MB, of which only written pages become resident. */
const LARGE: SegmentRoom = { words: 1 << 19, doubles: 1 << 18, runs: 1 << 12, bytes: 1 << 21, rope: 1 << 20 }
/** Capacity of a segment for strings that are too long for the rope. */
const TEXTS: SegmentRoom = { words: 1 << 16, doubles: 1 << 14, runs: 1 << 10, bytes: 6 << 20, rope: 1 << 19 }

/** Words, doubles and runs that may be written between two checks of the room. */
const WORD_MARGIN = 64
const DOUBLE_MARGIN = 16
const RUN_MARGIN = 4
/** Room for the characters that generated code, or a run of strings, may have joined: two bytes each, and more. */
const ROPE_MARGIN = 1 << 17

// Taken on import. Segments below are linked, never in arrays: only this module can reach memory that tasks read.
const { Float64Array: Doubles, Int32Array: Words } = globalThis

class Segment {
  /** Next segment on the stack of idle ones. */
  below: Segment | undefined
  readonly room: SegmentRoom
  readonly words: Int32Array
  readonly doubles: Float64Array
  readonly runs: Int32Array
  readonly bytes: Buffer
  readonly rope: Buffer
  readonly native: TapeSegment
  /** Whether it belongs to a snapshot. */
  isKept = false
  /** Time at which its last tape ended. */
  idleSince = 0

  constructor(room: SegmentRoom) {
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

/** Stacks of large segments that no tape uses. */
const idle: { large: Segment | undefined; texts: Segment | undefined } = { large: undefined, texts: undefined }

function takeIdle(kind: keyof typeof idle): Segment | undefined {
  const segment = idle[kind]
  if (segment === undefined) return undefined
  idle[kind] = segment.below
  segment.below = undefined
  reportUsed(sizeOf(segment.room))
  return segment
}

function giveIdle(segment: Segment): void {
  // Segments above the bound are left to the collector.
  if (!makeRoom(sizeOf(segment.room))) return
  const kind = segment.room === TEXTS ? 'texts' : 'large'
  segment.idleSince = now()
  segment.below = idle[kind]
  idle[kind] = segment
}

/** Leaves segments that have been idle for `idleMs` to the collector. The longest idle ones are at the bottom. */
export function releaseSegments(idleMs: number): void {
  releaseOlder('large', now() - idleMs)
  releaseOlder('texts', now() - idleMs)
}

function releaseOlder(kind: keyof typeof idle, latest: number): void {
  let last: Segment | undefined
  let segment = idle[kind]
  for (; segment !== undefined && latest < segment.idleSince; segment = segment.below) last = segment
  if (last === undefined) idle[kind] = undefined
  else last.below = undefined
  for (; segment !== undefined; segment = segment.below) reportUsed(sizeOf(segment.room))
}

/** A full segment, and how much of it is written. */
interface Sealed {
  /** Segment sealed after this one. */
  next: Sealed | undefined
  readonly segment: Segment
  readonly words: number
  readonly doubles: number
  readonly bytes: number
  readonly rope: number
  readonly runs: number
}

/** Bytes that are taken when the capture has succeeded. */
interface Place {
  readonly below: Place | undefined
  /** Index among the long strings. */
  readonly index: number
  /** Memory of the view, which a detached view does not know any more. */
  readonly buffer: ArrayBufferLike
  readonly view: Uint8Array
  /** Length when it was captured. */
  readonly length: number
}

/** Memory that was taken from the caller, for all places of it. It goes back when the last tape lets go of it. */
class SharedMemory {
  readonly memory: ArrayBuffer
  #uses = 0

  constructor(memory: ArrayBuffer) {
    this.memory = memory
  }

  use(): this {
    this.#uses += 1
    return this
  }

  end(): void {
    this.#uses -= 1
    if (this.#uses === 0) giveBack(bufferFrom(this.memory))
  }
}

/** Shared memories of one tape. */
interface TakenMemory {
  readonly below: TakenMemory | undefined
  readonly shared: SharedMemory
}

function giveBackAll(last: TakenMemory | undefined): void {
  for (let taken = last; taken !== undefined; taken = taken.below) taken.shared.end()
}

/** Takes the memory of each view; leaves out what cannot be taken. */
function takeEach(views: ReadonlyMap<ArrayBufferLike, Uint8Array>): ReadonlyMap<ArrayBufferLike, SharedMemory> {
  const list: Uint8Array[] = []
  eachOf(views, (view) => addTo(list, view))
  const memories = takeAll(list)
  const taken = newMap<ArrayBufferLike, SharedMemory>()
  let at = 0
  eachOf(views, (_view, buffer) => {
    const memory = memories[at++] ?? null
    if (memory !== null) taken.set(buffer, new SharedMemory(memory))
  })
  return taken
}

/** Position of a tape, to go back to. */
export interface TapeMark {
  readonly sealed: Sealed | undefined
  readonly longs: number
  readonly longSize: number
  readonly longPackedSize: number
  readonly end: Sealed
  readonly text: string
}

/** Nanoseconds below which a tape is printed at once: a task costs the JS thread more. */
export const AT_ONCE_NS = 25_000

/** Words in the header of a small encoder: see `crates/json/src/small.rs`. */
const HEADER_LENGTH = 6

/** Depth for which the path has elements of its own from the start. Setters on `Array.prototype` do not see them. */
const SHALLOW = 128

/** Makes a list whose elements are its own properties. */
function blank<T>(element: T): T[] {
  const list: T[] = []
  for (let index = 0; index < SHALLOW; index += 1) {
    defineProperty(list, index, { value: element, writable: true, enumerable: true, configurable: true })
  }
  return list
}

export class Tape {
  readonly vocabulary: Vocabulary
  /** Rules of the present call. */
  rules: CaptureRules = NO_RULES
  readonly #small: Segment
  readonly #header: Int32Array
  readonly #encodeSmall: () => void

  // The current segment, its streams, and their limits. Generated functions read and write them too.
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
  /** Characters of short strings that no segment has yet. */
  text = ''

  /** Next tape on the stack of an encoder's idle ones. */
  below: Tape | undefined
  #firstSealed: Sealed | undefined
  #lastSealed: Sealed | undefined
  parts: TapeParts | undefined
  longs = 0
  /** Bytes of long strings. */
  longSize = 0
  longPackedSize = 0

  /** Whether bytes are taken instead of copied. */
  transfer = false
  /** Bytes that are taken when the capture has succeeded, the last one first. */
  #places: Place | undefined
  /** Memory that was taken. It goes back when no task reads it any more. */
  #taken: TakenMemory | undefined

  /** Whether the present part is for JSON alone, or for MessagePack alone. */
  isPart = false
  /** Errors that are kept until JSON, or MessagePack, is asked for. */
  jsonError: unknown
  msgpackError: unknown

  /** Containers under capture, outermost first, and the key or index of each in the one before. */
  readonly path: unknown[] = blank(undefined)
  readonly names: (string | number)[] = blank('')
  depth = 0

  /** Score of unpredicted keys: 1 for one in another order, 4 for one never seen. */
  score = 0
  /** Element at which a loop over numbers stopped. */
  stopped: unknown
  /** Index at which it stopped. */
  at = 0
  /** Elements that a generated function could not capture itself. */
  missed = 0
  /** Values that learning has read. */
  sampled = 0

  constructor(vocabulary: Vocabulary, slab: SmallOutput) {
    this.vocabulary = vocabulary
    this.#small = new Segment(SMALL)
    const header = allocUnsafeSlow(64)
    this.#header = new Words(bufferOf(header))
    this.#encodeSmall = bindSmallEncoder(header, this.#small.native, vocabulary.lexicon, slab)
    this.segment = this.#small
    this.words = this.#small.words
    this.doubles = this.#small.doubles
    this.wordLimit = 0
    this.doubleLimit = 0
    this.#open(this.#small)
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
    }
  }

  /** Continues in a new segment. */
  next(): void {
    const { room } = this.segment
    const areTexts = room.bytes / 2 < this.b && this.w < TEXTS.words
    this.#seal()
    this.#open(areTexts ? (takeIdle('texts') ?? new Segment(TEXTS)) : (takeIdle('large') ?? new Segment(LARGE)))
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
      this.#byteRoom(length * 2)
      this.words[this.w++] = (length << 4) | (this.#characters(value, length) ? UTF16 : LATIN1)
      return
    }
    this.words[this.w++] = (this.#long(value) << 4) | LONG
  }

  /** Writes the characters for a generated function and returns their word; −1 where `string` must be called. */
  middling(value: string, length: number): number {
    if (LONG_STRING <= length || this.segment.room.bytes < this.b + length * 2) return -1
    return (length << 4) | (this.#characters(value, length) ? UTF16 : LATIN1)
  }

  /** Writes characters that fit. Returns whether they are wide. */
  #characters(text: string, length: number): boolean {
    const { bytes } = this.segment
    const areWide = mayBeWide(text)
    this.b += areWide ? writeUtf16(bytes, text, this.b, length * 2) : writeLatin1(bytes, text, this.b, length)
    return areWide
  }

  #byteRoom(size: number): void {
    if (this.segment.room.bytes < this.b + size) this.next()
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
    this.#byteRoom(length * 2)
    this.words[this.w++] = ((this.#characters(text, length) ? IN_UTF16 : IN_LATIN1) << 4) | tag
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
      if (isTaken) this.#addPlace(this.parts, value, length)
      else check(this.parts.addBytes(value))
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
    // Detached memory has no length and cannot be read.
    if (0 < length) setBytes(this.segment.bytes, value, this.b)
    this.b += length
  }

  /** Makes a place for bytes that are taken when the capture has succeeded. */
  #addPlace(parts: TapeParts, view: Uint8Array, length: number): void {
    parts.addPlace()
    this.#places = { below: this.#places, index: this.longs, buffer: bufferOf(view), view, length }
  }

  /**
   * Takes the bytes that have places on some tapes, or copies those that cannot be taken. Throws where code of a value has
   * detached some of them.
   */
  static takePlaces(tapes: readonly Tape[]): void {
    const views = newMap<ArrayBufferLike, Uint8Array>()
    forEachTape(tapes, (tape) => tape.#listPlaces(views))
    if (views.size === 0) return
    const taken = takeEach(views)
    forEachTape(tapes, (tape) => tape.#fillPlaces(taken))
  }

  /** Adds one view of each memory. */
  #listPlaces(views: Map<ArrayBufferLike, Uint8Array>): void {
    for (let place = this.#places; place !== undefined; place = place.below) {
      const { view, length } = place
      if (lengthOf(view) !== length) throw invalidValue('the value', 'has bytes that its own code detached', view)
      views.set(place.buffer, view)
    }
  }

  /** Copies the bytes that have places and were not taken: the tape is printed while its call still captures. */
  #copyPlaces(): void {
    for (let place = this.#places; place !== undefined; place = place.below) {
      check(this.parts?.copyBytes(place.index, place.view) ?? null)
    }
    this.#places = undefined
  }

  #fillPlaces(taken: ReadonlyMap<ArrayBufferLike, SharedMemory>): void {
    for (let place = this.#places; place !== undefined; place = place.below) {
      const { buffer, index, view, length } = place
      const shared = taken.get(buffer)
      if (shared === undefined) check(this.parts?.copyBytes(index, view) ?? null)
      else this.parts?.takeBytes(index, bufferFrom(shared.memory, 0, length))
      if (shared !== undefined) this.#taken = { below: this.#taken, shared: shared.use() }
    }
    this.#places = undefined
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

  mark(): TapeMark {
    const { longs, longSize, longPackedSize, text } = this
    return { sealed: this.#lastSealed, longs, longSize, longPackedSize, end: this.#end(), text }
  }

  /** Forgets everything written since the mark. */
  goBack({ sealed, longs, longSize, longPackedSize, end, text }: TapeMark): void {
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
    while (this.#places !== undefined && longs <= this.#places.index) this.#places = this.#places.below
    this.longs = longs
    this.longSize = longSize
    this.longPackedSize = longPackedSize
    this.leaveAll()
  }

  #free(segment: Segment): void {
    if (segment !== this.#small && !segment.isKept) giveIdle(segment)
  }

  /** Drops the references to the containers. */
  leaveAll(): void {
    const { path } = this
    this.depth = 0
    for (let index = 0; index < path.length && path[index] !== undefined; index += 1) path[index] = undefined
    if (SHALLOW < path.length) path.length = SHALLOW
  }

  /** Makes the tape empty. */
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
    this.sampled = 0
    this.isPart = false
    this.jsonError = undefined
    this.msgpackError = undefined
    this.transfer = false
    if (this.path[0] !== undefined) this.leaveAll()
  }

  #resetAll(): void {
    this.#unseal(undefined)
    this.#free(this.segment)
    this.parts?.clear()
    this.parts = undefined
    this.#places = undefined
    giveBackAll(this.#taken)
    this.#taken = undefined
    this.longs = 0
    this.longSize = 0
    this.longPackedSize = 0
    this.#open(this.#small)
  }

  /** Whether everything is in the first segment. */
  get isSmall(): boolean {
    return this.segment === this.#small && this.longs === 0 && this.parts === undefined
  }

  /** Estimated nanoseconds to print a small tape. */
  get cost(): number {
    return this.w * 6 + this.d * 28 + (this.b + this.r + this.text.length) * 0.25
  }

  /** Whether printing takes less time than a task costs the JS thread. */
  get isCheap(): boolean {
    return this.isSmall && this.cost <= AT_ONCE_NS
  }

  /** Estimated bytes of JSON of a small tape. */
  get size(): number {
    return this.w * 6 + this.d * 18 + this.b + this.r + this.text.length
  }

  /**
   * Writes the JSON of a small tape to the memory of small results, from `offset` on. Returns its length, or a negative
   * number if it does not fit.
   */
  encodeInto(offset: number): number {
    this.flush()
    const header = this.#header
    header[0] = this.w
    header[1] = this.d
    header[2] = this.b
    header[3] = this.r
    header[4] = this.n
    header[5] = offset
    this.#encodeSmall()
    return header[HEADER_LENGTH] ?? -1
  }

  /** Hands everything over to a task. */
  finish(): TapeParts {
    this.#copyPlaces()
    this.flush()
    this.parts ??= new TapeParts()
    for (let sealed = this.#firstSealed; sealed !== undefined; sealed = sealed.next) addSegment(this.parts, sealed)
    addSegment(this.parts, this.#end())
    return this.parts
  }

  /** Makes a snapshot: takes large segments that are mostly full, and copies the contents of others. */
  keep(): SnapshotTape {
    const cost = this.isSmall ? this.cost : undefined
    this.flush()
    this.parts ??= new TapeParts()
    let kept: Segment | undefined
    for (let sealed = this.#firstSealed; sealed !== undefined; sealed = sealed.next) {
      kept = keepSegment(this.parts, sealed, kept)
    }
    kept = keepSegment(this.parts, this.#end(), kept)
    const taken = this.#taken
    this.#taken = undefined
    return new SnapshotTape(this, new SnapshotParts(this.parts), { segments: kept, taken, cost })
  }

  /** Estimated bytes of JSON, if nothing is escaped and numbers have usual lengths. */
  get usualSize(): number {
    return this.#sum(this.longSize, usualSizeOf)
  }

  /** Estimated bytes of MessagePack. */
  get usualPackedSize(): number {
    return this.#sum(this.longPackedSize, usualPackedSizeOf)
  }

  #sum(first: number, sizeOfPart: (sealed: Sealed) => number): number {
    let size = first + sizeOfPart(this.#end())
    for (let sealed = this.#firstSealed; sealed !== undefined; sealed = sealed.next) size += sizeOfPart(sealed)
    return size
  }

  /** Words in all segments. */
  get written(): number {
    return this.#sum(0, wordsOf)
  }

  get hasNothing(): boolean {
    return this.w === 0 && this.#firstSealed === undefined
  }
}

/** Memory of a snapshot, and the estimated time to print it. */
interface SnapshotMemory {
  readonly segments: Segment | undefined
  readonly taken: TakenMemory | undefined
  readonly cost: number | undefined
}

/** Calls back for each tape. No iterator of arrays sees tapes: it may be replaced. */
function forEachTape(tapes: readonly Tape[], callback: (tape: Tape) => void): void {
  for (let index = 0; index < tapes.length; index += 1) {
    const tape = tapes[index]
    if (tape !== undefined) callback(tape)
  }
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

  constructor(tape: Tape, parts: SnapshotParts, { segments, taken, cost }: SnapshotMemory) {
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
  if (segment.room !== SMALL && sizeOf(segment.room) < 2 * sizeOf(sealed)) {
    addSegment(parts, sealed)
    segment.isKept = true
    segment.below = kept
    return segment
  }
  check(parts.copySegment(segment.native, words, doubles, bytes, rope, runs))
  return kept
}

function sizeOf({ words, doubles, bytes, rope, runs }: SegmentRoom): number {
  return (words + runs) * 4 + doubles * 8 + bytes + rope
}

function addSegment(parts: TapeParts, { segment, words, doubles, bytes, rope, runs }: Sealed): void {
  parts.addSegment(segment.native, words, doubles, bytes, rope, runs)
}

function wordsOf({ words }: Sealed): number {
  return words
}

function usualPackedSizeOf({ words, doubles, bytes, rope }: Sealed): number {
  return words * 3 + doubles * 9 + bytes + rope
}

function usualSizeOf({ words, doubles, bytes, rope }: Sealed): number {
  return words * 6 + doubles * 18 + bytes + rope
}
