/** What every function does with its options: refuse unknown keys, read each property once. */

import { invalidType, invalidValue, outOfRange } from './errors.ts'

/** Cancellation: rejects with `signal.reason` at once if the work has not started, else at the next check (at most 10 ms of work). */
export interface Cancellable {
  readonly signal?: AbortSignal | undefined
}

export interface BytesInput {
  /** @default false */
  readonly transfer?: boolean | undefined
}

/** What Node's timers take; they make a millisecond of more. */
export const MAX_DELAY_MS: number = 2 ** 31 - 1

/** A table without a prototype: nothing is in it but what was put there. */
export function tableOf<T>(entries: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.assign(Object.create(null), entries)
}

/** Refuses what is no object, and keys that are not `known`. The properties themselves are then read once each. */
export function checkKeys(options: unknown, known: Readonly<Record<string, unknown>>, name = 'options'): void {
  if (typeof options !== 'object' || options === null) throw invalidType(name, 'of type object', options)
  // Inherited ones too: they are read as well.
  // oxlint-disable-next-line guard-for-in
  for (const key in options) {
    if (!(key in known)) throw invalidValue(`${name}.${key}`, 'is not an option', Reflect.get(options, key))
  }
}

/** The entry of `choices`, a table, that `value` names. */
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

/** Fractions and, if `most` is, infinity too. */
export function readNumber(name: string, value: unknown, least: number, most: number): number | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value)
  if (!(least <= value && value <= most)) throw outOfRange(name, `>= ${least} && <= ${most}`, value)
  return value
}

/** A bound of what is counted; none is infinite. */
export function readLimit(name: string, value: unknown, least: number): number {
  if (value === Infinity) return Infinity
  return readInteger(name, value, least, Number.MAX_SAFE_INTEGER) ?? Infinity
}

export function readListener<T>(name: string, value: ((done: T) => void) | undefined): ((done: T) => void) | undefined {
  if (value === undefined || typeof value === 'function') return value
  throw invalidType(name, 'of type function', value)
}

/** The signal, if there is one; throws its reason if it is already aborted. */
export function readSignal(value: unknown): AbortSignal | undefined {
  if (value === undefined) return undefined
  if (!isSignal(value)) throw invalidType('options.signal', 'an instance of AbortSignal', value)
  if (value.aborted) throw value.reason
  return value
}

/** By shape, as Node does it: signals of other realms and polyfills are signals too. */
function isSignal(value: unknown): value is AbortSignal {
  if (typeof value !== 'object' || value === null || !('aborted' in value)) return false
  return isMethod(value, 'addEventListener') && isMethod(value, 'removeEventListener')
}

function isMethod(target: object, name: string): boolean {
  return typeof Reflect.get(target, name) === 'function'
}
