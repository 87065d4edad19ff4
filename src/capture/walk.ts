/**
 * The capture of plain data, by prediction: the keys of an object are usually those that followed each other here
 * before. What it does not know to be plain is captured by exact.ts, from where it stands: nothing is read twice, and
 * nothing that was written is taken back.
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
} from '../intrinsics.ts'
import { captureContainer, captureExactly, captureProperty, enter, stringified } from './exact.ts'
import { generate, generateObject, type Capture, type Spot } from './generate.ts'
import { Sketch } from './sketch.ts'
import { fragmentOf } from './raw.ts'
import { concernsAll } from './rules.ts'
import { writeBuffer } from './typed.ts'
import { bufferToJSON, dateJson, dateToJSON, isPlainBuffer, isTwofold, isUntouched } from './usual.ts'
import { makeCopyDoubles, makeCopyInts, type Copy } from './loops.ts'
import { hasEnumerable, isPlainPrototype } from './plain.ts'
import {
  addFirst,
  giveUp,
  mayLearn,
  prefer,
  writeKey,
  writeName,
  writePrimitive,
  type Key,
  type Place,
} from './place.ts'
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  DOUBLES,
  FALSE,
  INTS,
  LONG_ROPE,
  NODE,
  NULL,
  OPEN_ARRAY,
  OPEN_OBJECT,
  ROPE,
  SHORT_STRING,
  TRUE,
  type Tape,
} from './tape.ts'

/** Deeper values are left to exact.ts, which needs none of the engine's stack. */
const DEEPEST = 100

/** What a key adds to the score that is not the one predicted. */
const MISPLACED = 1
const NEVER_SEEN = 4
/** An object whose keys score more than this is hopeless: 100 keys never seen. */
const HOPELESS = 100 * NEVER_SEEN
/** After so many elements the array is judged: a score above that for each, and the rest is hopeless. */
const WINDOW = 16
const HOPELESS_SCORE = 8
const FEW = 4

/** V8 14's JSON.stringify is as fast on small plain objects as a walk over them, where no function can be generated. */
const HAS_FAST_STRINGIFY = 25 <= NODE
const LIGHT = 8
/** After so many arrays it is tried again to generate one. */
const RETRY = 16

/** Arrays from this length on are runs of numbers or strings if they begin so. */
const RUN = 4

const LONGEST_SAMPLE = 16
const SAMPLES = 24

/** Captures the value of a call, or a row. False if JSON.stringify would make it undefined. */
export function captureValue(tape: Tape, value: unknown, place: Place): boolean {
  if (concernsAll(tape.rules) || hasEnumerable(objectPrototype)) {
    return captureProperty(tape, { '': value }, '', value)
  }
  if (typeof value !== 'object' || value === null || isProxy(value)) return walk(tape, '', value, undefined, place)
  return walkRead(tape, '', value, toJsonOf(value), undefined, isArray(value) ? tape.vocabulary.elements : place)
}

/** Whatever it is. Its key is only written if it has JSON. */
export function walk(tape: Tape, name: string | number, value: unknown, key: Key | undefined, place: Place): boolean {
  switch (typeof value) {
    case 'string':
    case 'number':
    case 'boolean':
      writePrimitive(tape, name, value, key)
      return true
    case 'object':
      if (value !== null) return walkObject(tape, name, value, key, place)
      writePrimitive(tape, name, value, key)
      return true
    case 'function':
    case 'bigint':
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      return captureExactly(tape, name, value, (value as unknown as { toJSON?: unknown }).toJSON, key)
    default:
      return false
  }
}

function walkObject(tape: Tape, name: string | number, value: object, key: Key | undefined, place: Place): boolean {
  if (isProxy(value)) return captureExactly(tape, name, value, toJsonOf(value), key)
  return walkRead(tape, name, value, toJsonOf(value), key, place)
}

/** As `walk`, for an object that is no proxy and whose `toJSON` was read. */
export function walkRead(
  tape: Tape,
  name: string | number,
  value: object,
  toJSON: unknown,
  key: Key | undefined,
  place: Place,
): boolean {
  if (typeof toJSON !== 'function') return walkResolved(tape, name, value, key, place)
  if (toJSON === dateToJSON && isDate(value)) {
    const time = dateJson(tape, value)
    if (time === undefined) return walkAnswer(tape, name, takeStopped(tape), key, place)
    writeKey(tape, key, name)
    tape.date(time)
    return true
  }
  if (isUntouched(tape.rules, value, toJSON) || fragmentOf(value) !== undefined) {
    return captureExactly(tape, name, value, undefined, key)
  }
  if (toJSON === bufferToJSON && isPlainBuffer(value)) {
    writeKey(tape, key, name)
    writeBuffer(tape, value)
    return true
  }
  if (isTwofold(tape.rules, value, toJSON)) return captureExactly(tape, name, value, toJSON, key)
  return walkAnswer(tape, name, apply(toJSON, value, [toText(name)]), key, place)
}

function takeStopped(tape: Tape): unknown {
  const { stopped } = tape
  tape.stopped = undefined
  return stopped
}

/** What a `toJSON` gave: whatever it is, but never asked for its own `toJSON`, as JSON.stringify would ask it. */
function walkAnswer(tape: Tape, name: string | number, value: unknown, key: Key | undefined, place: Place): boolean {
  const isPlace = place.hopeless === 0 && !place.isWild
  if (isPlace && typeof value === 'object' && value !== null && !isProxy(value)) {
    return walkResolved(tape, name, value, key, place)
  }
  return captureExactly(tape, name, value, undefined, key)
}

/** As `walk`, for an object that is no proxy, and whose `toJSON` is of no concern any more. */
function walkResolved(tape: Tape, name: string | number, value: object, key: Key | undefined, place: Place): boolean {
  if (isArray(value)) {
    writeKey(tape, key, name)
    walkArray(tape, name, value, place)
    return true
  }
  const { objects } = place
  let unwritten = key
  if (0 < objects.length) {
    writeKey(tape, key, name)
    unwritten = undefined
    for (let at = 0; at < objects.length; at += 1) {
      if (objects[at]?.capture(tape, value) !== true) continue
      prefer(place, objects, at)
      return true
    }
  }
  if (!isPlain(tape, value)) return captureExactly(tape, name, value, undefined, unwritten)
  if (place.isRoot && place.hopeless === 0 && mayLearn(place)) learnRoot(tape, value, place)
  writeKey(tape, unwritten, name)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  walkKeys(tape, name, value as Record<string, unknown>, place)
  return true
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion
function toJsonOf(value: object): unknown {
  return (value as { toJSON?: unknown }).toJSON
}

/** Whether `for…in` tells exactly its keys, and it stands for no primitive. */
function isPlain({ rules }: Tape, value: object): boolean {
  const prototype = prototypeOf(value)
  if (prototype === objectPrototype) return true
  if (rules.target !== 'json' && isMap(value)) return false
  if (isBoxed(value) || isRawJson(value) || isTypedArray(value) || fragmentOf(value) !== undefined) return false
  return prototype === null || isPlainPrototype(prototype)
}

/** An object that `isPlain`. */
function walkKeys(tape: Tape, name: string | number, value: Record<string, unknown>, place: Place): void {
  if (DEEPEST <= tape.depth) {
    captureContainer(tape, name, value)
    return
  }
  if (0 < place.hopeless) {
    place.hopeless -= 1
    stringifyContainer(tape, name, value)
    return
  }
  if (!enter(tape, name, value)) return
  tape.literal(OPEN_OBJECT)
  // Of its own keys, not of those in their values.
  let score = 0
  let isHopeless = false
  let previous: Key | undefined
  let predicted = place.first
  // Inherited keys there are none.
  // oxlint-disable-next-line guard-for-in
  for (const k in value) {
    if (!isHopeless && HOPELESS < score) {
      // The rest of its keys are not worth learning. What was read stays as it is written.
      isHopeless = true
      giveUp(place)
      tape.score -= score
    }
    let key: Key
    if (isHopeless) key = tape.vocabulary.unknown
    else if (predicted !== undefined && predicted.name === k) key = predicted
    else {
      if (previous === undefined && isBoxed(value)) break
      score -= tape.score
      key = mispredicted(tape, place, previous, k)
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
        } else walkObject(tape, k, x, key, key.place)
        break
      case 'function':
      case 'bigint':
        walk(tape, k, x, key, key.place)
        break
      default:
    }
    previous = key
    predicted = key.next
  }
  tape.depth -= 1
  if (previous === undefined && isBoxed(value)) {
    // It stands for a primitive after all. Nothing was read.
    tape.w -= 1
    captureExactly(tape, name, value, undefined, undefined)
    return
  }
  tape.literal(CLOSE_OBJECT)
}

/** More keys at one place are no record's; they are learned anew. */
const MOST_AT_PLACE = 256

/** The key that came instead. */
function mispredicted(tape: Tape, place: Place, previous: Key | undefined, name: string): Key {
  let key = place.keys.get(name)
  tape.score += key === undefined ? NEVER_SEEN : MISPLACED
  if (key === undefined) {
    key = tape.vocabulary.learn(name)
    if (key.isUnknown) return key
    if (place.keys.size === MOST_AT_PLACE) place.keys.clear()
    place.keys.set(name, key)
  }
  if (previous === undefined) place.first = key
  else if (!previous.isUnknown) previous.next = key
  return key
}

/** A container as text, from where all that is learned from its keys would be lost. */
function stringifyContainer(tape: Tape, name: string | number, value: object): void {
  const text = stringified(tape, value)
  if (typeof text === 'string') tape.json(text, 0, text.length)
  else captureContainer(tape, name, text?.value ?? value)
}

function walkArray(tape: Tape, name: string | number, value: readonly unknown[], place: Place): void {
  if (DEEPEST <= tape.depth) {
    captureContainer(tape, name, value)
    return
  }
  const { length } = value
  if ((place.isWild || 0 < place.light) && areWild(value, length, place)) {
    stringifyContainer(tape, name, value)
    return
  }
  if (!enter(tape, name, value)) return
  tape.literal(OPEN_ARRAY)
  walkElements(tape, value, 0, length, place)
  tape.literal(CLOSE_ARRAY)
  tape.depth -= 1
}

/** Elements from `start` to `length`, which is what the array's was when it was come to. */
export function walkElements(tape: Tape, value: readonly unknown[], start: number, length: number, place: Place): void {
  let index = start
  let before = tape.score
  if (!place.isWild) index = runCaptures(tape, value, index, length, place)
  let haveLearned = false
  let judgement = index + WINDOW
  let begin = index
  let objects = 0
  while (index < length) {
    if (judgement <= index && !haveLearned) {
      // Their keys were new to it.
      haveLearned = true
      before = tape.score
      judgement = index + WINDOW
    }
    if (judgement <= index) {
      if (HOPELESS_SCORE * WINDOW < tape.score - before) {
        place.isWild = true
        tape.score = before
        walkHopeless(tape, value, index, length, place)
        return
      }
      if (WINDOW * 2 <= length - index && objects === index - begin) {
        const wasWild = place.isWild
        place.isWild = false
        if (wasWild || learnElements(tape, value, index, place)) index = runCaptures(tape, value, index, length, place)
        else if (HAS_FAST_STRINGIFY && place.captures.length === 0) place.light = RETRY
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
        if (RUN <= length - index) index = walkStrings(tape, value, index, length, place)
        continue
      case 'number':
        tape.number(x)
        index += 1
        if (RUN <= length - index) index = walkNumbers(tape, value, index, length, (x | 0) === x, place)
        continue
      case 'boolean':
        tape.words[tape.w++] = x ? TRUE : FALSE
        break
      case 'object':
        if (x === null) tape.words[tape.w++] = NULL
        else {
          objects += 1
          if (!walkObject(tape, index, x, undefined, place)) tape.literal(NULL)
        }
        break
      default:
        walkElement(tape, index, x, place)
    }
    index += 1
  }
  if (0 < objects && length < WINDOW * 4) sample(tape, value, length, place)
}

/**
 * Whether its first elements are such as were not worth a walk here: always of new keys, or light. Runs no code of
 * theirs. New keys alone say nothing: they must be new in each of them.
 */
function areWild(value: readonly unknown[], length: number, place: Place): boolean {
  const end = leastOf(length, FEW)
  const seen = newSet<string>()
  let strangers = 0
  let areLight = 0 < place.light
  for (let index = 0; index < end; index += 1) {
    const element: unknown = descriptorOf(value, index)?.value
    if (typeof element !== 'object' || element === null || isProxy(element) || isArray(element)) return false
    // It has as many keys as elements.
    if (isTypedArray(element)) return false
    const keys = keysOf(element)
    if (0 < index) strangers += countNew(keys, place, seen)
    addAll(keys, seen)
    areLight &&= isLight(element, keys)
  }
  if (HOPELESS_SCORE * (end - 1) < strangers * NEVER_SEEN) return true
  if (areLight) place.light -= 1
  return areLight
}

function countNew(keys: readonly string[], place: Place, seen: ReadonlySet<string>): number {
  let count = 0
  for (let index = 0; index < keys.length; index += 1) {
    const key = keys[index] ?? ''
    if (!seen.has(key) && !place.keys.has(key)) count += 1
  }
  return count
}

function addAll(keys: readonly string[], seen: Set<string>): void {
  for (let index = 0; index < keys.length; index += 1) seen.add(keys[index] ?? '')
}

function isLight(value: object, keys: readonly string[]): boolean {
  if (LIGHT < keys.length) return false
  for (let index = 0; index < keys.length; index += 1) {
    const found: unknown = descriptorOf(value, keys[index] ?? '')?.value
    if (typeof found === 'object' && found !== null) return false
  }
  return true
}

/** The rest of an array whose objects are not worth learning. One by one: code of one may change those after it. */
function walkHopeless(tape: Tape, value: readonly unknown[], start: number, length: number, place: Place): void {
  for (let index = start; index < length; index += 1) {
    place.hopeless = 1
    walkElement(tape, index, value[index], place)
  }
  place.hopeless = 0
}

/** An element, whatever it is. */
function walkElement(tape: Tape, index: number, value: unknown, place: Place): void {
  if (!walk(tape, index, value, undefined, place)) tape.literal(NULL)
}

/** Strings from `start` on, and the first element that is none. Tells where the next one is. */
function walkStrings(tape: Tape, value: readonly unknown[], start: number, length: number, place: Place): number {
  let index = start
  while (index < length) {
    if (tape.wordLimit < tape.w) tape.next()
    const { words } = tape
    const end = leastOf(length, index + tape.wordLimit - tape.w + 1)
    // Locals: each store into a property would tell the collector.
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
      walkElement(tape, index - 1, x, place)
      return index
    }
    tape.string(x)
  }
  return index
}

/** As `walkStrings`, for numbers. */
function walkNumbers(
  tape: Tape,
  value: readonly unknown[],
  start: number,
  length: number,
  areInts: boolean,
  place: Place,
): number {
  const index = captureNumbers(tape, value, start, length, areInts, copyInts, copyDoubles)
  if (index === length) return index
  tape.room()
  walkElement(tape, index, takeStopped(tape), place)
  return index + 1
}

const copyInts = makeCopyInts()
const copyDoubles = makeCopyDoubles()

/** Numbers from `start` on, integers before doubles. Tells where the first element stands that is none. */
export function captureNumbers(
  tape: Tape,
  value: readonly unknown[],
  start: number,
  length: number,
  areInts: boolean,
  copyIntsTo: Copy<Int32Array>,
  copyDoublesTo: Copy<Float64Array>,
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
  copy: Copy<Int32Array>,
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
  copy: Copy<Float64Array>,
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

/** The generated functions, one after the other, on the elements from `start` on. Tells where they gave up. */
function runCaptures(tape: Tape, value: readonly unknown[], start: number, length: number, place: Place): number {
  const { captures } = place
  let index = start
  for (let at = 0; at < captures.length && index < length; at += 1) {
    const capture = captures[at]
    if (capture === undefined) break
    const before = index
    index = runCapture(tape, capture, value, index, length)
    if (index === length || WINDOW < index - before) prefer(place, captures, at)
  }
  return index
}

function runCapture(tape: Tape, capture: Capture, value: readonly unknown[], start: number, length: number): number {
  const { missed } = tape
  const index = capture(tape, value, start, length)
  tape.missed = missed
  return index
}

/** Generates a function for elements like those before `end`. */
function learnElements(tape: Tape, value: readonly unknown[], end: number, place: Place): boolean {
  if (!mayLearn(place)) return false
  return attempt(() => {
    const sketch = new Sketch()
    addElements(sketch, value, mostOf(0, end - WINDOW * 2), end)
    return addLearned(tape, sketch, place)
  })
}

/** Learning runs no code of the value. Where it throws, somebody has replaced a built-in that it calls: nothing is learned. */
function attempt(toLearn: () => boolean): boolean {
  try {
    return toLearn()
  } catch {
    // Whatever was put in its place throws.
    return false
  }
}

function addLearned(tape: Tape, sketch: Sketch, place: Place): boolean {
  place.attempts += 1
  const capture = generate(tape.vocabulary, sketch, place)
  if (capture === undefined) return false
  addFirst(place.captures, capture)
  return true
}

/** Short arrays teach over several calls. */
function sample(tape: Tape, value: readonly unknown[], length: number, place: Place): void {
  if (!mayLearn(place)) return
  const sketch = (place.sketch ??= new Sketch())
  attempt(() => {
    addElements(sketch, value, 0, leastOf(length, LONGEST_SAMPLE))
    if (sketch.count < SAMPLES) return false
    place.sketch = undefined
    return addLearned(tape, sketch, place)
  })
}

/** What the elements are, without running any code of theirs. */
function addElements(sketch: Sketch, value: readonly unknown[], start: number, end: number): void {
  for (let index = start; index < end; index += 1) sketch.add(descriptorOf(value, index)?.value, 0)
}

/**
 * What a generated function leaves to the walk, and how far it has come itself. `outer` are the containers at the spot, and
 * the indexes that stand for names it does not know.
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
  goBack(tape, depth, spot, walk(tape, nameAt(spot, outer), value, spot.key, spot.place))
}

/** The same for an object that is no proxy and whose `toJSON` was read. */
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
  goBack(tape, depth, spot, walkRead(tape, nameAt(spot, outer), value, toJSON, spot.key, spot.place))
}

/** The same for what the `toJSON` of a date gave, which is in `tape.stopped`. */
export function captureAnswer(
  tape: Tape,
  words: number,
  doubles: number,
  text: string,
  spot: Spot,
  ...outer: readonly unknown[]
): void {
  const depth = goOn(tape, words, doubles, text, spot, outer)
  goBack(tape, depth, spot, walkAnswer(tape, nameAt(spot, outer), takeStopped(tape), spot.key, spot.place))
}

/** The rest of an array of numbers, from one that `tape.stopped` is and that is none. */
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
  walkElement(tape, at, takeStopped(tape), spot.place)
  walkElements(tape, value, at + 1, length, spot.place)
  tape.depth = depth
}

/** What the generated function has written counts. Tells how deep it was. */
function goOn(tape: Tape, words: number, doubles: number, text: string, spot: Spot, outer: readonly unknown[]): number {
  tape.w = words
  tape.d = doubles
  tape.text = text
  tape.room()
  return enterAll(tape, spot, outer)
}

/** Puts the containers on the path. Tells how deep it was. */
function enterAll(tape: Tape, { names }: Spot, outer: readonly unknown[]): number {
  const { path, depth } = tape
  let at = 0
  for (let index = 0; index < names.length; index += 1) {
    path[depth + index] = outer[at]
    at += 1
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    tape.names[depth + index] = names[index] ?? (outer[at++] as number)
  }
  tape.depth = depth + names.length
  return depth
}

function nameAt({ name }: Spot, outer: readonly unknown[]): string | number {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return name ?? (outer[outer.length - 1] as number)
}

/** With room for what the generated function writes next. */
function goBack(tape: Tape, depth: number, { key, frame }: Spot, isWritten: boolean): void {
  if (!isWritten && key === undefined) tape.literal(NULL)
  tape.depth = depth
  tape.reserve(frame.need)
}

function learnRoot(tape: Tape, value: object, place: Place): void {
  const sketch = (place.sketch ??= new Sketch())
  attempt(() => {
    sketch.add(value, 0)
    if (sketch.count < SAMPLES) return false
    place.sketch = undefined
    place.attempts += 1
    generateObject(tape.vocabulary, sketch, place)
    return true
  })
}
