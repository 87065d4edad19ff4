/**
 * Brand checks: finds the values that the option `default` is called for. Runs on the JS thread; `spec-values.ts` calls
 * it.
 */

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
  isTypedArray,
  isWeakMap,
  isWeakSet,
  objectPrototype,
  prototypeOf,
} from '../runtime/intrinsics.ts'
import type { CaptureRules } from './rules.ts'

// oxlint-disable-next-line typescript/unbound-method -- called with the `this` it needs
const { deref } = WeakRef.prototype

export function isForDefault({ asksUndefined, asksTypedArrays }: CaptureRules, value: unknown): boolean {
  switch (typeof value) {
    case 'function':
    case 'symbol':
    case 'bigint':
      return true
    case 'undefined':
      return asksUndefined
    case 'object':
      return value !== null && ((asksTypedArrays && isTypedArray(value)) || hasNoJson(value))
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

/**
 * Whether the value is a WeakRef. Only the error of `deref` says so, which takes 2 µs: objects with the usual
 * prototypes are not tried.
 */
function isWeakRef(value: object): boolean {
  const prototype: object | null = prototypeOf(value)
  if (prototype === objectPrototype || prototype === arrayPrototype || prototype === null) return false
  try {
    apply(deref, value, [])
    return true
  } catch {
    // It is not a WeakRef.
    return false
  }
}
