/**
 * Path nodes: the places in a value where shapes are learned, and the state machine that decides which way values there
 * go. `docs/path-nodes.md` draws it. Lives on the JS thread; the walks, the generator and learning use it.
 */

import { leastOf, newMap } from '../runtime/intrinsics.ts'
import type { Learned } from './learned.ts'
import { winsCold, winsWarm } from './look.ts'
import { NAME } from './opcodes.ts'
import type { NumberLoops } from './runs.ts'
import { Sketch } from './sketch.ts'
import { tuning } from './tuning.ts'

/** Word of the edge to an element, and to a whole value: neither has a key. */
export const NO_KEY = -1

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

/** No value was here yet. */
export const UNKNOWN = 0
/** Values go to JSON.stringify as a whole. */
export const ENGINE = 1
/** Values are walked; the parts inside of them have path nodes of their own. */
export const OPEN = 2
/** A function was generated; its runs are timed against those of the way before. */
export const CANDIDATE = 3
/** The function has proved to be faster. */
export const LEARNED = 4

/** The way of one value. */
export type Way = typeof ENGINE | typeof OPEN | typeof LEARNED

/** Weight of the last measurement in a mean. */
const NEWEST = 0.25

/**
 * The place in a value where shapes are learned, named by the keys that lead there. Elements of an array share the
 * array's node.
 */
export class PathNode {
  /** Whether whole values of calls stand here. */
  readonly isRoot: boolean
  /** Edge of values without a key: elements of arrays here, and whole values. */
  readonly element: PathEdge = new PathEdge('', NO_KEY, this)
  readonly keys: Map<string, PathEdge> = newMap()
  first: PathEdge | undefined = undefined

  /** Loops for arrays of numbers here, once there was one. */
  numbers: NumberLoops | undefined = undefined

  state: typeof UNKNOWN | Way | typeof CANDIDATE = UNKNOWN
  /** The generated function, if there is one. */
  learned: Learned | undefined = undefined
  /** Samples for the next function, while they are too few. */
  #sketch: Sketch | undefined = undefined
  /** Whether learning has been asked for. */
  isQueued = false
  /** Way of the values that no generated function captures. */
  #base: typeof ENGINE | typeof OPEN = ENGINE
  /** Characters that JSON.stringify made here since the last look, and those after which the next one is due. */
  #seen = 0
  #lookAt = 0
  #lastLength = 0
  /** Milliseconds that values here have cost since the last decision, and those from which learning is due. */
  #costMs = 0
  #learnFromMs = 0
  #backOff = 1
  /** Mean milliseconds of one value, or one element, by the base way and by the function. */
  #baseMs = 0
  #learnedMs = 0
  /** Milliseconds and runs of the trial. */
  #trialMs = 0
  #runs = 0
  #wins = 0
  #givenUp = 0
  /** Values until the base way is measured again, and the distance between two such values. */
  #left = 0
  #distance = 0

  constructor(isRoot = false) {
    this.isRoot = isRoot
  }

  /** Chooses the way of the next value. */
  wayOf(value: object): Way {
    switch (this.state) {
      case ENGINE:
        if (this.#seen < this.#lookAt) return ENGINE
        return this.#lookAgain(value)
      case CANDIDATE:
        return this.#trialMs <= this.#costMs * tuning.trialShare ? LEARNED : this.#base
      case LEARNED:
        this.#left -= 1
        if (0 <= this.#left) return LEARNED
        this.#distance = leastOf(this.#distance * 2, tuning.mostMeasureAgain)
        this.#left = this.#distance
        return this.#base
      case UNKNOWN:
        return this.#turnTo(winsCold(value, this.isRoot) ? OPEN : ENGINE)
      default:
        return OPEN
    }
  }

  #lookAgain(value: object): typeof ENGINE | typeof OPEN {
    this.#seen = 0
    const lookAt = leastOf(this.#lookAt * 2, tuning.mostLookAgainBytes)
    const way = this.#turnTo(winsWarm(value) ? OPEN : ENGINE)
    this.#lookAt = lookAt
    return way
  }

  #turnTo(way: typeof ENGINE | typeof OPEN): typeof ENGINE | typeof OPEN {
    this.#base = way
    this.state = way
    this.#seen = 0
    this.#lookAt = tuning.lookAgainBytes
    return way
  }

  /** Leaves all values to JSON.stringify: none is looked at again, nor learned from. */
  leaveToEngine(): void {
    this.#turnTo(ENGINE)
    this.#lookAt = Infinity
    this.#learnFromMs = Infinity
  }

  /** Opens the node: values are walked from now on. */
  open(): void {
    if (this.state !== CANDIDATE && this.state !== LEARNED) this.#turnTo(OPEN)
    else this.#base = OPEN
  }

  /** Whether the next value that JSON.stringify gets is worth a look at the clock, which takes 90 ns. */
  get isTimed(): boolean {
    return this.#lastLength === 0 || tuning.timedText <= this.#lastLength || this.state === CANDIDATE
  }

  /** Whether the next run of an object's function is timed. */
  get isRunTimed(): boolean {
    return this.#lastLength !== 0 && this.isTimed
  }

  /** Counts characters that JSON.stringify made of a value here. They stand for its cost where that is not measured. */
  addText(length: number, isTimed: boolean): void {
    this.#lastLength = length
    this.#seen += length
    if (!isTimed) this.#costMs += length * tuning.msPerCharacter
  }

  /** Counts what a value of so many elements has cost by the base way. */
  addCost(ms: number, count: number): void {
    this.#costMs += ms
    this.#baseMs = meanOf(this.#baseMs, ms / count)
  }

  /** Counts what a value has cost under rules that JSON.stringify does not know. */
  addOtherCost(ms: number): void {
    this.#costMs += ms
  }

  /** Counts a run of the generated function, which may have given up before the end. */
  addRun(ms: number, count: number, hasGivenUp: boolean): void {
    this.#learnedMs = meanOf(this.#learnedMs, ms / count)
    this.#givenUp = hasGivenUp ? this.#givenUp + 1 : 0
    if (this.state === CANDIDATE) this.#judgeTrial(ms)
    else if (0 < this.#baseMs && this.#baseMs * tuning.droppedAt < this.#learnedMs) this.#drop()
    if (tuning.mostGivenUp < this.#givenUp) this.#drop()
  }

  #judgeTrial(ms: number): void {
    this.#trialMs += ms
    this.#runs += 1
    const isFaster = this.#learnedMs < this.#baseMs * tuning.provenAt
    this.#wins = isFaster ? this.#wins + 1 : 0
    if (tuning.provenRuns <= this.#wins) {
      this.state = LEARNED
      this.#distance = tuning.measureAgain
      this.#left = this.#distance
    } else if (tuning.leastRuns < this.#runs && tuning.learnFromMs * tuning.mostTrial < this.#trialMs) this.#drop()
  }

  /** Forgets the function. The next one has to wait longer. */
  #drop(): void {
    this.learned = undefined
    this.wait()
    this.#turnTo(this.#base)
  }

  /** Whether values here have cost so much that a function may pay. */
  get isLearningDue(): boolean {
    if (this.isQueued || this.learned !== undefined) return false
    return tuning.learnFromMs <= this.#costMs && this.#learnFromMs <= this.#costMs
  }

  /** Whether the cost so far pays for a function of so many properties. If not, learning waits until it does. */
  pays(properties: number): boolean {
    const needed = properties * tuning.msPerProperty * this.#backOff
    if (needed <= this.#costMs) return true
    this.#learnFromMs = needed
    return false
  }

  /** Lets the next learning wait: the one back-off of a path node. */
  wait(): void {
    this.#backOff = leastOf(this.#backOff * tuning.backOff, tuning.mostBackOff)
    this.#learnFromMs = tuning.learnFromMs * this.#backOff
    this.#costMs = 0
  }

  /** Returns the samples so far, for the present lesson. */
  takeSketch(): Sketch {
    const sketch = this.#sketch ?? new Sketch()
    this.#sketch = undefined
    return sketch
  }

  keepSketch(sketch: Sketch): void {
    this.#sketch = sketch
  }

  /** Takes a generated function, whose trial begins. */
  learn(learned: Learned): void {
    this.learned = learned
    this.state = CANDIDATE
    this.#learnedMs = 0
    this.#trialMs = 0
    this.#runs = 0
    this.#wins = 0
    this.#givenUp = 0
  }

  /** Takes a function that is a part of another one, whose trial judges both. */
  learnPart(learned: Learned): void {
    this.learned = learned
    this.state = LEARNED
    this.#left = Infinity
  }
}

function meanOf(mean: number, newest: number): number {
  return mean === 0 ? newest : mean + (newest - mean) * NEWEST
}
