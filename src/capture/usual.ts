/** Dates and Buffers whose `toJSON`, and all that it calls, is what it always was: nobody sees that it is not called. */

import { hasToJson } from './exact.ts'
import { isObject } from './plain.ts'
import type { Rules } from './rules.ts'
import type { Tape } from './tape.ts'
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
} from '../intrinsics.ts'

const datePrototype: object = Date.prototype
export const dateToJSON: unknown = propertyOf(datePrototype, 'toJSON')
const dateToISOString = propertyOf(datePrototype, 'toISOString')
const dateValueOf = propertyOf(datePrototype, 'valueOf')
const dateToPrimitive = propertyOf(datePrototype, Symbol.toPrimitive)
const { toPrimitive } = Symbol

// Called with the `this` it needs.
// oxlint-disable-next-line typescript/unbound-method
const { getTime } = Date.prototype
const bufferPrototype: object = Buffer.prototype
export const bufferToJSON: unknown = propertyOf(bufferPrototype, 'toJSON')
const typedArrayPrototype: object = prototypeOf(Uint8Array.prototype) ?? Uint8Array.prototype
const lengthGetter = getterOfLength()

/**
 * What `Date.prototype.toJSON` does, reading what it reads in its order: the time, if nobody but the engine has a hand in
 * it; else undefined, and its answer is in `tape.stopped`.
 */
export function dateJson(tape: Tape, date: Date): number | undefined {
  const convert: unknown = propertyOf(date, toPrimitive)
  if (convert !== dateToPrimitive) return answerIso(tape, date, convertDate(date, convert))
  const valueOf: unknown = propertyOf(date, 'valueOf')
  if (valueOf !== dateValueOf) return answerIso(tape, date, ordinaryPrimitive(date, valueOf))
  const time: number = apply(getTime, date, [])
  // Not a number.
  // oxlint-disable-next-line no-self-compare
  if (time !== time) return time
  const toISOString: unknown = propertyOf(date, 'toISOString')
  if (toISOString === dateToISOString) return time
  tape.stopped = call(toISOString, date, [], 'toISOString')
  return undefined
}

function answerIso(tape: Tape, date: Date, primitive: unknown): undefined {
  const isFinite = typeof primitive !== 'number' || primitive - primitive === 0
  tape.stopped = isFinite ? call(propertyOf(date, 'toISOString'), date, [], 'toISOString') : null
}

/** ToPrimitive with the hint "number". */
function convertDate(date: Date, convert: unknown): unknown {
  if (convert === undefined || convert === null) return ordinaryPrimitive(date, propertyOf(date, 'valueOf'))
  const primitive = call(convert, date, ['number'], 'Symbol(Symbol.toPrimitive)')
  if (isObject(primitive)) throw new TypeError('Cannot convert object to primitive value')
  return primitive
}

/** OrdinaryToPrimitive. */
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

/** Whoever adds an element to them has a hand in the array that `Buffer.prototype.toJSON` makes. */
const ARRAY_KEYS = ownKeysOf(arrayPrototype).length
const OBJECT_KEYS = ownKeysOf(objectPrototype).length

/** Of what is no proxy and whose `toJSON` is `Buffer.prototype`'s. That reads `this.length`, and elements, which nobody can redefine, into an array. */
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

/** Whether the rules keep the bytes that its `toJSON`, that of Buffers, would make an object of. */
export function isUntouched({ typedArrays, target }: Rules, value: unknown, toJSON: unknown): boolean {
  return (typedArrays !== 'object' || target === 'msgpack') && isBufferLike(value, toJSON)
}

/** Whether they do so in MessagePack alone. */
export function isTwofold(rules: Rules, value: unknown, toJSON: unknown): value is TypedArray {
  return typeof rules.target === 'object' && rules.typedArrays === 'object' && isBufferLike(value, toJSON)
}

function isBufferLike(value: unknown, toJSON: unknown): value is TypedArray {
  return isTypedArray(value) && toJSON === descriptorOf(bufferPrototype, 'toJSON')?.value
}

function getterOfLength(): unknown {
  const descriptor = descriptorOf(typedArrayPrototype, 'length')
  return descriptor && propertyOf(descriptor, 'get')
}
