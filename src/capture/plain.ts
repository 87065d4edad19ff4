import { isProxy, prototypeOf } from '../intrinsics.ts'

/** Nothing along it is a proxy, or seen by `for…in`. */
export function isPlainPrototype(prototype: object): boolean {
  for (let next: object | null = prototype; next !== null; next = prototypeOf(next)) if (isProxy(next)) return false
  return !hasEnumerable(prototype)
}

export function hasEnumerable(prototype: object): boolean {
  // oxlint-disable-next-line guard-for-in, no-unreachable-loop
  for (const _ in prototype) return true
  return false
}

export function isObject(value: unknown): value is object {
  return typeof value === 'function' || (typeof value === 'object' && value !== null)
}
