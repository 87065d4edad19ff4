/** Writes typed arrays and Buffers to a tape as their bytes, on the JS thread. Both walks call it. */

import { bytesOf, kindOf, lengthOf, type TypedArray } from '../runtime/intrinsics.ts'
import { unsupported } from './pointer.ts'
import type { CaptureContext } from './context.ts'

/** Form in which elements are written: `ElementStyle` of `crates/json/src/tape.rs`. */
const AS_NUMBERS = 0
const AS_BASE64 = 1
const AS_STRINGS = 2
const AS_BUFFER = 3

const BUFFER = (1 << 2) | AS_BUFFER
const BUFFER_GROWTH = 3.6
const BASE64_GROWTH = 1.34
/**
 * Bytes that one byte of an element becomes, its share of the comma included, for each kind: in JSON, and in
 * MessagePack.
 */
const GROWTHS: readonly number[] = [4, BUFFER_GROWTH, 3, 3, 2.9, 2.8, 4, 2.8, 2.4, 2.8, 2.8, BUFFER_GROWTH]
const PACKED_GROWTHS: readonly number[] = [1.6, 1, 1.5, 1.5, 1.25, 1.25, 4.5, 2.25, 1.125, 1.125, 1.125, 1.5]

/** Number of each kind: `ElementKind` of `crates/json/src/tape.rs`. */
const KINDS: Readonly<Record<string, number>> = Object.assign(Object.create(null), {
  Int8Array: 0,
  Uint8Array: 1,
  Int16Array: 2,
  Uint16Array: 3,
  Int32Array: 4,
  Uint32Array: 5,
  Float16Array: 6,
  Float32Array: 7,
  Float64Array: 8,
  BigInt64Array: 9,
  BigUint64Array: 10,
  Uint8ClampedArray: 11,
})
/** First kind of floats. */
const FLOATS = 6
const BIGINTS = 9
const CLAMPED = 11

/** Writes bytes in the form that `Buffer.prototype.toJSON` gives them. */
export function writeBuffer(context: CaptureContext, value: Uint8Array): void {
  context.bytes(BUFFER, value, BUFFER_GROWTH, 1)
}

/** Whether the elements are bigints. */
export function hasBigints(value: TypedArray): boolean {
  const kind = KINDS[kindOf(value)] ?? BIGINTS
  return BIGINTS <= kind && kind < CLAMPED
}

/** Writes a typed array at `name` of the present container. Its key is written already. */
export function writeTypedArray(context: CaptureContext, name: string | number, value: TypedArray): void {
  const { rules } = context
  const kind = KINDS[kindOf(value)] ?? BIGINTS
  const areBigints = hasBigints(value)
  let form = rules.typedArrays === 'base64' ? AS_BASE64 : AS_NUMBERS
  if (form === AS_NUMBERS) {
    if (areBigints && 0 < lengthOf(value)) checkBigints(context)
    if (areBigints && rules.bigint === 'string') form = AS_STRINGS
    if (rules.isFinite && FLOATS <= kind && kind < BIGINTS) refuseNonFinite(context, name, value)
  }
  const growth = form === AS_BASE64 ? BASE64_GROWTH : (GROWTHS[kind] ?? 1)
  context.bytes((kind << 2) | form, bytesOf(value), growth, PACKED_GROWTHS[kind] ?? 1)
}

function refuseNonFinite(context: CaptureContext, name: string | number, value: TypedArray): void {
  const length = lengthOf(value)
  for (let index = 0; index < length; index += 1) {
    const number = Number(value[index])
    if (number - number !== 0) throw unsupported(context, name, number, index)
  }
}

/** Throws the error of JSON.stringify for bigints, unless the rules allow them; or keeps it until JSON is asked for. */
export function checkBigints(context: CaptureContext): void {
  const { bigint, target } = context.rules
  if (bigint !== 'throw' || target === 'msgpack') return
  const error = new TypeError('Do not know how to serialize a BigInt')
  if (target === 'json' && !context.isPart) throw error
  context.jsonError ??= error
}
