/**
 * A bounded look at a value that no path node knows: whether a cold walk takes less time than JSON.stringify. It runs no
 * code of the value. Lives on the JS thread; `path-node.ts` calls it.
 */

import {
  charCodeAt,
  descriptorOf,
  isArray,
  isBoxed,
  isDate,
  isProxy,
  isTypedArray,
  keysOf,
  leastOf,
  lengthOf,
  mostOf,
  newSet,
  prototypeOf,
  truncate,
  type TypedArray,
} from '../runtime/intrinsics.ts'
import { bufferPrototype } from './builtin-tojson.ts'
import { tuning } from './tuning.ts'

/** A value to be looked at, and how many values of the whole it stands for. Values are linked in their order. */
interface Looked {
  readonly value: unknown
  readonly weight: number
  next: Looked | undefined
}

/**
 * Whether a walk saves time though V8 has not optimised it: number arrays, long strings, dates and Buffers make up for
 * what the other values cost. A small part of a value that is walked is walked too.
 */
export function winsCold(value: object, isRoot: boolean): boolean {
  const look = new Look(value)
  return look.wins(tuning.smallUntilWarm) || (!isRoot && look.isSmall)
}

/** Whether a walk saves time once V8 has optimised it. */
export function winsWarm(value: object): boolean {
  return new Look(value).wins(0)
}

/** Characters of a small value, at least: those of a digit and a comma. */
const SMALL_SIZE = 2
/** Elements that stand for those of an array, and of one inside of another. With more, a look ends before it is deep. */
const ELEMENTS = 3
const INNER_ELEMENTS = 2

/**
 * Whether the text may be longer than `maxBytes`: by the look of it, or because a container stands in the value twice, as
 * in values that explode.
 */
export function mayExceed(value: object, maxBytes: number): boolean {
  const look = new Look(value)
  return look.isShared || maxBytes < look.size
}

class Look {
  #last: Looked
  /** Objects that were looked at: an object that holds itself is read once. */
  readonly #seen = newSet<object>()
  #left: number = tuning.mostLooked
  #savedNs = 0
  #small = 0
  /** Whether an object was met twice. */
  isShared = false
  /** Estimated characters of the text. */
  size = 0

  /** Looks at the value and what is in it, breadth first. */
  constructor(value: object) {
    const first: Looked = { value, weight: 1, next: undefined }
    this.#last = first
    for (let looked: Looked | undefined = first; looked !== undefined; looked = looked.next) this.#count(looked)
  }

  /** Whether the savings exceed the penalties, the first `cold` of which are those of code that is not optimised. */
  wins(cold: number): boolean {
    const { smallPenaltyNs, warmPenaltyNs, leastGain } = tuning
    const first = leastOf(this.#small, cold)
    const penaltyNs = first * smallPenaltyNs + (this.#small - first) * warmPenaltyNs
    return 0 < this.#savedNs && penaltyNs <= this.#savedNs * (1 - leastGain)
  }

  get isSmall(): boolean {
    return this.#small <= tuning.smallPart
  }

  #add(value: unknown, weight: number): void {
    if (this.#left === 0) return
    this.#left -= 1
    this.#last.next = { value, weight, next: undefined }
    this.#last = this.#last.next
  }

  #count({ value, weight }: Looked): void {
    this.#small += weight
    this.size += weight * SMALL_SIZE
    if (typeof value === 'string') {
      this.size += weight * value.length
      if (tuning.longString <= value.length) this.#savedNs += weight * savedNsOf(value)
    } else if (typeof value === 'object' && value !== null && !isProxy(value)) {
      const isKnown = this.#seen.has(value)
      this.isShared ||= isKnown
      this.#seen.add(value)
      if (!isKnown) this.#countObject(value, weight)
    }
  }

  #countObject(value: object, weight: number): void {
    if (isArray(value)) this.#countElements(value, weight)
    else if (isDate(value)) this.#savedNs += weight * tuning.savedPerDateNs
    else if (isTypedArray(value)) this.#countBytes(value, weight)
    else if (!isBoxed(value)) this.#countKeys(value, weight)
  }

  #countBytes(value: TypedArray, weight: number): void {
    this.size += weight * lengthOf(value)
    if (prototypeOf(value) === bufferPrototype) this.#savedNs += weight * lengthOf(value) * tuning.savedPerByteNs
  }

  #countElements(value: readonly unknown[], weight: number): void {
    const { length } = value
    if (length === 0) return
    const first = at(value, 0)
    const middle = at(value, length >>> 1)
    const last = at(value, length - 1)
    if (typeof first === 'number' && typeof middle === 'number' && typeof last === 'number') {
      const areInts = (first | 0) === first && (middle | 0) === middle && (last | 0) === last
      this.size += weight * length * SMALL_SIZE
      this.#savedNs += weight * length * (areInts ? tuning.savedPerIntNs : tuning.savedPerDoubleNs)
      return
    }
    // Few elements stand for all: more would leave none of the look to what is inside of them.
    const count = leastOf(length, weight === 1 ? ELEMENTS : INNER_ELEMENTS)
    for (let index = 0; index < count; index += 1) {
      const place = count === 1 ? 0 : truncate((index * (length - 1)) / (count - 1))
      this.#add(at(value, place), (weight * length) / count)
    }
  }

  #countKeys(value: object, weight: number): void {
    const keys = keysOf(value)
    const { length } = keys
    const step = mostOf(1, length / tuning.mostKeysLooked)
    for (let index = 0; index < length; index += step) {
      const key = keys[index | 0] ?? ''
      this.#add(descriptorOf(value, key)?.value, weight * step)
    }
  }
}

/** Nanoseconds that a copy of a long string saves. */
function savedNsOf(text: string): number {
  const { length } = text
  const isWide = MOST_NARROW < charCodeAt(text, length >>> 1) || MOST_NARROW < charCodeAt(text, length - 1)
  return length * (isWide ? tuning.savedPerWideCharacterNs : tuning.savedPerCharacterNs)
}

/** Last character that V8 keeps in one byte. */
const MOST_NARROW = 0xff

function at(value: readonly unknown[], index: number): unknown {
  return descriptorOf(value, index)?.value
}
