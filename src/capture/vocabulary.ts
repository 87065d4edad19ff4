/**
 * What an encoder has learned: keys and constants whose text is in its lexicon, and the path nodes of whole values. Lives
 * on the JS thread; the walks and the generator use it.
 */

import {
  descriptorOf,
  isArray,
  isBoxed,
  isProxy,
  isTypedArray,
  keysOf,
  leastOf,
  newMap,
  newSet,
  stringifyJson,
} from '../runtime/intrinsics.ts'
import { Lexicon } from '../runtime/native.ts'
import { ENTRY, NAME } from './opcodes.ts'
import { PathEdge, PathNode } from './path-node.ts'
import { isLearnable } from './plain.ts'

/** Most keys in a vocabulary. Further keys are written out each time. */
const MOST_KEYS = 8192
const MOST_SEEN = 1024
/** Most keys of a whole value that are listed. V8 keeps objects of more as dictionaries, and sorts their keys. */
const MOST_ROOT_KEYS = 1024
/** Whole objects that are not looked at after one whose keys took long to list; so many times more after the next one. */
const UNLISTED = 64
const MORE_UNLISTED = 8
const MOST_UNLISTED = 64 * 1024
/** Most kinds of whole values that have path nodes of their own. */
const MOST_ROOTS = 64

/** Asks for a function for values at a node, one of which is given. */
export type RequestFunction = (vocabulary: Vocabulary, node: PathNode, value: object) => void

/** Words of an encoder's tapes: keys and constants whose text is in its lexicon. */
export class Vocabulary {
  readonly lexicon: Lexicon = new Lexicon()
  /** Path nodes of whole values, by what they begin with. */
  readonly #objects = newMap<string, PathNode>()
  readonly #arrays = newMap<string, PathNode>()
  readonly #otherRoots: PathNode = new PathNode(true)
  /** Path node of whole values that are typed arrays or boxed. They are walked: a Buffer is copied. */
  readonly #elements: PathNode = new PathNode(true)
  readonly #requestFunction: RequestFunction
  /** Whole objects that go to JSON.stringify without a look from now on, and after the next one of many keys. */
  #unlisted = 0
  #nextUnlisted = UNLISTED
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

  constructor(requestFunction: RequestFunction) {
    this.#requestFunction = requestFunction
    this.#elements.open()
  }

  /**
   * Returns the path node of a whole value that is not a proxy. Objects that begin with the same key share one, and so
   * do arrays whose first elements do.
   */
  rootOf(value: object): PathNode {
    if (isArray(value)) return this.#root(this.#arrays, kindOf(descriptorOf(value, 0)?.value))
    // Each element is a key: no list of them is made.
    return isTypedArray(value) || isBoxed(value) ? this.#elements : this.#rootOfObject(value)
  }

  #rootOfObject(value: object): PathNode {
    if (0 < this.#unlisted) {
      this.#unlisted -= 1
      return this.#otherRoots
    }
    const keys = keysOf(value)
    const { length } = keys
    if (length <= MOST_ROOT_KEYS) return this.#root(this.#objects, keys[0] ?? '')
    // Listing the keys of such an object takes half as long as JSON.stringify. The next objects are not looked at.
    this.#unlisted = this.#nextUnlisted
    this.#nextUnlisted = leastOf(this.#nextUnlisted * MORE_UNLISTED, MOST_UNLISTED)
    this.#otherRoots.leaveToEngine()
    return this.#otherRoots
  }

  #root(roots: Map<string, PathNode>, key: string): PathNode {
    const known = roots.get(key)
    if (known !== undefined) return known
    if (roots.size === MOST_ROOTS) return this.#otherRoots
    const node = new PathNode(true)
    roots.set(key, node)
    return node
  }

  /** Asks for a function for values like this one, if those at the node have cost enough. */
  learnFrom(node: PathNode, value: object): void {
    if (node.isLearningDue && !this.isFull) this.#requestFunction(this, node, value)
  }

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

/** Returns what arrays with this first element have in common. */
function kindOf(first: unknown): string {
  if (typeof first !== 'object' || first === null || isProxy(first)) return typeof first
  if (isArray(first)) return 'array'
  return isTypedArray(first) || isBoxed(first) ? 'elements' : `key ${keysOf(first)[0] ?? ''}`
}
