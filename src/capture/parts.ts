/**
 * Runs the decisions of path nodes: which way a part goes, its generated function, and what it costs. Lives on the JS
 * thread; the walks call it.
 */

import { isArray, isBoxed, now } from '../runtime/intrinsics.ts'
import type { CaptureContext } from './context.ts'
import { LEARNED, OPEN, type PathNode, type Way } from './path-node.ts'
import { NO_RULES } from './rules.ts'
import { tuning } from './tuning.ts'

/**
 * Chooses the way of a value at a node, and leaves it in `context.way`. JSON.stringify knows plain rules only, takes no
 * bytes, and has no bound.
 */
export function wayOf(context: CaptureContext, node: PathNode, value: object): Way {
  const isPlain = context.rules === NO_RULES && !context.transfer && context.maxBytes === Infinity
  context.way = isPlain ? node.wayOf(value) : node.learned === undefined ? OPEN : LEARNED
  return context.way
}

/** A value whose capture is timed. */
export interface TimedRun {
  readonly node: PathNode
  readonly value: object
  /** Elements of an array; 1 for an object. */
  readonly count: number
  readonly way: Way
  readonly start: number
}

/** Looks at the clock before a value is captured, if it is worth that. */
export function startRun({ way }: CaptureContext, node: PathNode, value: object): TimedRun | undefined {
  const count = isArray(value) ? value.length : 1
  if (count < tuning.leastElements && !node.isRoot && !(way === LEARNED && node.isRunTimed)) return undefined
  return { node, value, count, way, start: now() }
}

/** Counts what the capture of a value has cost, and asks for a function where that is due. */
export function endRun({ rules, vocabulary, hasGivenUp }: CaptureContext, run: TimedRun): void {
  const { node, value, count, way, start } = run
  const ms = now() - start
  if (rules !== NO_RULES) node.addOtherCost(ms)
  else if (way === LEARNED) node.addRun(ms, count, hasGivenUp)
  else node.addCost(ms, count)
  vocabulary.learnFrom(node, value)
}

/** Runs the generated function on the elements from the first on. Returns the index where it gave up. */
export function runElements(
  context: CaptureContext,
  { learned }: PathNode,
  value: readonly unknown[],
  length: number,
): number {
  if (learned === undefined || learned.isObject || !mayNest(context, learned.levels)) return 0
  const { missed } = context
  const index = learned.capture(context, value, 0, length)
  context.missed = missed
  return index
}

/** Runs the generated function on an object. Returns false, with nothing written, if it is of another shape. */
export function runObject(context: CaptureContext, { learned }: PathNode, value: object): boolean {
  if (learned === undefined || !learned.isObject || !mayNest(context, learned.levels) || isBoxed(value)) return false
  return learned.capture(context, value)
}

/** Whether so many more containers may be open inside of the present ones. Generated functions do not check. */
function mayNest({ depth, rules }: CaptureContext, levels: number): boolean {
  return depth + levels <= rules.maxDepth
}
