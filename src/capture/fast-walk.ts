/**
 * Captures plain data by prediction, on the JS thread: the keys of an object are usually those that followed each other
 * here before. `spec-walk.ts` takes over, from where it stands, where a value is not known to be plain. Nothing is read
 * twice, and nothing written is taken back. `root.ts` and `resume.ts` call it.
 */

import { apply, descriptorOf, isArray, isDate, isProxy, toText } from '../runtime/intrinsics.ts'
import { bufferToJSON, dateJson, dateToJSON, isPlainBuffer, isTwofold, isUntouched } from './builtin-tojson.ts'
import type { CaptureContext } from './context.ts'
import { textWithin } from './engine.ts'
import { writeKey, writeName, writePrimitive } from './keys.ts'
import { CLOSE_ARRAY, CLOSE_OBJECT, FALSE, NULL, OPEN_ARRAY, OPEN_OBJECT, TRUE } from './opcodes.ts'
import { endRun, runElements, runObject, startRun, wayOf } from './parts.ts'
import { ENGINE, LEARNED, NO_KEY, OPEN, type PathEdge, type PathNode } from './path-node.ts'
import { enter } from './open-path.ts'
import { isPlain, mispredicted } from './prediction.ts'
import { rawJsonBytesOf } from './raw-json.ts'
import { captureNumbers, captureRun, makeLoops } from './runs.ts'
import { captureContainer, captureExactly } from './spec-walk.ts'
import { tuning } from './tuning.ts'
import { writeBuffer } from './typed-array.ts'

/** Levels of nesting that the walk handles. `spec-walk.ts`, which has a stack of its own, captures deeper values. */
const DEEPEST = 100
/** Least length at which an array of numbers or strings is captured as a run. */
const RUN = 4

/** Captures any value. Its key is written only if the value has JSON. */
export function walk(context: CaptureContext, name: string | number, value: unknown, edge: PathEdge): boolean {
  switch (typeof value) {
    case 'string':
    case 'number':
    case 'boolean':
      writePrimitive(context, name, value, edge)
      return true
    case 'object':
      if (value !== null) return walkObject(context, name, value, edge)
      writePrimitive(context, name, value, edge)
      return true
    case 'function':
    case 'bigint':
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every function and bigint has properties
      context.toJSON = (value as unknown as { toJSON?: unknown }).toJSON
      return captureExactly(context, name, value, edge)
    default:
      return false
  }
}

/** Captures an object. Reads its `toJSON` first, as JSON.stringify does. */
export function walkObject(context: CaptureContext, name: string | number, value: object, edge: PathEdge): boolean {
  const isOdd = isProxy(value)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every object may have such a property
  const { toJSON } = value as { toJSON?: unknown }
  if (isOdd) {
    context.toJSON = toJSON
    return captureExactly(context, name, value, edge)
  }
  if (typeof toJSON !== 'function') return walkResolved(context, name, value, edge)
  context.toJSON = toJSON
  return walkCustom(context, name, value, edge)
}

/** Captures an object that is not a proxy, and whose `toJSON` is a function that was read: `context.toJSON`. */
export function walkCustom(context: CaptureContext, name: string | number, value: object, edge: PathEdge): boolean {
  const toJSON = context.takeToJson()
  if (toJSON === dateToJSON && isDate(value)) {
    const time = dateJson(context, value)
    if (time === undefined) return walkAnswer(context, name, context.takeStopped(), edge)
    writeKey(context, edge, name)
    context.date(time)
    return true
  }
  if (isUntouched(context.rules, value, toJSON) || rawJsonBytesOf(value) !== undefined) {
    return captureExactly(context, name, value, edge)
  }
  if (toJSON === bufferToJSON && isPlainBuffer(value)) {
    writeKey(context, edge, name)
    writeBuffer(context, value)
    return true
  }
  if (isTwofold(context.rules, value, toJSON)) {
    context.toJSON = toJSON
    return captureExactly(context, name, value, edge)
  }
  return walkAnswer(context, name, callToJson(toJSON, value, name), edge)
}

function callToJson(toJSON: unknown, value: object, name: string | number): unknown {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers have found that it is a function
  return apply(toJSON as Function, value, [toText(name)])
}

/** Captures the answer of a `toJSON`. Its own `toJSON` is not called: JSON.stringify does not call it either. */
export function walkAnswer(context: CaptureContext, name: string | number, value: unknown, edge: PathEdge): boolean {
  if (typeof value === 'object' && value !== null && !isProxy(value)) return walkResolved(context, name, value, edge)
  return captureExactly(context, name, value, edge)
}

/** Captures an object that is not a proxy and whose `toJSON` no longer matters. */
export function walkResolved(context: CaptureContext, name: string | number, value: object, edge: PathEdge): boolean {
  // Elements go the way of their array.
  if (edge.word === NO_KEY) return walkContainer(context, name, value, edge)
  if (wayOf(context, edge.node, value) === ENGINE && captureText(context, name, value, edge)) return true
  return walkPart(context, name, value, edge)
}

/** Writes a part as the text of JSON.stringify. Returns false, with nothing written, where the engine may not be used. */
function captureText(context: CaptureContext, name: string | number, value: object, edge: PathEdge): boolean {
  const text = textWithin(context, value, edge.node)
  context.vocabulary.learnFrom(edge.node, value)
  if (typeof text !== 'string') edge.node.open()
  if (text === undefined) return false
  writeKey(context, edge, name)
  if (typeof text === 'string') context.json(text, 0, text.length)
  else captureContainer(context, name, text.value)
  return true
}

/** Captures an object the way that `context.way` says: by the generated function of its node, or by a walk. */
export function walkPart(context: CaptureContext, name: string | number, value: object, edge: PathEdge): boolean {
  const run = startRun(context, edge.node, value)
  if (isArray(value) || context.way !== LEARNED) walkContainer(context, name, value, edge)
  else {
    context.way = OPEN
    writeKey(context, edge, name)
    context.hasGivenUp = !runObject(context, edge.node, value)
    if (context.hasGivenUp) walkContainer(context, name, value, edge.node.element)
  }
  if (run !== undefined) endRun(context, run)
  return true
}

/** Walks an object whose way is decided. */
export function walkContainer(context: CaptureContext, name: string | number, value: object, edge: PathEdge): boolean {
  if (isArray(value)) {
    writeKey(context, edge, name)
    walkArray(context, name, value, edge.node)
    return true
  }
  if (!isPlain(context, value)) return captureExactly(context, name, value, edge)
  writeKey(context, edge, name)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a plain object has string keys
  walkKeys(context, name, value as Record<string, unknown>, edge.node)
  return true
}

/** Captures an object that `isPlain`. */
function walkKeys(
  context: CaptureContext,
  name: string | number,
  value: Record<string, unknown>,
  node: PathNode,
): void {
  if (DEEPEST <= context.depth) {
    captureContainer(context, name, value)
    return
  }
  if (!enter(context, name, value)) return
  context.literal(OPEN_OBJECT)
  let previous: PathEdge | undefined
  let predicted = node.first
  // oxlint-disable-next-line guard-for-in -- `isPlain` found no inherited keys
  for (const k in value) {
    const edge: PathEdge =
      predicted !== undefined && predicted.name === k ? predicted : mispredicted(context, node, previous, k)
    const x = value[k]
    if (context.wordLimit < context.w || context.doubleLimit < context.d) context.next()
    switch (typeof x) {
      case 'string':
        writeName(context, edge, k)
        context.string(x)
        break
      case 'number':
        writeName(context, edge, k)
        context.number(x)
        break
      case 'boolean':
        writeName(context, edge, k)
        context.words[context.w++] = x ? TRUE : FALSE
        break
      case 'object':
        if (x === null) {
          writeName(context, edge, k)
          context.words[context.w++] = NULL
        } else walkObject(context, k, x, edge)
        break
      case 'function':
      case 'bigint':
        walk(context, k, x, edge)
        break
      default:
    }
    previous = edge
    predicted = edge.next
  }
  context.literal(CLOSE_OBJECT)
  context.depth -= 1
}

/** Captures an array, its first elements by a generated function if there is one. */
function walkArray(context: CaptureContext, name: string | number, value: readonly unknown[], node: PathNode): void {
  if (DEEPEST <= context.depth) {
    captureContainer(context, name, value)
    return
  }
  const { length } = value
  const isLearned = context.way === LEARNED
  context.way = OPEN
  if (!enter(context, name, value)) return
  context.literal(OPEN_ARRAY)
  const start = isLearned ? runElements(context, node, value, length) : 0
  context.at = start === 0 ? walkNumbers(context, value, length, node) : start
  walkElements(context, value, length, node)
  context.literal(CLOSE_ARRAY)
  context.depth -= 1
  context.hasGivenUp = isLearned && start < length
}

/**
 * Captures an array that begins with a run of numbers by loops of its node. Returns the index of the first element that is
 * left. In a loop that sees arrays of all kinds, V8 turns arrays of doubles into arrays of objects: 16 bytes a number more.
 */
function walkNumbers(context: CaptureContext, value: readonly unknown[], length: number, node: PathNode): number {
  if (length < tuning.leastElements) return 0
  const first: unknown = descriptorOf(value, 0)?.value
  if (typeof first !== 'number') return 0
  node.numbers ??= makeLoops((first | 0) === first)
  context.at = 0
  const index = captureNumbers(context, value, length, node.numbers)
  if (index === length) return length
  context.room()
  // The loop has read the element behind the run.
  walkElement(context, index, context.takeStopped(), node)
  return index + 1
}

/** Captures elements from `context.at` to `length`: the length that the array had when it was reached. */
export function walkElements(context: CaptureContext, value: readonly unknown[], length: number, node: PathNode): void {
  let index = context.at
  while (index < length) {
    const x = value[index]
    if (context.wordLimit < context.w || context.doubleLimit < context.d) context.next()
    walkElement(context, index, x, node)
    index += 1
    if (length - index < RUN || (typeof x !== 'number' && typeof x !== 'string')) continue
    context.at = index
    index = captureRun(context, value, length, x)
    if (index === length) return
    // The run has read the element behind it.
    walkElement(context, index, context.takeStopped(), node)
    index += 1
  }
}

/** Captures any element. One without JSON is null. */
export function walkElement(context: CaptureContext, index: number, value: unknown, node: PathNode): void {
  if (!walk(context, index, value, node.element)) context.literal(NULL)
}
