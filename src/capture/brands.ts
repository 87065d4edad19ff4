/** The values that `default` is asked about: those without JSON of their own, by brand. */

import {
  apply,
  arrayPrototype,
  isArrayBuffer,
  isDataView,
  isError,
  isMap,
  isPromise,
  isRegExp,
  isSet,
  isSharedMemory,
  isWeakMap,
  isWeakSet,
  objectPrototype,
  prototypeOf,
} from '../intrinsics.ts'

// Called with the `this` it needs.
// oxlint-disable-next-line typescript/unbound-method
const { deref } = WeakRef.prototype

export function isAsked(value: unknown): boolean {
  switch (typeof value) {
    case 'function':
    case 'symbol':
    case 'bigint':
      return true
    case 'object':
      return value !== null && hasNoJson(value)
    default:
      return false
  }
}

function hasNoJson(value: object): boolean {
  return (
    isMap(value) ||
    isSet(value) ||
    isError(value) ||
    isRegExp(value) ||
    isPromise(value) ||
    isArrayBuffer(value) ||
    isSharedMemory(value) ||
    isDataView(value) ||
    isWeakMap(value) ||
    isWeakSet(value) ||
    isWeakRef(value)
  )
}

/** The engine tells it by an error alone, which takes time: objects with the usual prototypes are not asked. */
function isWeakRef(value: object): boolean {
  const prototype: object | null = prototypeOf(value)
  if (prototype === objectPrototype || prototype === arrayPrototype || prototype === null) return false
  try {
    apply(deref, value, [])
    return true
  } catch {
    // It has no such brand.
    return false
  }
}
