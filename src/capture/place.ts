/** What an encoder has learned: which keys follow each other, and at which places of a value. */

import { leastOf, mostOf, newMap, newSet, stringifyJson, toText } from '../intrinsics.ts'
import { Lexicon } from '../native.ts'
import type { Capture, CaptureObject } from './generate.ts'
import type { Sketch } from './sketch.ts'
import { ENTRY, FALSE, NAME, NULL, TRUE, type Tape } from './tape.ts'

/** More are written out each time. */
const MOST_KEYS = 8192
const LONGEST_KEY = 64
const MOST_SEEN = 1024

/** The words of an encoder's tapes: keys and constants that are text in its lexicon. */
export class Vocabulary {
  readonly lexicon: Lexicon = new Lexicon()
  /** Of whole values, of the elements of whole values that are arrays, and of rows. */
  readonly root: Place = new Place(true)
  readonly elements: Place = new Place()
  readonly rows: Place = new Place(true)
  readonly #keys = newMap<string, number>()
  /** Keys that came once. */
  readonly #seen = newSet<string>()
  /** No more can be learned. */
  isFull = false
  /** The places of the keys that came when there were too many of them. */
  readonly #others = newMap<string, Key>()
  /** The key that is not worth learning, and the place of all values behind such keys. */
  readonly unknown: Key = new Key('', NAME, new Place())
  #count = 0

  /** The word of a text; undefined when there are too many. */
  word(text: string): number | undefined {
    if (this.isFull) return undefined
    const index = this.lexicon.add(text)
    this.isFull = index < 0
    return this.isFull ? undefined : (index << 4) | ENTRY
  }

  /** A key not seen in this place before; `unknown` for one that is not worth learning yet. */
  learn(key: string): Key {
    const word = this.#keys.get(key) ?? this.#learnWord(key)
    if (word === undefined) return this.unknown
    if (this.#count < MOST_KEYS) {
      this.#count += 1
      return new Key(key, word, new Place())
    }
    const other = this.#others.get(key) ?? new Key(key, word, this.unknown.place)
    this.#others.set(key, other)
    return other
  }

  /** A key gets a word when it comes the second time: those that are always new leave room for others. */
  #learnWord(key: string): number | undefined {
    if (this.isFull || !isLearnable(key)) return undefined
    if (!this.#seen.delete(key)) {
      if (this.#seen.size === MOST_SEEN) this.#seen.clear()
      this.#seen.add(key)
      return undefined
    }
    return this.#addWord(key)
  }

  #addWord(key: string): number | undefined {
    const word = this.word(`${stringifyJson(key)}:`)
    if (word !== undefined) this.#keys.set(key, word)
    return word
  }

  /** A key that is known to come again. */
  learnNow(key: string): Key {
    if (!this.#keys.has(key)) this.#addWord(key)
    return this.learn(key)
  }
}

/** Keys that begin with a digit, and long ones, are rarely the same ones again. */
export function isLearnable(key: string): boolean {
  return key.length <= LONGEST_KEY && !('0' <= key && key < ':')
}

const MOST_ATTEMPTS = 4
const VISITS_PER_ATTEMPT = 256

/** Whether a function may be generated once more. */
export function mayLearn(place: Place): boolean {
  place.visits += 1
  if (place.visits % VISITS_PER_ATTEMPT === 0 && 0 < place.attempts) place.attempts -= 1
  return place.attempts < MOST_ATTEMPTS
}

const LEAST_PENANCE = 16
const MOST_PENANCE = 64

/** The values here are not worth a tape; some more each time that is found. */
export function giveUp(place: Place): void {
  place.penance = leastOf(mostOf(place.penance * 2, LEAST_PENANCE), MOST_PENANCE)
  place.hopeless = place.penance
}

/** More functions at one place are forgotten. */
const MOST_CAPTURES = 8

export function addFirst<T>(list: T[], item: T): void {
  moveToFront(list, item, leastOf(list.length, MOST_CAPTURES - 1))
}

/** It was of use. */
export function prefer(place: Place, list: unknown[], at: number): void {
  place.attempts = 0
  if (0 < at) moveToFront(list, list[at], at)
}

/** Puts it before those that stand before `at`, in the place of the one there. */
function moveToFront<T>(list: T[], item: T, at: number): void {
  for (let index = at; 0 < index; index -= 1) list[index] = list[index - 1] ?? item
  list[0] = item
}

/** A key at one place: its word, which key followed it last, and the place of its value. */
export class Key {
  readonly name: string
  readonly word: number
  readonly place: Place
  next: Key | undefined = undefined

  constructor(name: string, word: number, place: Place) {
    this.name = name
    this.word = word
    this.place = place
  }

  /** It has no word, and is written out. */
  get isUnknown(): boolean {
    return this.word === NAME
  }
}

/** A function for objects of one shape. */
interface Objects {
  readonly shape: string
  readonly capture: CaptureObject
}

/** Where a value stands, whichever value it is: behind which keys. The elements of an array share its place. */
export class Place {
  /** Values of calls stand there. */
  readonly isRoot: boolean
  readonly keys: Map<string, Key> = newMap()
  first: Key | undefined = undefined
  /** How many more values are left to JSON.stringify, since their keys were not to be predicted. */
  hopeless = 0
  /** How many that were the last time. */
  penance = 0
  /** The functions that were generated for the elements of an array here, the latest of use first. */
  readonly captures: Capture[] = []
  /** Those for the objects here: values of calls, and what is too large to be part of another function. */
  readonly objects: Objects[] = []
  /** What it is to be generated from. */
  sketch: Sketch | undefined = undefined
  /** Functions generated of late; fewer as time goes on, and none once one is of use. */
  attempts = 0
  /** How often there was nothing learned for a value here. */
  visits = 0
  /** The last array here was hopeless. */
  isWild = false
  /** How many more arrays of light objects are left to JSON.stringify, since no function could be generated. */
  light = 0

  constructor(isRoot = false) {
    this.isRoot = isRoot
  }
}

/** What stands before the value of a property; nothing before an element. */
export function writeKey(tape: Tape, key: Key | undefined, name: string | number): void {
  if (key === undefined) return
  tape.room()
  writeName(tape, key, name)
}

/** As `writeKey`, where there is room for words. */
export function writeName(tape: Tape, key: Key, name: string | number): void {
  if (key.isUnknown) tape.name(toText(name))
  else tape.words[tape.w++] = key.word
}

/** A value that no code has a hand in, with its key. */
export function writePrimitive(
  tape: Tape,
  name: string | number,
  value: string | number | boolean | null,
  key: Key | undefined,
): void {
  writeKey(tape, key, name)
  tape.room()
  switch (typeof value) {
    case 'string':
      tape.string(value)
      break
    case 'number':
      tape.number(value)
      break
    case 'boolean':
      tape.literal(value ? TRUE : FALSE)
      break
    default:
      tape.literal(NULL)
  }
}
