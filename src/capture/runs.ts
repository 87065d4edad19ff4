/** Captures runs of numbers and of strings, on the JS thread. `fast-walk.ts` and generated functions call it. */

import { leastOf } from '../runtime/intrinsics.ts'
import type { CaptureContext } from './context.ts'
import { makeCopyDoubles, makeCopyInts, type CopyLoop } from './loops.ts'
import { DOUBLES, INTS, ROPE } from './opcodes.ts'
import { LONG_ROPE, SHORT_STRING } from './strings.ts'

/** Loops that copy the numbers of one array, or of arrays at one place. */
export interface NumberLoops {
  readonly ints: CopyLoop<Int32Array>
  readonly doubles: CopyLoop<Float64Array>
  /** Whether integers are expected. */
  readonly areInts: boolean
}

/** Loops of the walk, for arrays that begin with an integer, and for others. */
const WALK = { ints: makeCopyInts(), doubles: makeCopyDoubles() }
const INTS_FIRST: NumberLoops = { ...WALK, areInts: true }
const DOUBLES_ONLY: NumberLoops = { ...WALK, areInts: false }

/** Makes loops for arrays at one place, which see no others. */
export function makeLoops(areInts: boolean): NumberLoops {
  return { ints: makeCopyInts(), doubles: makeCopyDoubles(), areInts }
}

/** Captures a run of values like `first`, from `context.at` on. */
export function captureRun(
  context: CaptureContext,
  value: readonly unknown[],
  length: number,
  first: string | number,
): number {
  if (typeof first === 'string') return captureStrings(context, value, length)
  return captureNumbers(context, value, length, (first | 0) === first ? INTS_FIRST : DOUBLES_ONLY)
}

/**
 * Captures strings from `context.at` to `length`. Returns the index of the first element that is not a string, which is
 * in `context.stopped` then.
 */
export function captureStrings(context: CaptureContext, value: readonly unknown[], length: number): number {
  let index = context.at
  while (index < length) {
    if (context.wordLimit < context.w) context.next()
    const { words } = context
    const end = leastOf(length, index + context.wordLimit - context.w + 1)
    // Locals: a store into a property has a write barrier.
    let text = ''
    let { w } = context
    let x: unknown = ''
    for (; index < end; index += 1) {
      x = value[index]
      if (typeof x !== 'string' || SHORT_STRING < x.length || LONG_ROPE / 2 < text.length) break
      words[w] = (x.length << 4) | ROPE
      w += 1
      text += x
    }
    context.w = w
    context.text += text
    if (LONG_ROPE < context.text.length) context.flushLong()
    if (index === end) continue
    context.room()
    if (typeof x !== 'string') {
      context.stopped = x
      return index
    }
    index += 1
    context.string(x)
  }
  return index
}

/**
 * Captures numbers from `context.at` to `length`, integers before doubles. Returns the index of the first element that
 * is not a number, which is in `context.stopped` then.
 */
export function captureNumbers(
  context: CaptureContext,
  value: readonly unknown[],
  length: number,
  loops: NumberLoops,
): number {
  if (loops.areInts) {
    const index = captureInts(context, value, length, loops.ints)
    if (index === length || typeof context.stopped !== 'number') return index
    context.room()
    context.number(context.stopped)
    context.at = index + 1
  }
  return captureDoubles(context, value, length, loops.doubles)
}

function captureInts(
  context: CaptureContext,
  value: readonly unknown[],
  length: number,
  copy: CopyLoop<Int32Array>,
): number {
  let index = context.at
  while (index < length) {
    if (context.wordLimit < context.w) context.next()
    const at = context.w
    const end = leastOf(length, index + context.wordLimit - at + 1)
    const count = copy(context, value, index, end, context.words, at + 1)
    context.words[at] = (count << 4) | INTS
    context.w = at + 1 + count
    index += count
    if (index < end) return index
  }
  return index
}

function captureDoubles(
  context: CaptureContext,
  value: readonly unknown[],
  length: number,
  copy: CopyLoop<Float64Array>,
): number {
  let index = context.at
  while (index < length) {
    context.room()
    const end = leastOf(length, index + context.doubleLimit - context.d + 1)
    const count = copy(context, value, index, end, context.doubles, context.d)
    context.words[context.w++] = (count << 4) | DOUBLES
    context.d += count
    index += count
    if (index < end) return index
  }
  return index
}
