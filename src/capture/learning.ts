/**
 * Generates functions for path nodes that have cost enough, when the event loop is idle: in slices of about a
 * millisecond, outside of calls. Runs on the JS thread; `encoder.ts` passes `requestFunction` to its vocabularies.
 */

import { setTimeout } from 'node:timers'
import { apply, descriptorOf, isArray, isProxy, isTypedArray, keysOf, mostOf, now } from '../runtime/intrinsics.ts'
import { generateElements, generateObject } from './generate.ts'
import type { PathNode } from './path-node.ts'
import { HELPERS } from './resume.ts'
import type { Sketch } from './sketch.ts'
import { tuning } from './tuning.ts'
import type { Vocabulary } from './vocabulary.ts'

/** Most elements of one array that are sampled. */
const SAMPLES = 24
/** Whole values that are sampled before a function is generated for them. */
const LEAST_OBJECTS = 8

/** A path node that waits for a function. */
interface Lesson {
  readonly vocabulary: Vocabulary
  readonly node: PathNode
  /** A value there. Where it is collected before its turn comes, the next one serves. */
  readonly value: WeakRef<object>
  /** Whether the function is for elements. */
  readonly isList: boolean
  /** The sketch, once the value was sampled. */
  sketch: Sketch | undefined
  next: Lesson | undefined
}

let first: Lesson | undefined
let last: Lesson | undefined
/** When the next slice is due; undefined if none is planned. */
let due: number | undefined
let waits = 0

const { WeakRef: Reference } = globalThis
// oxlint-disable-next-line typescript/unbound-method -- called with the `this` it needs
const { deref } = WeakRef.prototype

/** Asks for a function for values like this one, which have cost enough at their node. */
export function requestFunction(vocabulary: Vocabulary, node: PathNode, value: object): void {
  const isLong = isArray(value) && tuning.leastElements <= value.length
  if (!isLong && holdsLongArray(value)) {
    // The array has a path node of its own, once its container is walked.
    node.wait()
    node.open()
    return
  }
  // Other short arrays and objects are parts of something larger, which may learn.
  if (!isLong && (!node.isRoot || isArray(value))) {
    node.wait()
    return
  }
  node.isQueued = true
  const lesson = { vocabulary, node, value: new Reference(value), isList: isLong, sketch: undefined, next: undefined }
  if (last === undefined) first = lesson
  else last.next = lesson
  last = lesson
  if (tuning.sliceGapMs === 0) learnAll()
  else plan()
}

/** Plans a slice. The timer keeps nothing alive. */
function plan(): void {
  if (due !== undefined || first === undefined) return
  due = now() + tuning.sliceGapMs
  setTimeout(runSlice, tuning.sliceGapMs).unref()
}

function runSlice(): void {
  const isBusy = due !== undefined && due + tuning.busyFromMs < now()
  due = undefined
  waits = isBusy ? waits + 1 : 0
  if (!isBusy || tuning.mostWaits <= waits) {
    waits = 0
    step()
  }
  plan()
}

/** Learns everything that was asked for, now. */
function learnAll(): void {
  while (first !== undefined) step()
}

/** Does one step of the first lesson: its sketch, or its function. */
function step(): void {
  const lesson = first
  if (lesson === undefined) return
  if (lesson.sketch === undefined && attempt(lesson, sample)) return
  first = lesson.next
  if (first === undefined) last = undefined
  lesson.node.isQueued = false
  if (lesson.sketch !== undefined) attempt(lesson, generate)
}

/** Samples the value. Returns whether a function may be generated next. */
function sample(lesson: Lesson): boolean {
  const value: object | undefined = apply(deref, lesson.value, [])
  if (value === undefined) return false
  const { node } = lesson
  const sketch = node.takeSketch()
  if (isArray(value)) sampleElements(sketch, value)
  else sketch.add(value, tuning.mostSampled)
  if (!isArray(value) && sketch.count < LEAST_OBJECTS) {
    node.keepSketch(sketch)
    return false
  }
  if (!node.pays(sketch.weight)) return false
  lesson.sketch = sketch
  return true
}

/** Samples elements from all parts of an array, without running any code of theirs. */
function sampleElements(sketch: Sketch, value: readonly unknown[]): void {
  const { length } = value
  const distance = mostOf(1, length / SAMPLES)
  let left = tuning.mostSampled
  for (let index = 0; index < length && 0 < left; index += distance) {
    left -= sketch.add(descriptorOf(value, index | 0)?.value, left)
  }
}

function generate({ vocabulary, node, sketch, isList }: Lesson): boolean {
  if (sketch === undefined) return false
  const make = isList ? generateElements : generateObject
  const learned = make(vocabulary, sketch, node, HELPERS)
  if (learned === undefined) node.wait()
  else node.learn(learned)
  return learned !== undefined
}

/**
 * Does a step of a lesson, which runs no code of the value. If it throws, somebody has replaced a built-in that it calls:
 * nothing is learned, and the node waits.
 */
function attempt(lesson: Lesson, toLearn: (lesson: Lesson) => boolean): boolean {
  try {
    return toLearn(lesson)
  } catch {
    // A replaced built-in throws.
    lesson.node.wait()
    return false
  }
}

/** A container to be looked into. */
interface Found {
  readonly value: object
  next: Found | undefined
}

/** Whether a long array of containers is in the value, not below another long array, nor in an object of many keys. */
function holdsLongArray(value: object): boolean {
  const start: Found = { value, next: undefined }
  let end = start
  let left = tuning.mostLooked
  const add = (inner: unknown): boolean => {
    if (typeof inner !== 'object' || inner === null || isProxy(inner) || left === 0) return false
    left -= 1
    end.next = { value: inner, next: undefined }
    end = end.next
    return isLongArray(inner)
  }
  for (let found: Found | undefined = start; found !== undefined; found = found.next) {
    if (hasLongPart(found.value, add)) return true
  }
  return false
}

/** Calls `add` for the values in a small container until one call returns true. */
function hasLongPart(value: object, add: (inner: unknown) => boolean): boolean {
  if (isArray(value)) return add(descriptorOf(value, 0)?.value) || add(descriptorOf(value, value.length - 1)?.value)
  if (isTypedArray(value)) return false
  const keys = keysOf(value)
  if (tuning.mostKeysLooked < keys.length) return false
  for (let index = 0; index < keys.length; index += 1) {
    if (add(descriptorOf(value, keys[index] ?? '')?.value)) return true
  }
  return false
}

function isLongArray(value: object): boolean {
  if (!isArray(value) || value.length < tuning.leastElements) return false
  const element: unknown = descriptorOf(value, 0)?.value
  return typeof element === 'object' && element !== null
}
