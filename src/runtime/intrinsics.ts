/**
 * Built-ins, taken on import: patching one later changes neither bytes nor safety. Runs on the JS thread; every file of
 * the facade uses it.
 */

/* oxlint-disable typescript/unbound-method -- each is called through `apply` with the `this` it needs, or needs none */

import { Buffer, isUtf8 as isValidUtf8 } from 'node:buffer'
import { types } from 'node:util'

export const bufferFrom: typeof Buffer.from = Buffer.from
export const allocUnsafe: typeof Buffer.allocUnsafe = Buffer.allocUnsafe
export const allocUnsafeSlow: typeof Buffer.allocUnsafeSlow = Buffer.allocUnsafeSlow
export const isUint8Array: typeof types.isUint8Array = types.isUint8Array
export const isView: (value: unknown) => value is ArrayBufferView = ArrayBuffer.isView
export const hasOwn: typeof Object.hasOwn = Object.hasOwn
export const isArrayBuffer: typeof types.isArrayBuffer = types.isArrayBuffer
export const clone: typeof structuredClone = structuredClone
// oxlint-disable-next-line typescript/no-explicit-any, typescript/no-unsafe-function-type -- its result is that of the called function
export const apply: (target: Function, receiver: unknown, args: readonly unknown[]) => any = Reflect.apply
export const construct: typeof Reflect.construct = Reflect.construct
export const propertyOf: (target: object, name: PropertyKey) => unknown = Reflect.get
export const defineProperty: typeof Object.defineProperty = Object.defineProperty
export const absolute: typeof Math.abs = Math.abs
export const createObject: typeof Object.create = Object.create
export const assignAll: <T extends object>(target: object, source: T) => T = Object.assign
export const leastOf: typeof Math.min = Math.min
export const mostOf: typeof Math.max = Math.max
export const leadingZeros: typeof Math.clz32 = Math.clz32
/** Returns milliseconds. */
export const now: () => number = performance.now.bind(performance)
export const random: typeof Math.random = Math.random
export const truncate: typeof Math.trunc = Math.trunc
export const isProxy: typeof types.isProxy = types.isProxy
export const isDate: typeof types.isDate = types.isDate
export type TypedArray = NodeJS.TypedArray
export const isTypedArray: (value: unknown) => value is TypedArray = types.isTypedArray
export const isMap: typeof types.isMap = types.isMap
export const isSet: typeof types.isSet = types.isSet
export const isWeakMap: typeof types.isWeakMap = types.isWeakMap
export const isWeakSet: typeof types.isWeakSet = types.isWeakSet
export const isRegExp: typeof types.isRegExp = types.isRegExp
export const isError: typeof types.isNativeError = types.isNativeError
export const isPromise: typeof types.isPromise = types.isPromise
export const isSharedMemory: typeof types.isSharedArrayBuffer = types.isSharedArrayBuffer
export const isDataView: typeof types.isDataView = types.isDataView
export const isBoxed: typeof types.isBoxedPrimitive = types.isBoxedPrimitive
export const isNumberObject: typeof types.isNumberObject = types.isNumberObject
export const isStringObject: typeof types.isStringObject = types.isStringObject
export const isBooleanObject: typeof types.isBooleanObject = types.isBooleanObject
export const isBigIntObject: typeof types.isBigIntObject = types.isBigIntObject
export const isArray: (value: unknown) => value is readonly unknown[] = Array.isArray
export const ownKeysOf: typeof Reflect.ownKeys = Reflect.ownKeys
export const keysOf: typeof Object.keys = Object.keys
export const valuesOf: (target: object) => unknown[] = Object.values
export const prototypeOf: typeof Object.getPrototypeOf = Object.getPrototypeOf
export const setPrototypeOf: typeof Object.setPrototypeOf = Object.setPrototypeOf
export const descriptorOf: typeof Object.getOwnPropertyDescriptor = Object.getOwnPropertyDescriptor
export const stringifyJson: typeof JSON.stringify = JSON.stringify
export const parseJson: typeof JSON.parse = JSON.parse
export const byteLengthOfText: typeof Buffer.byteLength = Buffer.byteLength
export const objectPrototype: object = Object.prototype
export const arrayPrototype: object = Array.prototype

/** The function `JSON.isRawJSON`, where the engine has it. */
const isRawJSON: unknown = Reflect.get(JSON, 'isRawJSON')

const { ArrayBuffer: Memory, Uint8Array: View } = globalThis
const { getOwnPropertyDescriptor, getPrototypeOf } = Reflect
const { exec } = RegExp.prototype
const { charCodeAt: codeAt, includes, indexOf: indexIn, repeat, slice } = String.prototype
const { fill, keys, set } = Uint8Array.prototype
const { forEach } = Map.prototype
const bufferPrototype = Buffer.prototype
const { latin1Slice, latin1Write, subarray, ucs2Write, utf8Slice, utf8Write } = Buffer.prototype
const { valueOf: booleanOf } = Boolean.prototype
const { valueOf: bigintOf } = BigInt.prototype
const base64Write: unknown = Reflect.get(Buffer.prototype, 'base64Write')

const typedArray = getPrototypeOf(Uint8Array.prototype) ?? Uint8Array.prototype
const bufferGetter = getter(typedArray, 'buffer')
const lengthGetter = getter(typedArray, 'length')
const offsetGetter = getter(typedArray, 'byteOffset')
const byteLengthGetter = getter(typedArray, 'byteLength')
const kindGetter = getter(typedArray, Symbol.toStringTag)
const sizeGetter = getter(ArrayBuffer.prototype, 'byteLength')
const resizableGetter = getter(ArrayBuffer.prototype, 'resizable')
const TYPED_ARRAY = { buffer: bufferGetter, offset: offsetGetter, length: byteLengthGetter }
const DATA_VIEW = {
  buffer: getter(DataView.prototype, 'buffer'),
  offset: getter(DataView.prototype, 'byteOffset'),
  length: getter(DataView.prototype, 'byteLength'),
}
const { delete: weakDelete, get: weakGet, set: weakSet } = WeakMap.prototype

/** Calls back for each entry of a Map. */
export function eachOf<K, V>(map: ReadonlyMap<K, V>, callback: (value: V, key: K) => void): void {
  apply(forEach, map, [callback])
}

export function bufferOf(view: TypedArray): ArrayBufferLike {
  return apply(bufferGetter, view, [])
}

export function lengthOf(view: TypedArray): number {
  return apply(lengthGetter, view, [])
}

export function offsetOf(view: TypedArray): number {
  return apply(offsetGetter, view, [])
}

/** Returns the name of a typed array's kind. */
export function kindOf(array: TypedArray): string {
  return apply(kindGetter, array, [])
}

/** Returns a view of the same bytes; an empty one if the memory is detached. */
export function bytesOf(array: TypedArray): Uint8Array {
  const size: number = apply(byteLengthGetter, array, [])
  return size === 0 ? new View(0) : new View(bufferOf(array), offsetOf(array), size)
}

/** Returns the memory that a view lies in, and where: for a view whose memory is gone, nothing of it. */
export function spanOf(view: ArrayBufferView): {
  readonly buffer: ArrayBufferLike
  readonly offset: number
  readonly length: number
} {
  const getters = isDataView(view) ? DATA_VIEW : TYPED_ARRAY
  try {
    return {
      buffer: apply(getters.buffer, view, []),
      offset: apply(getters.offset, view, []),
      length: apply(getters.length, view, []),
    }
  } catch {
    // TypeError: a DataView has no length when its memory is detached or too short.
    return { buffer: new Memory(0), offset: 0, length: 0 }
  }
}

/** Appends to a list of ours. A setter on `Array.prototype` does not see the item. */
export function addTo<T>(list: T[], item: T): void {
  defineProperty(list, list.length, { value: item, writable: true, enumerable: true, configurable: true })
}

export function getOf<K extends WeakKey, V>(map: WeakMap<K, V>, key: K): V | undefined {
  return apply(weakGet, map, [key])
}

/** Removes a key. Returns whether there was one. */
export function deleteOf<K extends WeakKey>(map: WeakMap<K, unknown>, key: K): boolean {
  return apply(weakDelete, map, [key])
}

export function setOf<K extends WeakKey, V>(map: WeakMap<K, V>, key: K, value: V): void {
  apply(weakSet, map, [key, value])
}

export function sizeOf(buffer: ArrayBuffer): number {
  return apply(sizeGetter, buffer, [])
}

export function isResizable(buffer: ArrayBuffer): boolean {
  return apply(resizableGetter, buffer, [])
}

/** Whether the memory of the view is still there: neither detached nor shrunk. */
export function isReadable(view: Uint8Array): boolean {
  try {
    // This is the cheapest method that throws otherwise.
    apply(keys, view, [])
    return true
  } catch {
    return false
  }
}

/**
 * Decodes at most `size` bytes to the start of `target`, as `Buffer.from(text, 'base64')` does, which may be patched.
 * Returns how many bytes it wrote; −1 if the engine has no such method.
 */
export function writeBase64(target: Uint8Array, text: string, size: number): number {
  return typeof base64Write === 'function' ? apply(base64Write, target, [text, 0, size]) : -1
}

/** Fills the bytes of `buffer` from `start` on with zeros. */
export function clearFrom(buffer: ArrayBufferLike, start: number): void {
  apply(fill, new View(buffer, start), [0])
}

/** Makes zeroed bytes that share their memory with nothing. */
export function zeros(size: number): Uint8Array<ArrayBuffer> {
  return new View(new Memory(size))
}

/** Returns how many bytes it wrote. */
export function writeLatin1(target: Buffer, text: string, offset: number, size: number): number {
  return apply(latin1Write, target, [text, offset, size])
}

/** Returns how many bytes it wrote. */
export function writeUtf16(target: Buffer, text: string, offset: number, size: number): number {
  return apply(ucs2Write, target, [text, offset, size])
}

/** Returns how many bytes it wrote. */
export function writeUtf8(target: Buffer, text: string, offset: number, size: number): number {
  return apply(utf8Write, target, [text, offset, size])
}

/** Whether `Buffer.from` writes strings by the built-in method, which it looks up on the prototype. */
export function isUtf8WritePlain(): boolean {
  return bufferPrototype.utf8Write === utf8Write
}

/** Decodes UTF-8. */
export function toUtf8(bytes: Uint8Array): string {
  return apply(utf8Slice, bytes, [0, lengthOf(bytes)])
}

export const isUtf8: typeof isValidUtf8 = isValidUtf8

/** Decodes ASCII, which takes less time than UTF-8. */
export function toLatin1(bytes: Uint8Array): string {
  return apply(latin1Slice, bytes, [0, lengthOf(bytes)])
}

/** Returns a Buffer of a part of the same memory. */
export function partOf<T extends ArrayBufferLike>(buffer: Buffer<T>, start: number, end: number): Buffer<T> {
  return apply(subarray, buffer, [start, end])
}

export function setBytes(target: Uint8Array, source: Uint8Array, offset: number): void {
  apply(set, target, [source, offset])
}

export function isRawJson(value: object): value is { readonly rawJSON: string } {
  return typeof isRawJSON === 'function' && apply(isRawJSON, JSON, [value]) === true
}

const { clear: clearMap, delete: deleteOfMap, get: getOfMap, has: hasOfMap, set: setOfMap } = Map.prototype
const { add: addToSet, clear: clearSet, delete: deleteOfSet, has: hasOfSet } = Set.prototype

const { Map: PlainMap, Set: PlainSet } = globalThis
const { assign } = Object

/** Makes a map whose methods are its own properties. */
export function newMap<K, V>(): Map<K, V> {
  return assign(new PlainMap<K, V>(), {
    clear: clearMap,
    delete: deleteOfMap,
    get: getOfMap,
    has: hasOfMap,
    set: setOfMap,
  })
}

/** Makes a set whose methods are its own properties. */
export function newSet<T>(): Set<T> {
  return assign(new PlainSet<T>(), { add: addToSet, clear: clearSet, delete: deleteOfSet, has: hasOfSet })
}

/** Does ToNumber. */
export function toNumber(value: unknown): number {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion, typescript/no-unnecessary-type-conversion -- `Number()` would convert bigints instead of throwing
  return +(value as number)
}

/** Does ToString. */
export function toText(value: unknown): string {
  // oxlint-disable-next-line typescript/restrict-template-expressions -- `String()` would convert symbols instead of throwing
  return `${value}`
}

export function valueOfBoolean(value: object): boolean {
  return apply(booleanOf, value, [])
}

export function valueOfBigInt(value: object): bigint {
  return apply(bigintOf, value, [])
}

export function execRegExp(pattern: RegExp, text: string): RegExpExecArray | null {
  return apply(exec, pattern, [text])
}

export function charCodeAt(text: string, index: number): number {
  return apply(codeAt, text, [index])
}

export function stringIncludes(text: string, part: string): boolean {
  return apply(includes, text, [part])
}

export function indexInString(text: string, part: string, start: number): number {
  return apply(indexIn, text, [part, start])
}

export function repeatString(text: string, count: number): string {
  return apply(repeat, text, [count])
}

export function sliceString(text: string, start: number, end: number): string {
  return apply(slice, text, [start, end])
}

// oxlint-disable-next-line typescript/no-explicit-any -- the type of each getter is named where it is used
function getter(prototype: object, name: string | symbol): () => any {
  const get = getOwnPropertyDescriptor(prototype, name)?.get
  if (get === undefined) throw new Error(`this engine has no getter ${String(name)}`)
  return get
}
