/**
 * JSON.stringify's own algorithm, step by step (ECMA-262, SerializeJSONProperty and what it calls), onto a tape. It has
 * no shortcuts for values that nothing can observe and its own stack instead of the engine's: what walk.ts does not know
 * to be plain, or deep, or under a replacer, is captured here.
 */

import {
  apply,
  descriptorOf,
  execRegExp,
  isArray,
  isBigIntObject,
  isBooleanObject,
  isBoxed,
  isNumberObject,
  isProxy,
  isRawJson,
  isStringObject,
  isTypedArray,
  keysOf,
  newMap,
  prototypeOf,
  stringifyJson,
  toNumber,
  toText,
  truncate,
  valueOfBoolean,
  stringIncludes,
} from '../intrinsics.ts'
import { circularError } from './circular.ts'
import { writeKey, writePrimitive, type Key } from './place.ts'
import { isObject } from './plain.ts'
import { CLOSE_ARRAY, CLOSE_OBJECT, NULL, OPEN_ARRAY, OPEN_OBJECT, type Tape } from './tape.ts'

/** `replacer`, as JSON.stringify understands it. */
export interface Rules {
  readonly replace: ((this: unknown, key: string, value: unknown) => unknown) | undefined
  readonly keys: readonly string[] | undefined
}

export const NO_RULES: Rules = { replace: undefined, keys: undefined }

/** What is being captured: an array, or an object with the keys it had when it was come to. */
interface Frame {
  readonly value: Record<string, unknown>
  readonly keys: readonly string[] | undefined
  readonly length: number
  at: number
  /** That it stands in. */
  readonly outer: Frame | undefined
}

/** Ancestors from this depth on are looked for in a set. */
const SET_FROM = 64

/** Captures the value at `key` of `holder`. False if JSON.stringify would leave it out. */
export function captureProperty(tape: Tape, rules: Rules, holder: object, key: string, value: unknown): boolean {
  return new Exact(tape, rules).property(holder, key, value)
}

/** Captures a value whose `toJSON` was read already and is `toJSON`. */
export function captureExactly(
  tape: Tape,
  name: string | number,
  value: unknown,
  toJSON: unknown,
  key: Key | undefined,
): boolean {
  return new Exact(tape, NO_RULES).read(name, value, toJSON, key)
}

/** Captures an object or array that needs no more resolving. */
export function captureContainer(tape: Tape, name: string | number, value: object): void {
  new Exact(tape, NO_RULES).container(name, value)
}

class Exact {
  readonly #tape: Tape
  readonly #rules: Rules
  #frame: Frame | undefined
  #deep: Map<unknown, number> | undefined

  constructor(tape: Tape, rules: Rules) {
    this.#tape = tape
    this.#rules = rules
  }

  get #hasNoRules(): boolean {
    return this.#rules.replace === undefined && this.#rules.keys === undefined
  }

  property(holder: object, key: string, value: unknown): boolean {
    return this.#start(holder, key, value, undefined) && this.#run()
  }

  read(name: string | number, value: unknown, toJSON: unknown, key: Key | undefined): boolean {
    const resolved = typeof toJSON === 'function' ? apply(toJSON, value, [toText(name)]) : value
    return this.#write(name, unboxed(resolved), key) && this.#run()
  }

  container(name: string | number, value: object): void {
    this.#open(name, value)
    this.#run()
  }

  /** What has been begun, to its end. */
  #run(): true {
    const tape = this.#tape
    for (let frame = this.#frame; frame !== undefined; frame = this.#frame) {
      if (frame.at === frame.length) {
        tape.literal(frame.keys === undefined ? CLOSE_ARRAY : CLOSE_OBJECT)
        this.#leave(frame.value)
        this.#frame = frame.outer
        continue
      }
      const { value, keys, at } = frame
      frame.at += 1
      if (keys === undefined) {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion
        if (!this.#start(value, at, value[at as unknown as string], undefined)) tape.literal(NULL)
        continue
      }
      const key = keys[at] ?? ''
      this.#start(value, key, value[key], tape.vocabulary.unknown)
    }
    return true
  }

  /** SerializeJSONProperty. */
  #start(holder: object, name: string | number, given: unknown, key: Key | undefined): boolean {
    const { replace } = this.#rules
    let value = given
    if (isObject(value) || typeof value === 'bigint') {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      const { toJSON } = value as { toJSON?: unknown }
      if (typeof toJSON === 'function') value = apply(toJSON, value, [toText(name)])
    }
    if (replace !== undefined) value = apply(replace, holder, [toText(name), value])
    return this.#write(name, unboxed(value), key)
  }

  /** False, with nothing written, for what has no JSON. */
  #write(name: string | number, value: unknown, key: Key | undefined): boolean {
    switch (typeof value) {
      case 'string':
      case 'number':
      case 'boolean':
        writePrimitive(this.#tape, name, value, key)
        return true
      case 'bigint':
        throw new TypeError('Do not know how to serialize a BigInt')
      case 'object':
        if (value === null) {
          writePrimitive(this.#tape, name, value, key)
          return true
        }
        writeKey(this.#tape, key, name)
        this.#object(name, value)
        return true
      default:
        return false
    }
  }

  #object(name: string | number, value: object): void {
    if (isRawJson(value)) {
      this.#tape.json(value.rawJSON, 0, value.rawJSON.length)
      return
    }
    const text =
      this.#hasNoRules && isTypedArray(value) && !hasToJson(value) ? stringified(value, this.#tape.depth) : undefined
    if (text !== undefined) {
      // Its keys are as many as its elements; nobody makes them faster than the engine.
      this.#tape.json(text, 0, text.length)
      return
    }
    this.#open(name, value)
  }

  #open(name: string | number, value: object): void {
    const tape = this.#tape
    this.#enter(name, value)
    if (isArray(value)) {
      const length = lengthOfArray(value)
      tape.literal(OPEN_ARRAY)
      this.#frame = {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion
        value: value as unknown as Record<string, unknown>,
        keys: undefined,
        length,
        at: 0,
        outer: this.#frame,
      }
      return
    }
    const keys = this.#rules.keys ?? keysOf(value)
    tape.literal(OPEN_OBJECT)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    this.#frame = { value: value as Record<string, unknown>, keys, length: keys.length, at: 0, outer: this.#frame }
  }

  #enter(name: string | number, value: object): void {
    const tape = this.#tape
    if (tape.depth < SET_FROM) {
      enter(tape, name, value)
      return
    }
    this.#deep ??= placesOf(tape.path, tape.depth)
    const start = this.#deep.get(value)
    if (start !== undefined) throw circularError(tape.path, tape.names, start, tape.depth, name)
    this.#deep.set(value, tape.depth)
    push(tape, name, value)
  }

  #leave(value: object): void {
    this.#deep?.delete(value)
    this.#tape.depth -= 1
  }
}

function placesOf(path: readonly unknown[], depth: number): Map<unknown, number> {
  const places = newMap<unknown, number>()
  for (let index = 0; index < depth; index += 1) places.set(path[index], index)
  return places
}

/** Whether `toJSON` stands anywhere along its prototypes. It is not read. */
export function hasToJson(value: object): boolean {
  for (let next: object | null = value; next !== null; next = prototypeOf(next)) {
    if (isProxy(next) || descriptorOf(next, 'toJSON') !== undefined) return true
  }
  return false
}

const CIRCULAR = /^Converting circular structure/

/**
 * What the engine makes of a value. Undefined where it gives up and we do not: for depth and length; and for circles
 * that may begin at an ancestor, which it does not see.
 */
export function stringified(value: unknown, ancestors: number): string | undefined {
  try {
    return stringifyJson(value)
  } catch (error) {
    if (isLimit(error)) return undefined
    const isCircle = error instanceof TypeError && execRegExp(CIRCULAR, error.message) !== null
    if (0 < ancestors && isCircle && isEngines(error)) return undefined
    throw error
  }
}

/** Of the engine's stack, or of its strings. */
export function isLimit(error: unknown): boolean {
  if (!(error instanceof RangeError)) return false
  const { message } = error
  return (message === 'Maximum call stack size exceeded' || message === 'Invalid string length') && isEngines(error)
}

/** Thrown by JSON.stringify itself, not by what it calls. */
function isEngines({ stack, message }: Error): boolean {
  if (typeof stack !== 'string') return false
  const has = (name: string): boolean => stringIncludes(stack, `${message}\n    at ${name} (<anonymous>)`)
  return has('stringify') || has('JSON.stringify')
}

/** Puts a container on the path; throws what JSON.stringify does for one that is there already. */
export function enter(tape: Tape, name: string | number, value: object): void {
  const { path, depth } = tape
  for (let index = depth - 1; 0 <= index; index -= 1) {
    if (path[index] === value) throw circularError(path, tape.names, index, depth, name)
  }
  push(tape, name, value)
}

function push(tape: Tape, name: string | number, value: object): void {
  tape.path[tape.depth] = value
  tape.names[tape.depth] = name
  tape.depth += 1
}

/** Objects that stand for primitives, by brand. Their methods may be anybody's. */
function unboxed(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !isBoxed(value)) return value
  if (isNumberObject(value)) return toNumber(value)
  if (isStringObject(value)) return toText(value)
  if (isBooleanObject(value)) return valueOfBoolean(value)
  if (isBigIntObject(value)) throw new TypeError('Do not know how to serialize a BigInt')
  return value
}

/** ToLength of what a proxy says. */
function lengthOfArray(value: readonly unknown[]): number {
  const length = truncate(toNumber(value.length))
  // Not a number neither.
  if (!(0 < length)) return 0
  // As V8 has it.
  if (MOST_ELEMENTS < length) throw new RangeError('Maximum call stack size exceeded')
  return length
}

const MOST_ELEMENTS = 2 ** 32 - 1
