/**
 * State that an encoder has learned: which keys follow each other, and at which places of a value. Lives on the JS
 * thread; the walks and the generator use it.
 */

import { leastOf, mostOf, newMap, newSet, stringifyJson, toText } from '../runtime/intrinsics.ts'
import { Lexicon } from '../runtime/native.ts'
import type { ElementsCapture, ObjectCapture } from './generate.ts'
import type { Sketch } from './sketch.ts'
import type { CaptureContext as Tape } from './context.ts'
import { ENTRY, FALSE, NAME, NULL, TRUE } from './opcodes.ts'

/** Most keys in a vocabulary. Further keys are written out each time. */
const MOST_KEYS = 8192
const LONGEST_KEY = 64
const MOST_SEEN = 1024

/** Words of an encoder's tapes: keys and constants whose text is in its lexicon. */
export class Vocabulary {
  readonly lexicon: Lexicon = new Lexicon()
  /** Path nodes of whole values, of the elements of whole values that are arrays, and of rows. */
  readonly root: PathNode = new PathNode(true)
  readonly elements: PathNode = new PathNode()
  readonly rows: PathNode = new PathNode(true)
  readonly #keys = newMap<string, number>()
  /** Keys that were seen once. */
  readonly #seen = newSet<string>()
  /** Whether the lexicon is full: nothing more can be learned. */
  isFull = false
  /** Edges of keys that came after `MOST_KEYS` others. */
  readonly #others = newMap<string, PathEdge>()
  /** Edge of every key that is not worth learning. All values behind such keys share its node. */
  readonly unknown: PathEdge = new PathEdge('', NAME, new PathNode())
  #count = 0

  /** Returns the word of a text; undefined when the lexicon is full. */
  word(text: string): number | undefined {
    if (this.isFull) return undefined
    const index = this.lexicon.add(text)
    this.isFull = index < 0
    return this.isFull ? undefined : (index << 4) | ENTRY
  }

  /** Returns an edge for a key that is new in a node: `unknown` if it is not worth learning yet. */
  learn(key: string): PathEdge {
    const word = this.#keys.get(key) ?? this.#learnWord(key)
    if (word === undefined) return this.unknown
    if (this.#count < MOST_KEYS) {
      this.#count += 1
      return new PathEdge(key, word, new PathNode())
    }
    const other = this.#others.get(key) ?? new PathEdge(key, word, this.unknown.node)
    this.#others.set(key, other)
    return other
  }

  /** Gives a key a word when it comes the second time. Keys that are always new leave room for others that way. */
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

  /** Returns an edge for a key that is known to come again. */
  learnNow(key: string): PathEdge {
    if (!this.#keys.has(key)) this.#addWord(key)
    return this.learn(key)
  }
}

/** Whether a key is likely to come again. Keys that begin with a digit, and long ones, rarely do. */
export function isLearnable(key: string): boolean {
  return key.length <= LONGEST_KEY && !('0' <= key && key < ':')
}

const MOST_ATTEMPTS = 4
const VISITS_PER_ATTEMPT = 256

/** Whether another function may be generated for this node. */
export function mayLearn(node: PathNode): boolean {
  node.visits += 1
  if (node.visits % VISITS_PER_ATTEMPT === 0 && 0 < node.attempts) node.attempts -= 1
  return node.attempts < MOST_ATTEMPTS
}

const LEAST_BACK_OFF = 16
const MOST_BACK_OFF = 64

/** Leaves the next values of this node to the engine. Each back-off is twice as long as the last one, up to a bound. */
export function backOff(node: PathNode): void {
  node.lastBackOff = leastOf(mostOf(node.lastBackOff * 2, LEAST_BACK_OFF), MOST_BACK_OFF)
  node.leftToEngine = node.lastBackOff
}

/** Most functions that a node keeps. */
const MOST_CAPTURES = 8

export function addFirst<T>(list: T[], item: T): void {
  moveToFront(list, item, leastOf(list.length, MOST_CAPTURES - 1))
}

/** Puts the function at index `at` first, because it was of use. */
export function prefer(node: PathNode, list: unknown[], at: number): void {
  node.attempts = 0
  if (0 < at) moveToFront(list, list[at], at)
}

/** Moves an item to the front; items before index `at` move one place back. */
function moveToFront<T>(list: T[], item: T, at: number): void {
  for (let index = at; 0 < index; index -= 1) list[index] = list[index - 1] ?? item
  list[0] = item
}

/** A key at one path node: its word, the edge that followed it last, and the node of its value. */
export class PathEdge {
  readonly name: string
  readonly word: number
  readonly node: PathNode
  next: PathEdge | undefined = undefined

  constructor(name: string, word: number, node: PathNode) {
    this.name = name
    this.word = word
    this.node = node
  }

  /** Whether the key has no word, and is written out. */
  get isUnknown(): boolean {
    return this.word === NAME
  }
}

/**
 * The place in a value where shapes are learned, named by the keys that lead there. Elements of an array share the
 * array's node.
 */
export class PathNode {
  /** Whether whole values of calls stand here. */
  readonly isRoot: boolean
  readonly keys: Map<string, PathEdge> = newMap()
  first: PathEdge | undefined = undefined
  /** Back-off: how many more values go to JSON.stringify, because their keys could not be predicted. */
  leftToEngine = 0
  /** Length of the last back-off. */
  lastBackOff = 0
  /** Generated functions for the elements of arrays here, the latest of use first. */
  readonly captures: ElementsCapture[] = []
  /** Generated functions for objects here: values of calls, and objects too large to be part of another function. */
  readonly objects: ObjectCapture[] = []
  /** Samples for the next function. */
  sketch: Sketch | undefined = undefined
  /** Functions generated recently. The number falls with time, and becomes zero once a function is of use. */
  attempts = 0
  /** How often nothing was learned for a value here. */
  visits = 0
  /** Whether the keys in the last array here could not be predicted. */
  isUnpredictable = false
  /** Back-off: how many more arrays of small objects go to JSON.stringify, because no function could be generated. */
  arraysLeftToEngine = 0

  constructor(isRoot = false) {
    this.isRoot = isRoot
  }
}

/** Writes the key of a property; nothing for an element. */
export function writeKey(tape: Tape, key: PathEdge | undefined, name: string | number): void {
  if (key === undefined) return
  tape.room()
  writeName(tape, key, name)
}

/** Writes a key where the tape has room for its words. */
export function writeName(tape: Tape, key: PathEdge, name: string | number): void {
  if (key.isUnknown) tape.name(toText(name))
  else tape.words[tape.w++] = key.word
}

/** Writes a primitive value with its key. No user code takes part. */
export function writePrimitive(
  tape: Tape,
  name: string | number,
  value: string | number | boolean | null,
  key: PathEdge | undefined,
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
