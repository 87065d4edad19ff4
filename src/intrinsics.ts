/** Built-ins as they are on import: what programs patch later changes neither bytes nor safety. */

// Each is called through `apply` with the `this` it needs, or needs none.
/* oxlint-disable typescript/unbound-method */

import { Buffer } from 'node:buffer'
import { types } from 'node:util'

export const bufferFrom: typeof Buffer.from = Buffer.from
export const allocUnsafe: typeof Buffer.allocUnsafe = Buffer.allocUnsafe
export const allocUnsafeSlow: typeof Buffer.allocUnsafeSlow = Buffer.allocUnsafeSlow
export const isUint8Array: typeof types.isUint8Array = types.isUint8Array
export const isArrayBuffer: typeof types.isArrayBuffer = types.isArrayBuffer
export const clone: typeof structuredClone = structuredClone

const { apply, getOwnPropertyDescriptor, getPrototypeOf } = Reflect
const { exec } = RegExp.prototype
const { charCodeAt: codeAt, includes, slice } = String.prototype
const { keys } = Uint8Array.prototype
const base64Write: unknown = Reflect.get(Buffer.prototype, 'base64Write')

const typedArray = getPrototypeOf(Uint8Array.prototype) ?? Uint8Array.prototype
const bufferGetter = getter(typedArray, 'buffer')
const lengthGetter = getter(typedArray, 'length')
const offsetGetter = getter(typedArray, 'byteOffset')
const sizeGetter = getter(ArrayBuffer.prototype, 'byteLength')
const resizableGetter = getter(ArrayBuffer.prototype, 'resizable')

export function bufferOf(view: Uint8Array): ArrayBufferLike {
  return apply(bufferGetter, view, [])
}

export function lengthOf(view: Uint8Array): number {
  return apply(lengthGetter, view, [])
}

export function offsetOf(view: Uint8Array): number {
  return apply(offsetGetter, view, [])
}

export function sizeOf(buffer: ArrayBuffer): number {
  return apply(sizeGetter, buffer, [])
}

export function isResizable(buffer: ArrayBuffer): boolean {
  return apply(resizableGetter, buffer, [])
}

/** Whether the view is of memory that is still there: neither detached nor shrunk from under it. */
export function isReadable(view: Uint8Array): boolean {
  try {
    // The cheapest method that refuses any other.
    apply(keys, view, [])
    return true
  } catch {
    return false
  }
}

/**
 * What `Buffer.from(text, 'base64')` calls, which can be patched too: decodes at most `size` bytes to the start of
 * `target` and tells how many they were; -1 in an engine that has no such method.
 */
export function writeBase64(target: Uint8Array, text: string, size: number): number {
  return typeof base64Write === 'function' ? apply(base64Write, target, [text, 0, size]) : -1
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

export function sliceString(text: string, start: number, end: number): string {
  return apply(slice, text, [start, end])
}

// What a getter gives is not known to the compiler, as with `apply`; each is named beside its type above.
// oxlint-disable-next-line typescript/no-explicit-any
function getter(prototype: object, name: string): () => any {
  const get = getOwnPropertyDescriptor(prototype, name)?.get
  if (get === undefined) throw new Error(`this engine has no getter ${name}`)
  return get
}
