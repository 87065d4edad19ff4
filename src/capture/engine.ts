/**
 * The engine's own JSON.stringify, for whole values and for parts of them. Runs on the JS thread; the walks and
 * `src/encode` call it.
 */

import { execRegExp, isArray, now, stringIncludes } from '../runtime/intrinsics.ts'
import type { CaptureContext } from './context.ts'
import type { PathNode } from './path-node.ts'
import { hasToJson } from './plain.ts'
import { Revived, stringify } from './raw-json.ts'
import { NO_RULES } from './rules.ts'

/**
 * Stringifies a whole value. Returns undefined if it has no JSON; a `Revived` if a walk has to capture its value
 * instead: where the value holds RawJsons, is too deep for the engine's stack, or too long for a string.
 */
export function textOfRoot(node: PathNode, value: object): string | Revived | undefined {
  try {
    const text = timed(node, value)
    if (text instanceof Revived) node.open()
    return text
  } catch (error) {
    if (!isLimit(error)) throw error
    node.open()
    return new Revived(value)
  }
}

/**
 * Stringifies a part whose `toJSON` was read, and counts its cost at a node. Returns undefined where the engine may not
 * be used, or gives up and the walk does not: on depth, on length, and on circles that may begin at an ancestor, which
 * the engine does not see.
 */
export function textWithin(context: CaptureContext, value: object, node?: PathNode): string | Revived | undefined {
  if (context.rules !== NO_RULES || hasToJson(value)) return undefined
  try {
    return node === undefined ? stringify(value) : timed(node, value)
  } catch (error) {
    if (isLimit(error)) return undefined
    const isCircle = error instanceof TypeError && execRegExp(CIRCULAR, error.message) !== null
    if (0 < context.depth && isCircle && isThrownByEngine(error)) return undefined
    throw error
  }
}

const CIRCULAR = /^Converting circular structure/

/** Stringifies a value, and counts what it costs at its node. */
function timed(node: PathNode, value: object): string | Revived | undefined {
  const { isTimed } = node
  const start = isTimed ? now() : 0
  const text = stringify(value)
  if (isTimed) node.addCost(now() - start, isArray(value) ? value.length : 1)
  if (typeof text === 'string') node.addText(text.length, isTimed)
  return text
}

/**
 * Whether the error says that the engine's stack is too small, or its strings are. Code that JSON.stringify calls at great
 * depth may be what finds the end of the stack.
 */
export function isLimit(error: unknown): boolean {
  if (!(error instanceof RangeError)) return false
  const { message } = error
  return message === STACK || (message === 'Invalid string length' && isThrownByEngine(error))
}

const STACK = 'Maximum call stack size exceeded'

/** Whether JSON.stringify itself threw the error, not code that it called. */
function isThrownByEngine({ stack, message }: Error): boolean {
  if (typeof stack !== 'string') return false
  const has = (name: string): boolean => stringIncludes(stack, `${message}\n    at ${name} (<anonymous>)`)
  return has('stringify') || has('JSON.stringify')
}
