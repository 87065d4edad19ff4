/**
 * Reads options, on the JS thread: refuses unknown keys and wrong values, and reads each own property once. Every
 * public function calls it.
 */

import { invalidType, invalidValue, outOfRange } from './errors.ts'
import { assignAll, createObject, ownKeysOf, propertyOf } from './intrinsics.ts'

/**
 * Cancellation. The promise rejects with `signal.reason`: at once if the work has not started, else after at most 10 ms
 * of work.
 */
export interface Cancellable {
  readonly signal?: AbortSignal | undefined
}

/** Bounded work. */
export interface Bounded {
  /** Most bytes to read or to write. Beyond it the call rejects with ERR_OFFLOOP_TOO_LARGE at once; a stream is cancelled. @default Infinity */
  readonly maxBytes?: number | undefined
}

export interface BytesInput {
  /**
   * Takes byte inputs instead of copying them: views of a whole ArrayBuffer that can be transferred, and whole results of
   * offloop. The views are empty afterwards, and their memory serves later results. Other bytes are copied. Encoders take
   * typed arrays and Buffers of 64 KiB or more. A call that rejects before it starts takes nothing. @default false
   */
  readonly transfer?: boolean | undefined
}

/** Longest delay of Node's timers, which turn a longer one into 1 ms. */
export const MAX_DELAY_MS: number = 2 ** 31 - 1

/** Makes a table without a prototype: it has only the given entries. */
export function tableOf<T>(entries: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return withoutPrototype(entries)
}

/** Copies an object without its prototype, for properties that may be absent. */
export function withoutPrototype<T extends object>(entries: T): T {
  return assignAll(createObject(null), entries)
}

/**
 * Copies the own properties of `options`, enumerable or not, reading each once. The copy inherits nothing: neither a
 * class of the caller's nor a patched Object.prototype sets an option. Throws for a value that is not an object, and
 * for a key that is not `known`.
 */
export function copyOptions<T extends object>(
  options: T,
  known: Readonly<Record<string, unknown>>,
  name = 'options',
): T {
  if (typeof options !== 'object' || options === null) throw invalidType(name, 'of type object', options)
  const copy: Record<string, unknown> = createObject(null)
  const keys = ownKeysOf(options)
  for (let index = 0; index < keys.length; index += 1) {
    const key = keys[index]
    if (typeof key !== 'string') continue
    const value = propertyOf(options, key)
    if (!(key in known)) throw invalidValue(`${name}.${key}`, 'is not an option', value)
    copy[key] = value
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the copy has properties of `options` alone
  return copy as T
}

/** Returns the entry of `choices` that `value` names. */
export function choose<T>(name: string, value: unknown, choices: Readonly<Record<string, T>>, byDefault: T): T {
  if (value === undefined) return byDefault
  const choice = typeof value === 'string' ? choices[value] : undefined
  if (choice !== undefined) return choice
  const names = Object.keys(choices).map((key) => `'${key}'`)
  throw invalidValue(name, `must be one of: ${names.join(', ')}`, value)
}

export function readBoolean(name: string, value: unknown, byDefault: boolean): boolean {
  if (value === undefined) return byDefault
  if (typeof value !== 'boolean') throw invalidType(name, 'of type boolean', value)
  return value
}

export function readInteger(name: string, value: unknown, least: number, most: number): number | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value)
  if (!Number.isInteger(value)) throw outOfRange(name, 'an integer', value)
  if (value < least || most < value) throw outOfRange(name, `>= ${least} && <= ${most}`, value)
  return value
}

/** Reads a number, fractions included, and infinity if `most` is infinite. */
export function readNumber(name: string, value: unknown, least: number, most: number): number | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value)
  if (!(least <= value && value <= most)) throw outOfRange(name, `>= ${least} && <= ${most}`, value)
  return value
}

/** Reads a bound of a count; Infinity means none. */
export function readLimit(name: string, value: unknown, least: number): number {
  if (value === Infinity) return Infinity
  return readInteger(name, value, least, Number.MAX_SAFE_INTEGER) ?? Infinity
}

export function readListener<T>(name: string, value: ((done: T) => void) | undefined): ((done: T) => void) | undefined {
  if (value === undefined || typeof value === 'function') return value
  throw invalidType(name, 'of type function', value)
}

/** Reads a signal, if there is one. Throws its reason if it is already aborted. */
export function readSignal(value: unknown): AbortSignal | undefined {
  if (value === undefined) return undefined
  if (!isSignal(value)) throw invalidType('options.signal', 'an instance of AbortSignal', value)
  if (value.aborted) throw value.reason
  return value
}

/** Recognises signals by shape, as Node does: other realms and polyfills have signals too. */
function isSignal(value: unknown): value is AbortSignal {
  if (typeof value !== 'object' || value === null || !('aborted' in value)) return false
  return isMethod(value, 'addEventListener') && isMethod(value, 'removeEventListener')
}

function isMethod(target: object, name: string): boolean {
  return typeof Reflect.get(target, name) === 'function'
}

/** Whether a value is absent, as undefined or as null. */
export function isNothing(value: unknown): value is null | undefined {
  return value === undefined || value === null
}

/** Calls a function now. Returns a function that returns its result, or throws its error: for calls that never throw. */
export function deferError<T>(call: () => T): () => T {
  try {
    const result = call()
    return () => result
  } catch (error) {
    return () => {
      throw error
    }
  }
}
