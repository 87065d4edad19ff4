/** Dates and Buffers whose `toJSON`, and all that it calls, is what it always was: nobody sees that it is not called. */

import { apply, arrayPrototype, descriptorOf, isDate, isUint8Array, propertyOf, prototypeOf } from '../intrinsics.ts'

export const datePrototype: object = Date.prototype
export const dateToJSON: unknown = propertyOf(datePrototype, 'toJSON')
export const dateToISOString: unknown = propertyOf(datePrototype, 'toISOString')
export const dateValueOf: unknown = propertyOf(datePrototype, 'valueOf')
export const dateToPrimitive: unknown = propertyOf(datePrototype, Symbol.toPrimitive)

// Called with the `this` it needs.
// oxlint-disable-next-line typescript/unbound-method
const { getTime } = Date.prototype
const bufferPrototype: object = Buffer.prototype
const bufferToJSON: unknown = propertyOf(bufferPrototype, 'toJSON')
const typedArrayPrototype: object = prototypeOf(Uint8Array.prototype) ?? Uint8Array.prototype
const lengthGetter = getterOfLength()

export function timeOf(date: Date): number {
  return apply(getTime, date, [])
}

/** Not for proxies. */
export function isPlainDate(value: object): value is Date {
  return (
    prototypeOf(value) === datePrototype &&
    isDate(value) &&
    propertyOf(value, 'toJSON') === dateToJSON &&
    propertyOf(value, 'toISOString') === dateToISOString &&
    propertyOf(value, 'valueOf') === dateValueOf &&
    propertyOf(value, Symbol.toPrimitive) === dateToPrimitive
  )
}

/** Not for proxies. Its `toJSON` reads `this.length`, and elements, which nobody can redefine, into an array. */
export function isPlainBuffer(value: object): value is Uint8Array {
  return (
    prototypeOf(value) === bufferPrototype &&
    isUint8Array(value) &&
    propertyOf(value, 'toJSON') === bufferToJSON &&
    descriptorOf(value, 'length') === undefined &&
    descriptorOf(bufferPrototype, 'length') === undefined &&
    getterOfLength() === lengthGetter &&
    typeof propertyOf(arrayPrototype, 'toJSON') !== 'function'
  )
}

function getterOfLength(): unknown {
  const descriptor = descriptorOf(typedArrayPrototype, 'length')
  return descriptor && propertyOf(descriptor, 'get')
}
