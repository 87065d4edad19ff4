/**
 * Makes the error that JSON.stringify throws for a value that contains itself. Runs on the JS thread; `open-path.ts`
 * calls it.
 */

import {
  defineProperty,
  descriptorOf,
  isArray,
  isProxy,
  prototypeOf,
  setPrototypeOf,
  stringifyJson,
  construct,
} from '../runtime/intrinsics.ts'

/**
 * Makes the error for the container at `start` of `path`, found again at `last`. `names` has the key of each container
 * in the one before. The engine writes the message itself: it stringifies stand-ins of the same constructors, which run
 * none of the user's code.
 */
export function circularError(
  path: readonly unknown[],
  names: readonly (string | number)[],
  start: number,
  depth: number,
  last: string | number,
): unknown {
  const links: object[] = []
  for (let index = start; index < depth; index += 1) links[index - start] = standIn(path[index])
  for (let index = 0; index < links.length; index += 1) {
    const name = index + 1 < links.length ? (names[start + index + 1] ?? '') : last
    const value = links[index + 1] ?? links[0]
    defineProperty(links[index] ?? {}, name, { value, enumerable: true, configurable: true, writable: true })
  }
  try {
    // With a gap: without one, V8 14 finds the circle only when its memory is exhausted.
    stringifyJson(links[0], undefined, 1)
  } catch (error) {
    if (error instanceof TypeError) return error
    // The circle is longer than the engine's stack is deep.
  }
  return new TypeError('Converting circular structure to JSON')
}

/** Makes an object whose constructor the engine names as that of the value. */
function standIn(value: unknown): object {
  if (isProxy(value)) return withoutToJson(isArray(value) ? new Proxy([], {}) : {})
  const prototype: object | null = prototypeOf(value)
  const base = isArray(value) ? Array : Object
  const constructor = constructorOf(prototype)
  const link = construct(base, [], constructor ?? base)
  if (constructor === undefined) setPrototypeOf(link, prototype)
  // The engine names an instance by its class, whatever its tag says, if that class extends no other.
  if (constructor !== undefined && constructor !== Object && prototypeOf(constructor) === Function.prototype) {
    return withoutToJson(link)
  }
  const tag = typeof value === 'object' && value !== null ? descriptorOf(value, Symbol.toStringTag) : undefined
  if (tag !== undefined && typeof tag.value === 'string') defineProperty(link, Symbol.toStringTag, tag)
  return withoutToJson(link)
}

/** Returns the constructor of objects with this prototype, if it can be found without running code. */
function constructorOf(prototype: object | null): Function | undefined {
  if (prototype === null || isProxy(prototype)) return undefined
  const found: unknown = descriptorOf(prototype, 'constructor')?.value
  if (typeof found !== 'function' || isProxy(found)) return undefined
  return descriptorOf(found, 'prototype')?.value === prototype ? found : undefined
}

function withoutToJson(link: object): object {
  return defineProperty(link, 'toJSON', { value: undefined, configurable: true })
}
