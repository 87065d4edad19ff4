/**
 * Lifts values out of a parsed body. Runs on the JS thread; `parse.ts` calls it for small bodies, where a call of the
 * addon costs more. The addon does the rest: `**`, raw text, routed experts, and values that do not fit, whose errors
 * name a place.
 */

import { decodeClean } from '../base64/base64.ts'
import { hasOwn, isArray, isView } from '../runtime/intrinsics.ts'
import { ARRAYS, type ElementType, type Lifted, type LiftKind } from './config.ts'

/** A pointer that needs no addon. */
export interface LiftPattern {
  readonly segments: readonly string[]
  /** Type of the numbers to lift; undefined for base64. */
  readonly element: ElementType | undefined
  /** Values that do not fit stay. */
  readonly isOptional?: boolean
}

/** Every pattern is compared with all others, so the addon is faster with more of them. */
export const MOST_PATTERNS = 32

/** Returns the patterns of `pointers`, or undefined where the addon must lift them. */
export function readPatterns(
  pointers: readonly string[],
  kinds: readonly LiftKind[],
): readonly LiftPattern[] | undefined {
  if (MOST_PATTERNS < pointers.length) return undefined
  const patterns: LiftPattern[] = []
  for (const [index, pointer] of pointers.entries()) {
    const { form, element } = kinds[index] ?? {}
    const isOurs = form === 'numbers' || (form === 'base64' && element === undefined)
    const [first, ...segments] = pointer.split('/')
    const isPlain = first === '' && 0 < segments.length && !pointer.includes('~') && !pointer.includes('**')
    if (!isPlain || !isOurs) return undefined
    // Nothing is searched inside a lifted value.
    if (!patterns.every((other) => areApart(other.segments, segments))) return undefined
    patterns.push({ segments, element })
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
  for (const pattern of patterns) if (!liftAt(value, pattern, 0)) return false
  return true
}

function liftAt(container: unknown, pattern: LiftPattern, depth: number): boolean {
  if (typeof container !== 'object' || container === null || isView(container)) return true
  const segment = pattern.segments[depth] ?? ''
  if (segment === '*') {
    for (const key of Object.keys(container)) if (!liftKey(container, key, pattern, depth)) return false
    return true
  }
  if (isArray(container) ? !INDEX.test(segment) : segment === '__proto__') return !hasOwn(container, segment)
  return !hasOwn(container, segment) || liftKey(container, segment, pattern, depth)
}

const INDEX = /^(?:0|[1-9]\d*)$/

function liftKey(container: object, key: string, pattern: LiftPattern, depth: number): boolean {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an object has keys
  const parts = container as Record<string, unknown>
  const value = parts[key]
  if (depth + 1 < pattern.segments.length) return liftAt(value, pattern, depth + 1)
  // An earlier pointer lifted the value.
  if (value === null || isView(value)) return true
  const lifted = liftedOf(value, pattern.element)
  if (lifted === undefined) return pattern.isOptional === true
  parts[key] = lifted
  return true
}

function liftedOf(value: unknown, element: ElementType | undefined): Lifted | undefined {
  if (element === undefined) return typeof value === 'string' ? decodeClean(value) : undefined
  if (!isArray(value) || !value.every((item) => typeof item === 'number')) return undefined
  const lifted = ARRAYS[element].from(value)
  const isFit = element.startsWith('float') || value.every((number, index) => lifted[index] === number)
  return isFit ? lifted : undefined
}
