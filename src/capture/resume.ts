/**
 * What generated functions call where they meet a value that they do not know: the walk takes over, then the function
 * goes on. Runs on the JS thread; `learning.ts` passes these functions to the generator, which so need not import them.
 */

import type { CaptureContext } from './context.ts'
import { walk, walkAnswer, walkCustom, walkElement, walkElements, walkResolved } from './fast-walk.ts'
import type { Helpers, Spot } from './learned.ts'
import { NULL } from './opcodes.ts'
import { NO_KEY } from './path-node.ts'
import { captureNumbers } from './runs.ts'

/**
 * Captures a value that a generated function does not know. The arguments say how far that function has written.
 * `outer` has its open containers, and the indexes that stand for names it does not know.
 */
function captureOther(
  value: unknown,
  context: CaptureContext,
  words: number,
  doubles: number,
  text: string,
  spot: Spot,
  ...outer: readonly unknown[]
): void {
  const depth = goOn(context, words, doubles, text, spot, outer)
  goBack(context, depth, spot, walk(context, nameAt(spot, outer), value, spot.edge))
}

/** Captures an object for a generated function: it is not a proxy, and its `toJSON` was read. */
function captureRead(
  value: object,
  toJSON: unknown,
  context: CaptureContext,
  words: number,
  doubles: number,
  text: string,
  spot: Spot,
  ...outer: readonly unknown[]
): void {
  const depth = goOn(context, words, doubles, text, spot, outer)
  const name = nameAt(spot, outer)
  context.toJSON = toJSON
  const capture = typeof toJSON === 'function' ? walkCustom : walkResolved
  goBack(context, depth, spot, capture(context, name, value, spot.edge))
}

/** Captures the answer of a date's `toJSON`, from `context.stopped`, for a generated function. */
function captureAnswer(
  context: CaptureContext,
  words: number,
  doubles: number,
  text: string,
  spot: Spot,
  ...outer: readonly unknown[]
): void {
  const depth = goOn(context, words, doubles, text, spot, outer)
  goBack(context, depth, spot, walkAnswer(context, nameAt(spot, outer), context.takeStopped(), spot.edge))
}

/** Captures the rest of an array of numbers, from `context.at` on, where `context.stopped` is not a number. */
function captureRest(
  value: readonly unknown[],
  length: number,
  context: CaptureContext,
  spot: Spot,
  ...outer: readonly unknown[]
): void {
  const { at } = context
  const depth = enterAll(context, spot, outer)
  context.room()
  walkElement(context, at, context.takeStopped(), spot.edge.node)
  context.at = at + 1
  walkElements(context, value, length, spot.edge.node)
  context.depth = depth
}

export const HELPERS: Helpers = { captureAnswer, captureNumbers, captureOther, captureRead, captureRest }

/** Takes over what the generated function has written. Returns how deep the context was. */
function goOn(
  context: CaptureContext,
  words: number,
  doubles: number,
  text: string,
  spot: Spot,
  outer: readonly unknown[],
): number {
  context.w = words
  context.d = doubles
  context.text = text
  context.room()
  return enterAll(context, spot, outer)
}

/** Puts the open containers on the path. Returns how deep the context was. */
function enterAll(context: CaptureContext, { names }: Spot, outer: readonly unknown[]): number {
  const { path, depth } = context
  let at = 0
  for (let index = 0; index < names.length; index += 1) {
    path[depth + index] = outer[at]
    at += 1
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- generated code passes an index where a name is missing
    context.names[depth + index] = names[index] ?? (outer[at++] as number)
  }
  context.depth = depth + names.length
  return depth
}

function nameAt({ name }: Spot, outer: readonly unknown[]): string | number {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- generated code passes an index where a name is missing
  return name ?? (outer[outer.length - 1] as number)
}

/** Goes back to the generated function, with room for what it writes next. */
function goBack(context: CaptureContext, depth: number, { edge, frame }: Spot, isWritten: boolean): void {
  if (!isWritten && edge.word === NO_KEY) context.literal(NULL)
  context.depth = depth
  context.reserve(frame.need)
}
