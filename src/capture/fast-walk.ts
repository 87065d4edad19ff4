/**
 * Captures plain data by prediction, on the JS thread: the keys of an object are usually those that followed each other
 * here before. `spec-walk.ts` takes over, from where it stands, where a value is not known to be plain. Nothing is read
 * twice, and nothing written is taken back. `encoder-core.ts` and `row-buffer.ts` call it.
 */

import {
  apply,
  descriptorOf,
  isArray,
  isBoxed,
  isDate,
  isMap,
  isProxy,
  isRawJson,
  isTypedArray,
  keysOf,
  leastOf,
  mostOf,
  newSet,
  objectPrototype,
  prototypeOf,
  toText,
} from '../runtime/intrinsics.ts'
import { captureContainer, captureExactly, captureProperty, enter, stringified } from './spec-walk.ts'
import { generate, generateObject, type ElementsCapture, type Helpers, type Spot } from './generate.ts'
import { Sketch } from './sketch.ts'
import { rawJsonBytesOf } from './raw-json.ts'
import { concernsAll } from './rules.ts'
import { writeBuffer } from './typed.ts'
import { bufferToJSON, dateJson, dateToJSON, isPlainBuffer, isTwofold, isUntouched } from './builtin-tojson.ts'
import { makeCopyDoubles, makeCopyInts, type CopyLoop } from './loops.ts'
import { hasEnumerable, isPlainPrototype } from './plain.ts'
import {
  addFirst,
  backOff,
  mayLearn,
  prefer,
  writeKey,
  writeName,
  writePrimitive,
  type PathEdge,
  type PathNode,
} from './path-node.ts'
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  DOUBLES,
  FALSE,
  INTS,
  NULL,
  OPEN_ARRAY,
  OPEN_OBJECT,
  ROPE,
  TRUE,
} from './opcodes.ts'
import type { CaptureContext as Tape } from './context.ts'
import { LONG_ROPE, NODE, SHORT_STRING } from './strings.ts'

/**
 * Levels of nesting that the walk handles. `spec-walk.ts`, which needs none of the engine's stack, captures deeper
 * values.
 */
const DEEPEST = 100

/** Score of a key that is not the predicted one. */
const MISPLACED = 1
const NEVER_SEEN = 4
/**
 * Most score of an object: 100 keys never seen. Its other keys are not learned, and the next objects go to the engine.
 */
const MOST_SCORE = 100 * NEVER_SEEN
/** Elements after which an array is judged: with a higher score for each, its other elements go to the engine. */
const WINDOW = 16
const MOST_SCORE_PER_ELEMENT = 8
const FEW = 4

/** Whether JSON.stringify is as fast on small plain objects as a walk without a generated function: V8 14 and later. */
const HAS_FAST_STRINGIFY = 25 <= NODE
const MOST_SMALL_KEYS = 8
/** Arrays after which generating a function is tried again. */
const RETRY = 16

/** Least length at which an array of numbers or strings is captured as a run. */
const RUN = 4

const LONGEST_SAMPLE = 16
const SAMPLES = 24

/** Captures the value of a call, or a row. Returns false if JSON.stringify would return undefined. */
export function captureValue(tape: Tape, value: unknown, node: PathNode): boolean {
  if (concernsAll(tape.rules) || hasEnumerable(objectPrototype)) {
    return captureProperty(tape, { '': value }, '', value)
  }
  if (typeof value !== 'object' || value === null || isProxy(value)) return walk(tape, '', value, undefined, node)
  return walkRead(tape, '', value, toJsonOf(value), undefined, isArray(value) ? tape.vocabulary.elements : node)
}

/** Captures any value. Its key is written only if the value has JSON. */
export function walk(
  tape: Tape,
  name: string | number,
  value: unknown,
  key: PathEdge | undefined,
  node: PathNode,
): boolean {
  switch (typeof value) {
    case 'string':
    case 'number':
    case 'boolean':
      writePrimitive(tape, name, value, key)
      return true
    case 'object':
      if (value !== null) return walkObject(tape, name, value, key, node)
      writePrimitive(tape, name, value, key)
      return true
    case 'function':
    case 'bigint':
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every function and bigint has properties
      return captureExactly(tape, name, value, (value as unknown as { toJSON?: unknown }).toJSON, key)
    default:
      return false
  }
}

function walkObject(
  tape: Tape,
  name: string | number,
  value: object,
  key: PathEdge | undefined,
  node: PathNode,
): boolean {
  if (isProxy(value)) return captureExactly(tape, name, value, toJsonOf(value), key)
  return walkRead(tape, name, value, toJsonOf(value), key, node)
}

/** Captures an object that is not a proxy and whose `toJSON` was read. */
export function walkRead(
  tape: Tape,
  name: string | number,
  value: object,
  toJSON: unknown,
  key: PathEdge | undefined,
  node: PathNode,
): boolean {
  if (typeof toJSON !== 'function') return walkResolved(tape, name, value, key, node)
  if (toJSON === dateToJSON && isDate(value)) {
    const time = dateJson(tape, value)
    if (time === undefined) return walkAnswer(tape, name, takeStopped(tape), key, node)
    writeKey(tape, key, name)
    tape.date(time)
    return true
  }
  if (isUntouched(tape.rules, value, toJSON) || rawJsonBytesOf(value) !== undefined) {
    return captureExactly(tape, name, value, undefined, key)
  }
  if (toJSON === bufferToJSON && isPlainBuffer(value)) {
    writeKey(tape, key, name)
    writeBuffer(tape, value)
    return true
  }
  if (isTwofold(tape.rules, value, toJSON)) return captureExactly(tape, name, value, toJSON, key)
  return walkAnswer(tape, name, apply(toJSON, value, [toText(name)]), key, node)
}

function takeStopped(tape: Tape): unknown {
  const { stopped } = tape
  tape.stopped = undefined
  return stopped
}

/** Captures the answer of a `toJSON`. Its own `toJSON` is not called: JSON.stringify does not call it either. */
function walkAnswer(
  tape: Tape,
  name: string | number,
  value: unknown,
  key: PathEdge | undefined,
  node: PathNode,
): boolean {
  const isPlace = node.leftToEngine === 0 && !node.isUnpredictable
  if (isPlace && typeof value === 'object' && value !== null && !isProxy(value)) {
    return walkResolved(tape, name, value, key, node)
  }
  return captureExactly(tape, name, value, undefined, key)
}

/** Captures an object that is not a proxy and whose `toJSON` no longer matters. */
function walkResolved(
  tape: Tape,
  name: string | number,
  value: object,
  key: PathEdge | undefined,
  node: PathNode,
): boolean {
  if (isArray(value)) {
    writeKey(tape, key, name)
    walkArray(tape, name, value, node)
    return true
  }
  const { objects } = node
  let unwritten = key
  if (0 < objects.length) {
    writeKey(tape, key, name)
    unwritten = undefined
    for (let at = 0; at < objects.length; at += 1) {
      const learned = objects[at]
      if (learned === undefined || !mayNest(tape, learned.levels) || !learned.capture(tape, value)) continue
      prefer(node, objects, at)
      return true
    }
  }
  if (!isPlain(tape, value)) return captureExactly(tape, name, value, undefined, unwritten)
  const isWalked = node.leftToEngine === 0
  writeKey(tape, unwritten, name)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a plain object has string keys
  walkKeys(tape, name, value as Record<string, unknown>, node)
  // A value that throws, as circular ones do, teaches nothing.
  if (node.isRoot && isWalked && mayLearn(node)) learnRoot(tape, value, node)
  return true
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every object may have such a property
function toJsonOf(value: object): unknown {
  return (value as { toJSON?: unknown }).toJSON
}

/** Whether `for…in` lists exactly the keys of the value, and it is not a boxed primitive. */
function isPlain({ rules }: Tape, value: object): boolean {
  const prototype = prototypeOf(value)
  if (prototype === objectPrototype) return true
  if (rules.target !== 'json' && isMap(value)) return false
  if (isBoxed(value) || isRawJson(value) || isTypedArray(value) || rawJsonBytesOf(value) !== undefined) return false
  return prototype === null || isPlainPrototype(prototype)
}

/** Captures an object that `isPlain`. */
function walkKeys(tape: Tape, name: string | number, value: Record<string, unknown>, node: PathNode): void {
  if (DEEPEST <= tape.depth) {
    captureContainer(tape, name, value)
    return
  }
  if (0 < node.leftToEngine) {
    node.leftToEngine -= 1
    stringifyContainer(tape, name, value)
    return
  }
  if (!enter(tape, name, value)) return
  tape.literal(OPEN_OBJECT)
  // The score of its own keys, without those of nested objects.
  let score = 0
  let isOverScore = false
  let previous: PathEdge | undefined
  let predicted = node.first
  // oxlint-disable-next-line guard-for-in -- `isPlain` found no inherited keys
  for (const k in value) {
    if (!isOverScore && MOST_SCORE < score) {
      // The other keys are not worth learning. Those already written stay.
      isOverScore = true
      backOff(node)
      tape.score -= score
    }
    let key: PathEdge
    if (isOverScore) key = tape.vocabulary.unknown
    else if (predicted !== undefined && predicted.name === k) key = predicted
    else {
      if (previous === undefined && isBoxed(value)) break
      score -= tape.score
      key = mispredicted(tape, node, previous, k)
      score += tape.score
    }
    const x = value[k]
    if (tape.wordLimit < tape.w || tape.doubleLimit < tape.d) tape.next()
    switch (typeof x) {
      case 'string':
        writeName(tape, key, k)
        tape.string(x)
        break
      case 'number':
        writeName(tape, key, k)
        tape.number(x)
        break
      case 'boolean':
        writeName(tape, key, k)
        tape.words[tape.w++] = x ? TRUE : FALSE
        break
      case 'object':
        if (x === null) {
          writeName(tape, key, k)
          tape.words[tape.w++] = NULL
        } else walkObject(tape, k, x, key, key.node)
        break
      case 'function':
      case 'bigint':
        walk(tape, k, x, key, key.node)
        break
      default:
    }
    previous = key
    predicted = key.next
  }
  tape.depth -= 1
  if (previous === undefined && isBoxed(value)) {
    // It is a boxed primitive. Nothing of it was read.
    tape.w -= 1
    captureExactly(tape, name, value, undefined, undefined)
    return
  }
  tape.literal(CLOSE_OBJECT)
}

/** Most keys that a path node keeps. An object with more is not a record: learning starts again. */
const MOST_AT_PLACE = 256

/** Returns the edge of a key that was not predicted. */
function mispredicted(tape: Tape, node: PathNode, previous: PathEdge | undefined, name: string): PathEdge {
  let key = node.keys.get(name)
  tape.score += key === undefined ? NEVER_SEEN : MISPLACED
  if (key === undefined) {
    key = tape.vocabulary.learn(name)
    if (key.isUnknown) return key
    if (node.keys.size === MOST_AT_PLACE) node.keys.clear()
    node.keys.set(name, key)
  }
  if (previous === undefined) node.first = key
  else if (!previous.isUnknown) previous.next = key
  return key
}

/** Writes a container as the engine's text, where nothing can be learned from its keys. */
function stringifyContainer(tape: Tape, name: string | number, value: object): void {
  const text = stringified(tape, value)
  if (typeof text === 'string') tape.json(text, 0, text.length)
  else captureContainer(tape, name, text?.value ?? value)
}

function walkArray(tape: Tape, name: string | number, value: readonly unknown[], node: PathNode): void {
  if (DEEPEST <= tape.depth) {
    captureContainer(tape, name, value)
    return
  }
  const { length } = value
  if ((node.isUnpredictable || 0 < node.arraysLeftToEngine) && areForEngine(value, length, node)) {
    stringifyContainer(tape, name, value)
    return
  }
  if (!enter(tape, name, value)) return
  tape.literal(OPEN_ARRAY)
  walkElements(tape, value, 0, length, node)
  tape.literal(CLOSE_ARRAY)
  tape.depth -= 1
}

/** Captures elements from `start` to `length`: the length that the array had when it was reached. */
export function walkElements(
  tape: Tape,
  value: readonly unknown[],
  start: number,
  length: number,
  node: PathNode,
): void {
  let index = start
  let before = tape.score
  if (!node.isUnpredictable) index = runCaptures(tape, value, index, length, node)
  let haveLearned = false
  let judgement = index + WINDOW
  let begin = index
  let objects = 0
  while (index < length) {
    if (judgement <= index && !haveLearned) {
      // The first window only taught the keys.
      haveLearned = true
      before = tape.score
      judgement = index + WINDOW
    }
    if (judgement <= index) {
      if (MOST_SCORE_PER_ELEMENT * WINDOW < tape.score - before) {
        node.isUnpredictable = true
        tape.score = before
        walkForEngine(tape, value, index, length, node)
        return
      }
      if (WINDOW * 2 <= length - index && objects === index - begin) {
        const wasUnpredictable = node.isUnpredictable
        node.isUnpredictable = false
        if (wasUnpredictable || learnElements(tape, value, index, node))
          index = runCaptures(tape, value, index, length, node)
        else if (HAS_FAST_STRINGIFY && node.captures.length === 0) node.arraysLeftToEngine = RETRY
        if (index === length) return
      }
      objects = 0
      before = tape.score
      begin = index
      judgement = index + WINDOW
    }
    const x = value[index]
    if (tape.wordLimit < tape.w || tape.doubleLimit < tape.d) tape.next()
    switch (typeof x) {
      case 'string':
        tape.string(x)
        index += 1
        if (RUN <= length - index) index = walkStrings(tape, value, index, length, node)
        continue
      case 'number':
        tape.number(x)
        index += 1
        if (RUN <= length - index) index = walkNumbers(tape, value, index, length, (x | 0) === x, node)
        continue
      case 'boolean':
        tape.words[tape.w++] = x ? TRUE : FALSE
        break
      case 'object':
        if (x === null) tape.words[tape.w++] = NULL
        else {
          objects += 1
          if (!walkObject(tape, index, x, undefined, node)) tape.literal(NULL)
        }
        break
      default:
        walkElement(tape, index, x, node)
    }
    index += 1
  }
  if (0 < objects && length < WINDOW * 4) sample(tape, value, length, node)
}

/**
 * Whether the first elements show that the array is not worth a walk: all have ever-new keys, or all are small. Runs
 * none of their code. New keys count only if each element has other ones.
 */
function areForEngine(value: readonly unknown[], length: number, node: PathNode): boolean {
  const end = leastOf(length, FEW)
  const seen = newSet<string>()
  let strangers = 0
  let areSmall = 0 < node.arraysLeftToEngine
  for (let index = 0; index < end; index += 1) {
    const element: unknown = descriptorOf(value, index)?.value
    if (typeof element !== 'object' || element === null || isProxy(element) || isArray(element)) return false
    // A typed array has as many keys as elements.
    if (isTypedArray(element)) return false
    const keys = keysOf(element)
    if (0 < index) strangers += countNew(keys, node, seen)
    addAll(keys, seen)
    areSmall &&= isSmall(element, keys)
  }
  if (MOST_SCORE_PER_ELEMENT * (end - 1) < strangers * NEVER_SEEN) return true
  if (areSmall) node.arraysLeftToEngine -= 1
  return areSmall
}

function countNew(keys: readonly string[], node: PathNode, seen: ReadonlySet<string>): number {
  let count = 0
  for (let index = 0; index < keys.length; index += 1) {
    const key = keys[index] ?? ''
    if (!seen.has(key) && !node.keys.has(key)) count += 1
  }
  return count
}

function addAll(keys: readonly string[], seen: Set<string>): void {
  for (let index = 0; index < keys.length; index += 1) seen.add(keys[index] ?? '')
}

function isSmall(value: object, keys: readonly string[]): boolean {
  if (MOST_SMALL_KEYS < keys.length) return false
  for (let index = 0; index < keys.length; index += 1) {
    const found: unknown = descriptorOf(value, keys[index] ?? '')?.value
    if (typeof found === 'object' && found !== null) return false
  }
  return true
}

/**
 * Captures the rest of an array whose keys cannot be predicted. The engine gets one element at a time: code of one may
 * change the later ones.
 */
function walkForEngine(tape: Tape, value: readonly unknown[], start: number, length: number, node: PathNode): void {
  for (let index = start; index < length; index += 1) {
    node.leftToEngine = 1
    walkElement(tape, index, value[index], node)
  }
  node.leftToEngine = 0
}

/** Captures any element. */
function walkElement(tape: Tape, index: number, value: unknown, node: PathNode): void {
  if (!walk(tape, index, value, undefined, node)) tape.literal(NULL)
}

/**
 * Captures strings from `start` on, and the first element that is not a string. Returns the index of the next element.
 */
function walkStrings(tape: Tape, value: readonly unknown[], start: number, length: number, node: PathNode): number {
  let index = start
  while (index < length) {
    if (tape.wordLimit < tape.w) tape.next()
    const { words } = tape
    const end = leastOf(length, index + tape.wordLimit - tape.w + 1)
    // Locals: a store into a property has a write barrier.
    let text = ''
    let { w } = tape
    let x: unknown = ''
    for (; index < end; index += 1) {
      x = value[index]
      if (typeof x !== 'string' || SHORT_STRING < x.length || LONG_ROPE / 2 < text.length) break
      words[w] = (x.length << 4) | ROPE
      w += 1
      text += x
    }
    tape.w = w
    tape.text += text
    if (LONG_ROPE < tape.text.length) tape.flushLong()
    if (index === end) continue
    tape.room()
    index += 1
    if (typeof x !== 'string') {
      walkElement(tape, index - 1, x, node)
      return index
    }
    tape.string(x)
  }
  return index
}

/**
 * Captures numbers from `start` on, and the first element that is not a number. Returns the index of the next element.
 */
function walkNumbers(
  tape: Tape,
  value: readonly unknown[],
  start: number,
  length: number,
  areInts: boolean,
  node: PathNode,
): number {
  const index = captureNumbers(tape, value, start, length, areInts, copyInts, copyDoubles)
  if (index === length) return index
  tape.room()
  walkElement(tape, index, takeStopped(tape), node)
  return index + 1
}

const copyInts = makeCopyInts()
const copyDoubles = makeCopyDoubles()

/**
 * Captures numbers from `start` on, integers before doubles. Returns the index of the first element that is not a
 * number.
 */
export function captureNumbers(
  tape: Tape,
  value: readonly unknown[],
  start: number,
  length: number,
  areInts: boolean,
  copyIntsTo: CopyLoop<Int32Array>,
  copyDoublesTo: CopyLoop<Float64Array>,
): number {
  let index = start
  if (areInts) {
    index = captureInts(tape, value, start, length, copyIntsTo)
    if (index === length || typeof tape.stopped !== 'number') return index
    tape.room()
    tape.number(tape.stopped)
    index += 1
  }
  return captureDoubles(tape, value, index, length, copyDoublesTo)
}

function captureInts(
  tape: Tape,
  value: readonly unknown[],
  start: number,
  length: number,
  copy: CopyLoop<Int32Array>,
): number {
  let index = start
  while (index < length) {
    if (tape.wordLimit < tape.w) tape.next()
    const at = tape.w
    const end = leastOf(length, index + tape.wordLimit - at + 1)
    const count = copy(tape, value, index, end, tape.words, at + 1)
    tape.words[at] = (count << 4) | INTS
    tape.w = at + 1 + count
    index += count
    if (index < end) return index
  }
  return index
}

function captureDoubles(
  tape: Tape,
  value: readonly unknown[],
  start: number,
  length: number,
  copy: CopyLoop<Float64Array>,
): number {
  let index = start
  while (index < length) {
    tape.room()
    const end = leastOf(length, index + tape.doubleLimit - tape.d + 1)
    const count = copy(tape, value, index, end, tape.doubles, tape.d)
    tape.words[tape.w++] = (count << 4) | DOUBLES
    tape.d += count
    index += count
    if (index < end) return index
  }
  return index
}

/** Runs the generated functions in turn on the elements from `start` on. Returns the index where they gave up. */
function runCaptures(tape: Tape, value: readonly unknown[], start: number, length: number, node: PathNode): number {
  const { captures } = node
  let index = start
  for (let at = 0; at < captures.length && index < length; at += 1) {
    const capture = captures[at]
    if (capture === undefined) break
    const before = index
    index = runCapture(tape, capture, value, index, length)
    if (index === length || WINDOW < index - before) prefer(node, captures, at)
  }
  return index
}

/** Whether so many more containers may be open inside of the present ones. Generated functions do not check. */
function mayNest({ depth, rules }: Tape, levels: number): boolean {
  return depth + levels <= rules.maxDepth
}

function runCapture(
  tape: Tape,
  { capture, levels }: ElementsCapture,
  value: readonly unknown[],
  start: number,
  length: number,
): number {
  if (!mayNest(tape, levels)) return start
  const { missed } = tape
  const index = capture(tape, value, start, length)
  tape.missed = missed
  return index
}

/** Generates a function for elements like those before `end`. */
function learnElements(tape: Tape, value: readonly unknown[], end: number, node: PathNode): boolean {
  if (!mayLearn(node)) return false
  return attempt(() => {
    const sketch = new Sketch()
    addElements(tape, sketch, value, mostOf(0, end - WINDOW * 2), end)
    return addLearned(tape, sketch, node)
  })
}

/**
 * Learns something, which runs no code of the value. If it throws, somebody has replaced a built-in that it calls; then
 * nothing is learned.
 */
function attempt(toLearn: () => boolean): boolean {
  try {
    return toLearn()
  } catch {
    // A replaced built-in throws.
    return false
  }
}

function addLearned(tape: Tape, sketch: Sketch, node: PathNode): boolean {
  node.attempts += 1
  const capture = generate(tape.vocabulary, sketch, node, HELPERS)
  if (capture === undefined) return false
  addFirst(node.captures, capture)
  return true
}

/** Samples a short array. Several such calls together teach a function. */
function sample(tape: Tape, value: readonly unknown[], length: number, node: PathNode): void {
  if (!mayLearn(node)) return
  const sketch = (node.sketch ??= new Sketch())
  attempt(() => {
    addElements(tape, sketch, value, 0, leastOf(length, LONGEST_SAMPLE))
    if (sketch.count < SAMPLES) return false
    node.sketch = undefined
    return addLearned(tape, sketch, node)
  })
}

/** Samples the elements from `start` to `end`, without running any code of theirs. */
function addElements(tape: Tape, sketch: Sketch, value: readonly unknown[], start: number, end: number): void {
  for (let index = start; index < end; index += 1) addSample(tape, sketch, descriptorOf(value, index)?.value)
}

/** Most values that one sample reads: twice as many as a rollout with its turns has. */
const MOST_SAMPLED = 768
/** Most values that learning reads for each word that the capture has written. */
const SAMPLED_PER_WORD = 2

function addSample(tape: Tape, sketch: Sketch, value: unknown): void {
  const most = leastOf(MOST_SAMPLED, tape.written * SAMPLED_PER_WORD - tape.sampled)
  if (0 < most) tape.sampled += sketch.add(value, most)
}

/**
 * Captures a value that a generated function does not know. The arguments say how far that function has written.
 * `outer` has its open containers, and the indexes that stand for names it does not know.
 */
export function captureOther(
  value: unknown,
  tape: Tape,
  words: number,
  doubles: number,
  text: string,
  spot: Spot,
  ...outer: readonly unknown[]
): void {
  const depth = goOn(tape, words, doubles, text, spot, outer)
  goBack(tape, depth, spot, walk(tape, nameAt(spot, outer), value, spot.key, spot.node))
}

/** Captures an object for a generated function: it is not a proxy, and its `toJSON` was read. */
export function captureRead(
  value: object,
  toJSON: unknown,
  tape: Tape,
  words: number,
  doubles: number,
  text: string,
  spot: Spot,
  ...outer: readonly unknown[]
): void {
  const depth = goOn(tape, words, doubles, text, spot, outer)
  goBack(tape, depth, spot, walkRead(tape, nameAt(spot, outer), value, toJSON, spot.key, spot.node))
}

/** Captures the answer of a date's `toJSON`, from `tape.stopped`, for a generated function. */
export function captureAnswer(
  tape: Tape,
  words: number,
  doubles: number,
  text: string,
  spot: Spot,
  ...outer: readonly unknown[]
): void {
  const depth = goOn(tape, words, doubles, text, spot, outer)
  goBack(tape, depth, spot, walkAnswer(tape, nameAt(spot, outer), takeStopped(tape), spot.key, spot.node))
}

/** Captures the rest of an array of numbers, from the element in `tape.stopped` on, which is not a number. */
export function captureRest(
  value: readonly unknown[],
  length: number,
  tape: Tape,
  spot: Spot,
  ...outer: readonly unknown[]
): void {
  const { at } = tape
  const depth = enterAll(tape, spot, outer)
  tape.room()
  walkElement(tape, at, takeStopped(tape), spot.node)
  walkElements(tape, value, at + 1, length, spot.node)
  tape.depth = depth
}

/** Takes over what the generated function has written. Returns how deep the tape was. */
function goOn(tape: Tape, words: number, doubles: number, text: string, spot: Spot, outer: readonly unknown[]): number {
  tape.w = words
  tape.d = doubles
  tape.text = text
  tape.room()
  return enterAll(tape, spot, outer)
}

/** Puts the open containers on the path. Returns how deep the tape was. */
function enterAll(tape: Tape, { names }: Spot, outer: readonly unknown[]): number {
  const { path, depth } = tape
  let at = 0
  for (let index = 0; index < names.length; index += 1) {
    path[depth + index] = outer[at]
    at += 1
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- generated code passes an index where a name is missing
    tape.names[depth + index] = names[index] ?? (outer[at++] as number)
  }
  tape.depth = depth + names.length
  return depth
}

function nameAt({ name }: Spot, outer: readonly unknown[]): string | number {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- generated code passes an index where a name is missing
  return name ?? (outer[outer.length - 1] as number)
}

/** Goes back to the generated function, with room for what it writes next. */
function goBack(tape: Tape, depth: number, { key, frame }: Spot, isWritten: boolean): void {
  if (!isWritten && key === undefined) tape.literal(NULL)
  tape.depth = depth
  tape.reserve(frame.need)
}

function learnRoot(tape: Tape, value: object, node: PathNode): void {
  const sketch = (node.sketch ??= new Sketch())
  attempt(() => {
    addSample(tape, sketch, value)
    if (sketch.count < SAMPLES) return false
    node.sketch = undefined
    node.attempts += 1
    generateObject(tape.vocabulary, sketch, node, HELPERS)
    return true
  })
}

/**
 * Functions that generated code calls. They are passed as arguments, so that `generate.ts` does not import this module.
 */
const HELPERS: Helpers = { captureAnswer, captureNumbers, captureOther, captureRead, captureRest }
