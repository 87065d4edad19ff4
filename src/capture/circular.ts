/** The error that JSON.stringify throws for a value that contains itself. */

import {
  defineProperty,
  descriptorOf,
  isArray,
  isProxy,
  prototypeOf,
  setPrototypeOf,
  stringifyJson,
  construct,
} from '../intrinsics.ts'

/**
 * `path` is what was being captured, each in the one before at `names`; `last` is where the one at `start` was met again. The engine
 * itself writes the message, about objects that stand for those in the path and run none of their code.
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
    // With a gap: without one V8 14 only sees a circle when its memory is at an end.
    stringifyJson(links[0], undefined, 1)
  } catch (error) {
    if (error instanceof TypeError) return error
    // The circle is longer than the engine's stack is deep.
  }
  return new TypeError('Converting circular structure to JSON')
}

/** Of the same constructor, as the engine names it. */
function standIn(value: unknown): object {
  if (isProxy(value)) return withoutToJson(isArray(value) ? new Proxy([], {}) : {})
  const prototype: object | null = prototypeOf(value)
  const base = isArray(value) ? Array : Object
  const constructor = constructorOf(prototype)
  const link = construct(base, [], constructor ?? base)
  if (constructor === undefined) setPrototypeOf(link, prototype)
  // Instances of a class that extends none have its name, whatever their tag says.
  if (constructor !== undefined && constructor !== Object && prototypeOf(constructor) === Function.prototype) {
    return withoutToJson(link)
  }
  const tag = typeof value === 'object' && value !== null ? descriptorOf(value, Symbol.toStringTag) : undefined
  if (tag !== undefined && typeof tag.value === 'string') defineProperty(link, Symbol.toStringTag, tag)
  return withoutToJson(link)
}

/** What `new` has made the objects of this prototype with, if that can be told without running code. */
function constructorOf(prototype: object | null): Function | undefined {
  if (prototype === null || isProxy(prototype)) return undefined
  const found: unknown = descriptorOf(prototype, 'constructor')?.value
  if (typeof found !== 'function' || isProxy(found)) return undefined
  return descriptorOf(found, 'prototype')?.value === prototype ? found : undefined
}

function withoutToJson(link: object): object {
  return defineProperty(link, 'toJSON', { value: undefined, configurable: true })
}
