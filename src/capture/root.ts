/** Captures whole values: values of calls, and rows. Runs on the JS thread; `src/encode` calls it. */

import { isProxy, objectPrototype } from '../runtime/intrinsics.ts'
import type { CaptureContext } from './context.ts'
import { textOfRoot } from './engine.ts'
import { walk, walkCustom, walkPart } from './fast-walk.ts'
import { wayOf } from './parts.ts'
import { ENGINE, OPEN, type PathNode, type Way } from './path-node.ts'
import { hasEnumerable } from './plain.ts'
import { concernsAll } from './rules.ts'
import { captureProperty } from './spec-walk.ts'

/**
 * Captures the value of a call, or a row, on the way that was chosen for it, if one was. Returns false if JSON.stringify
 * would return undefined.
 */
export function captureValue(context: CaptureContext, value: unknown, chosen?: Way): boolean {
  if (concernsAll(context.rules) || hasEnumerable(objectPrototype)) {
    return captureProperty(context, { '': value }, '', value)
  }
  const { vocabulary } = context
  if (typeof value !== 'object' || value === null || isProxy(value)) {
    return walk(context, '', value, vocabulary.unknown.node.element)
  }
  const node = vocabulary.rootOf(value)
  context.way = chosen ?? wayOf(context, node, value)
  if (context.way !== ENGINE) return captureObject(context, value, node)
  const text = textOfRoot(node, value)
  vocabulary.learnFrom(node, value)
  if (text === undefined) return false
  if (typeof text !== 'string') return captureObject(context, text.value, node)
  context.json(text, 0, text.length)
  return true
}

/** Captures an object that is not a proxy. */
function captureObject(context: CaptureContext, value: object, node: PathNode): boolean {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every object may have such a property
  const { toJSON } = value as { toJSON?: unknown }
  if (typeof toJSON !== 'function') return walkPart(context, '', value, node.element)
  context.way = OPEN
  context.toJSON = toJSON
  return walkCustom(context, '', value, node.element)
}
