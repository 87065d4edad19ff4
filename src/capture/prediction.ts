/** What the walk needs to predict the keys of plain objects. Runs on the JS thread; `fast-walk.ts` calls it. */

import { isBoxed, isMap, isRawJson, isTypedArray, objectPrototype, prototypeOf } from '../runtime/intrinsics.ts'
import type { CaptureContext } from './context.ts'
import type { PathEdge, PathNode } from './path-node.ts'
import { isPlainPrototype } from './plain.ts'
import { rawJsonBytesOf } from './raw-json.ts'

/** Most keys that a path node keeps. An object with more is not a record: learning starts again. */
const MOST_AT_NODE = 256

/** Whether `for…in` lists exactly the keys of the value, and it is not a boxed primitive. */
export function isPlain({ rules }: CaptureContext, value: object): boolean {
  if (isBoxed(value)) return false
  const prototype = prototypeOf(value)
  if (prototype === objectPrototype) return true
  if (rules.target !== 'json' && isMap(value)) return false
  if (isRawJson(value) || isTypedArray(value) || rawJsonBytesOf(value) !== undefined) return false
  return prototype === null || isPlainPrototype(prototype)
}

/** Returns the edge of a key that was not predicted. */
export function mispredicted(
  { vocabulary }: CaptureContext,
  node: PathNode,
  previous: PathEdge | undefined,
  name: string,
): PathEdge {
  let edge = node.keys.get(name)
  if (edge === undefined) {
    edge = vocabulary.learn(name)
    if (edge.isUnknown) return edge
    if (node.keys.size === MOST_AT_NODE) node.keys.clear()
    node.keys.set(name, edge)
  }
  if (previous === undefined) node.first = edge
  else if (!previous.isUnknown) previous.next = edge
  return edge
}
