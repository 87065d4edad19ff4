/**
 * Lifting from a value that JSON.parse has made: for bodies so small that a look at their text costs more. What is not
 * plain here (wildcards of any depth, raw text, values that do not fit) is left to the addon, which tells the places of errors.
 */

import { decodeClean } from './base64.ts'
import type { Bytes } from './bytes.ts'
import { hasOwn, isArray, isView } from './intrinsics.ts'
import { Lift as LiftKind } from './native.ts'

/** A pointer's segments, and what is made of the values there. */
export interface Pattern {
  readonly segments: readonly string[]
  readonly kind: LiftKind
}

/** Undefined where the addon must look. */
export function readPatterns(pointers: readonly string[], lifts: readonly LiftKind[]): readonly Pattern[] | undefined {
  const patterns: Pattern[] = []
  for (const [index, pointer] of pointers.entries()) {
    const kind = lifts[index]
    const [first, ...segments] = pointer.split('/')
    const isPlain = first === '' && 0 < segments.length && !pointer.includes('~') && !pointer.includes('**')
    if (!isPlain || kind === undefined || kind === LiftKind.Raw || kind === LiftKind.Experts) {
      return undefined
    }
    // What is looked for inside of another value is not found if that is lifted.
    if (!patterns.every((other) => areApart(other.segments, segments))) return undefined
    patterns.push({ segments, kind })
  }
  return patterns
}

/** Whether no value of the one is inside of a value of the other. */
function areApart(some: readonly string[], others: readonly string[]): boolean {
  if (some.length === others.length) return true
  return some.some((segment, index) => {
    const other = others[index]
    return other !== undefined && segment !== other && segment !== '*' && other !== '*'
  })
}

/** Puts what is lifted in its places; false, and some of it done, where the addon must look. */
export function liftAll(value: unknown, patterns: readonly Pattern[]): boolean {
  for (const { segments, kind } of patterns) if (!liftAt(value, segments, 0, kind)) return false
  return true
}

function liftAt(container: unknown, segments: readonly string[], depth: number, kind: LiftKind): boolean {
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

function liftKey(container: object, key: string, segments: readonly string[], depth: number, kind: LiftKind): boolean {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const parts = container as Record<string, unknown>
  const value = parts[key]
  if (depth + 1 < segments.length) return liftAt(value, segments, depth + 1, kind)
  // It is lifted already, by a pointer that is listed before.
  if (value === null || isView(value)) return true
  const lifted = liftedOf(value, kind)
  if (lifted === undefined) return false
  parts[key] = lifted
  return true
}

function liftedOf(value: unknown, kind: LiftKind): Bytes | NodeJS.TypedArray | undefined {
  if (kind === LiftKind.Base64) return typeof value === 'string' ? decodeClean(value) : undefined
  if (!isArray(value) || !value.every((item) => typeof item === 'number')) return undefined
  switch (kind) {
    case LiftKind.Float32:
      return Float32Array.from(value)
    case LiftKind.Float64:
      return Float64Array.from(value)
    case LiftKind.Int32:
      return exact(value, Int32Array.from(value))
    case LiftKind.Uint8:
      return exact(value, Uint8Array.from(value))
    default:
      return exact(value, Uint16Array.from(value))
  }
}

function exact<T extends Int32Array | Uint8Array | Uint16Array>(numbers: readonly number[], array: T): T | undefined {
  return numbers.every((number, index) => array[index] === number) ? array : undefined
}
