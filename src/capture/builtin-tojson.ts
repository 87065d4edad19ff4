/**
 * Built-in `toJSON` methods of dates and Buffers. Where they and all that they call are unpatched, nobody can observe
 * that they are not called. Runs on the JS thread; both walks call it.
 */

import { hasToJson, isObject } from './plain.ts'
import type { CaptureRules } from './rules.ts'
import type { CaptureContext } from './context.ts'
import {
  apply,
  arrayPrototype,
  descriptorOf,
  isTypedArray,
  isUint8Array,
  objectPrototype,
  ownKeysOf,
  propertyOf,
  prototypeOf,
  type TypedArray,
} from '../runtime/intrinsics.ts'

const datePrototype: object = Date.prototype
export const dateToJSON: unknown = propertyOf(datePrototype, 'toJSON')
const dateToISOString = propertyOf(datePrototype, 'toISOString')
const dateValueOf = propertyOf(datePrototype, 'valueOf')
const dateToPrimitive = propertyOf(datePrototype, Symbol.toPrimitive)
const { toPrimitive } = Symbol

// oxlint-disable-next-line typescript/unbound-method -- called with the `this` it needs
const { getTime } = Date.prototype
export const bufferPrototype: object = Buffer.prototype
export const bufferToJSON: unknown = propertyOf(bufferPrototype, 'toJSON')
const typedArrayPrototype: object = prototypeOf(Uint8Array.prototype) ?? Uint8Array.prototype
const lengthGetter = getterOfLength()

/**
 * Does what `Date.prototype.toJSON` does, and reads the same properties in the same order. Returns the time if only
 * built-ins take part; else returns undefined and leaves the answer in `context.stopped`.
 */
export function dateJson(context: CaptureContext, date: Date): number | undefined {
  const convert: unknown = propertyOf(date, toPrimitive)
  if (convert !== dateToPrimitive) return answerIso(context, date, convertDate(date, convert))
  const valueOf: unknown = propertyOf(date, 'valueOf')
  if (valueOf !== dateValueOf) return answerIso(context, date, ordinaryPrimitive(date, valueOf))
  const time: number = apply(getTime, date, [])
  // oxlint-disable-next-line no-self-compare -- NaN alone differs from itself
  if (time !== time) return time
  const toISOString: unknown = propertyOf(date, 'toISOString')
  if (toISOString === dateToISOString) return time
  context.stopped = call(toISOString, date, [], 'toISOString')
  return undefined
}

function answerIso(context: CaptureContext, date: Date, primitive: unknown): undefined {
  const isFinite = typeof primitive !== 'number' || primitive - primitive === 0
  context.stopped = isFinite ? call(propertyOf(date, 'toISOString'), date, [], 'toISOString') : null
}

/** Does ToPrimitive with the hint "number". */
function convertDate(date: Date, convert: unknown): unknown {
  if (convert === undefined || convert === null) return ordinaryPrimitive(date, propertyOf(date, 'valueOf'))
  const primitive = call(convert, date, ['number'], 'Symbol(Symbol.toPrimitive)')
  if (isObject(primitive)) throw new TypeError('Cannot convert object to primitive value')
  return primitive
}

/** Does OrdinaryToPrimitive. */
function ordinaryPrimitive(date: Date, valueOf: unknown): unknown {
  const value = typeof valueOf === 'function' ? apply(valueOf, date, []) : date
  if (!isObject(value)) return value
  const toString: unknown = propertyOf(date, 'toString')
  const text = typeof toString === 'function' ? apply(toString, date, []) : date
  if (isObject(text)) throw new TypeError('Cannot convert object to primitive value')
  return text
}

function call(method: unknown, receiver: object, args: readonly unknown[], name: string): unknown {
  if (typeof method !== 'function') throw new TypeError(`${name} is not a function`)
  return apply(method, receiver, args)
}

/** Prototypes of the array that `Buffer.prototype.toJSON` makes. An element added to them would be observed. */
const ARRAY_KEYS = ownKeysOf(arrayPrototype).length
const OBJECT_KEYS = ownKeysOf(objectPrototype).length

/**
 * Whether `toJSON` of the value may be skipped. The value is not a proxy and its `toJSON` is that of
 * `Buffer.prototype`, which reads `this.length` and the elements; nobody can redefine the elements.
 */
export function isPlainBuffer(value: object): value is Uint8Array {
  return (
    prototypeOf(value) === bufferPrototype &&
    isUint8Array(value) &&
    descriptorOf(value, 'length') === undefined &&
    descriptorOf(bufferPrototype, 'length') === undefined &&
    getterOfLength() === lengthGetter &&
    !hasToJson(arrayPrototype) &&
    ownKeysOf(arrayPrototype).length === ARRAY_KEYS &&
    ownKeysOf(objectPrototype).length === OBJECT_KEYS
  )
}

/** Whether the rules write the bytes of a Buffer instead of the object that its `toJSON` makes. */
export function isUntouched({ typedArrays, target }: CaptureRules, value: unknown, toJSON: unknown): boolean {
  return (typedArrays !== 'object' || target === 'msgpack') && isBufferLike(value, toJSON)
}

/** Whether the rules do so for MessagePack, and not for JSON. */
export function isTwofold(rules: CaptureRules, value: unknown, toJSON: unknown): value is TypedArray {
  return typeof rules.target === 'object' && rules.typedArrays === 'object' && isBufferLike(value, toJSON)
}

/** Whether `default` is asked about a Buffer before its `toJSON` is called. */
export function isAskedFirst({ asksTypedArrays }: CaptureRules, value: unknown, toJSON: unknown): boolean {
  return asksTypedArrays && isBufferLike(value, toJSON)
}

function isBufferLike(value: unknown, toJSON: unknown): value is TypedArray {
  return isTypedArray(value) && toJSON === descriptorOf(bufferPrototype, 'toJSON')?.value
}

function getterOfLength(): unknown {
  const descriptor = descriptorOf(typedArrayPrototype, 'length')
  return descriptor && propertyOf(descriptor, 'get')
}
