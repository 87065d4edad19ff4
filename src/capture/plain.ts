/** Questions about objects that run none of their code. Called by every part of the capture, on the JS thread. */

import { descriptorOf, isProxy, prototypeOf } from '../runtime/intrinsics.ts'

/** Whether nothing along the prototypes is a proxy, or enumerable. */
export function isPlainPrototype(prototype: object): boolean {
  for (let next: object | null = prototype; next !== null; next = prototypeOf(next)) if (isProxy(next)) return false
  return !hasEnumerable(prototype)
}

/** Whether `for…in` finds a property of the object or its prototypes. */
export function hasEnumerable(prototype: object): boolean {
  // oxlint-disable-next-line guard-for-in, no-unreachable-loop -- the first property found is the answer
  for (const _ in prototype) return true
  return false
}

/** Whether `toJSON` stands on the object or one of its prototypes. It is not read. */
export function hasToJson(value: object): boolean {
  for (let next: object | null = value; next !== null; next = prototypeOf(next)) {
    if (isProxy(next) || descriptorOf(next, 'toJSON') !== undefined) return true
  }
  return false
}

/** Whether the value is an object or a function. */
export function isObject(value: unknown): value is object {
  return typeof value === 'function' || (typeof value === 'object' && value !== null)
}

const LONGEST_KEY = 64

/** Whether a key is likely to come again. Keys that begin with a digit, and long ones, rarely do. */
export function isLearnable(key: string): boolean {
  return key.length <= LONGEST_KEY && !('0' <= key && key < ':')
}
