/**
 * Lifts values out of a parsed body. Runs on the JS thread; `parse.ts` calls it for small bodies, where a call of the
 * addon costs more. The addon does the rest: `**`, raw text, routed experts, and values that do not fit, whose errors
 * name a place.
 */

import { decodeClean } from '../base64/base64.ts'
import type { Bytes } from '../runtime/bytes.ts'
import { hasOwn, isArray, isView } from '../runtime/intrinsics.ts'
import type { LiftName } from './parse.ts'

/** A pointer that needs no addon. */
export interface LiftPattern {
  readonly segments: readonly string[]
  readonly kind: PlainLift
}

/** Lifts that need no addon. */
type PlainLift = Exclude<LiftName, 'raw' | 'experts'>

/** Every pattern is compared with all others, so the addon is faster with more of them. */
export const MOST_PATTERNS = 32

/** Returns the patterns of `pointers`, or undefined where the addon must lift them. */
export function readPatterns(
  pointers: readonly string[],
  kinds: readonly LiftName[],
): readonly LiftPattern[] | undefined {
  if (MOST_PATTERNS < pointers.length) return undefined
  const patterns: LiftPattern[] = []
  for (const [index, pointer] of pointers.entries()) {
    const kind = kinds[index]
    const [first, ...segments] = pointer.split('/')
    const isPlain = first === '' && 0 < segments.length && !pointer.includes('~') && !pointer.includes('**')
    if (!isPlain || kind === undefined || kind === 'raw' || kind === 'experts') {
      return undefined
    }
    // Nothing is searched inside a lifted value.
    if (!patterns.every((other) => areApart(other.segments, segments))) return undefined
    patterns.push({ segments, kind })
  }
  return patterns
}

/** Returns whether no value of one pattern is inside a value of the other. */
function areApart(some: readonly string[], others: readonly string[]): boolean {
  if (some.length === others.length) return true
  return some.some((segment, index) => {
    const other = others[index]
    return other !== undefined && segment !== other && segment !== '*' && other !== '*'
  })
}

/** Puts the lifted values in their places. Returns false where the addon must parse the body again; some values are lifted then. */
export function liftAll(value: unknown, patterns: readonly LiftPattern[]): boolean {
  for (const { segments, kind } of patterns) if (!liftAt(value, segments, 0, kind)) return false
  return true
}

function liftAt(container: unknown, segments: readonly string[], depth: number, kind: PlainLift): boolean {
  if (typeof container !== 'object' || container === null || isView(container)) return true
  const segment = segments[depth] ?? ''
  if (segment === '*') {
    for (const key of Object.keys(container)) if (!liftKey(container, key, segments, depth, kind)) return false
    return true
  }
  if (isArray(container) ? !INDEX.test(segment) : segment === '__proto__') return !hasOwn(container, segment)
  return !hasOwn(container, segment) || liftKey(container, segment, segments, depth, kind)
}

const INDEX = /^(?:0|[1-9]\d*)$/

function liftKey(container: object, key: string, segments: readonly string[], depth: number, kind: PlainLift): boolean {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an object has keys
  const parts = container as Record<string, unknown>
  const value = parts[key]
  if (depth + 1 < segments.length) return liftAt(value, segments, depth + 1, kind)
  // An earlier pointer lifted the value.
  if (value === null || isView(value)) return true
  const lifted = liftedOf(value, kind)
  if (lifted === undefined) return false
  parts[key] = lifted
  return true
}

function liftedOf(value: unknown, kind: PlainLift): Bytes | NodeJS.TypedArray | undefined {
  if (kind === 'base64') return typeof value === 'string' ? decodeClean(value) : undefined
  if (!isArray(value) || !value.every((item) => typeof item === 'number')) return undefined
  switch (kind) {
    case 'float32':
      return Float32Array.from(value)
    case 'float64':
      return Float64Array.from(value)
    case 'int32':
      return exact(value, Int32Array.from(value))
    case 'uint8':
      return exact(value, Uint8Array.from(value))
    default:
      return exact(value, Uint16Array.from(value))
  }
}

function exact<T extends Int32Array | Uint8Array | Uint16Array>(numbers: readonly number[], array: T): T | undefined {
  return numbers.every((number, index) => array[index] === number) ? array : undefined
}
