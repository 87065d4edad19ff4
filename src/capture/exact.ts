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
  toNumber,
  toText,
  truncate,
  valueOfBigInt,
  valueOfBoolean,
  type TypedArray,
  stringIncludes,
} from '../intrinsics.ts'
import { circularError } from './circular.ts'
import { writeKey, writePrimitive, type Key } from './place.ts'
import { isObject } from './plain.ts'
import { isAsked } from './brands.ts'
import { checkBigints, writeTypedArray } from './typed.ts'
import { fragmentOf, stringify, type Revived } from './raw.ts'
import { NO_RULES, type Rules } from './rules.ts'
import { isUntouched } from './usual.ts'
import { unsupported } from './pointer.ts'
import { CLOSE_ARRAY, CLOSE_OBJECT, NULL, OPEN_ARRAY, OPEN_OBJECT, type Tape } from './tape.ts'

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
export function captureProperty(tape: Tape, holder: object, key: string, value: unknown): boolean {
  return new Exact(tape).property(holder, key, value)
}

/** Captures a value whose `toJSON` was read already and is `toJSON`. */
export function captureExactly(
  tape: Tape,
  name: string | number,
  value: unknown,
  toJSON: unknown,
  key: Key | undefined,
): boolean {
  return new Exact(tape).read(name, value, toJSON, key)
}

/** Captures an object or array that needs no more resolving. */
export function captureContainer(tape: Tape, name: string | number, value: object): void {
  new Exact(tape).container(name, value)
}

class Exact {
  readonly #tape: Tape
  readonly #rules: Rules
  #frame: Frame | undefined
  #deep: Map<unknown, number> | undefined

  constructor(tape: Tape) {
    this.#tape = tape
    this.#rules = tape.rules
  }

  property(holder: object, key: string, value: unknown): boolean {
    return this.#start(holder, key, value, undefined) && this.#run()
  }

  read(name: string | number, value: unknown, toJSON: unknown, key: Key | undefined): boolean {
    return this.#write(name, unboxed(this.#asked(this.#resolved(name, value, toJSON))), key) && this.#run()
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
      value = this.#resolved(name, value, (value as { toJSON?: unknown }).toJSON)
    }
    if (replace !== undefined) value = apply(replace, holder, [toText(name), value])
    return this.#write(name, unboxed(this.#asked(value)), key)
  }

  #resolved(name: string | number, value: unknown, toJSON: unknown): unknown {
    if (typeof toJSON !== 'function' || isUntouched(this.#rules, value, toJSON)) return value
    if (isObject(value) && fragmentOf(value) !== undefined) return value
    return apply(toJSON, value, [toText(name)])
  }

  /** What `default` makes of it. */
  #asked(value: unknown): unknown {
    const { ask } = this.#rules
    if (ask === undefined || !isAsked(value)) return value
    const answer: unknown = apply(ask, undefined, [value])
    return answer === undefined ? value : answer
  }

  /** False, with nothing written, for what has no JSON. */
  #write(name: string | number, value: unknown, key: Key | undefined): boolean {
    switch (typeof value) {
      case 'number':
        // NaN, or infinite.
        if (this.#rules.isFinite && value - value !== 0) throw unsupported(this.#tape, name, value)
        writePrimitive(this.#tape, name, value, key)
        return true
      case 'string':
      case 'boolean':
        writePrimitive(this.#tape, name, value, key)
        return true
      case 'bigint':
        this.#bigint(name, value, key)
        return true
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

  #bigint(name: string | number, value: bigint, key: Key | undefined): void {
    const tape = this.#tape
    checkBigints(this.#rules)
    const digits = toText(value)
    if (this.#rules.bigint === 'string') {
      writePrimitive(tape, name, digits, key)
      return
    }
    writeKey(tape, key, name)
    tape.json(digits, 0, digits.length)
  }

  #object(name: string | number, value: object): void {
    const fragment = fragmentOf(value)
    if (fragment !== undefined) this.#tape.raw(fragment)
    else if (isRawJson(value)) this.#tape.json(value.rawJSON, 0, value.rawJSON.length)
    else if (isTypedArray(value)) this.#typedArray(name, value)
    else this.#open(name, value)
  }

  #typedArray(name: string | number, value: TypedArray): void {
    const tape = this.#tape
    if (this.#rules.typedArrays !== 'object') {
      writeTypedArray(tape, name, value)
      return
    }
    // Its keys are as many as its elements; nobody makes them faster than the engine.
    const text = stringified(tape, value)
    if (typeof text === 'string') tape.json(text, 0, text.length)
    else this.#open(name, text?.value ?? value)
  }

  #open(name: string | number, value: object): void {
    const tape = this.#tape
    if (!this.#enter(name, value)) return
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

  /** As `enter`. */
  #enter(name: string | number, value: object): boolean {
    const tape = this.#tape
    if (tape.depth < SET_FROM) return enter(tape, name, value)
    this.#deep ??= placesOf(tape.path, tape.depth)
    const start = this.#deep.get(value)
    if (start !== undefined) return meetAgain(tape, start, name)
    this.#deep.set(value, tape.depth)
    push(tape, name, value)
    return true
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
 * What the engine makes of a container, whose `toJSON` was read. Undefined where it may not be asked, or gives up and we
 * do not: for depth and length; and for circles that may begin at an ancestor, which it does not see.
 */
export function stringified(tape: Tape, value: object): string | Revived | undefined {
  if (tape.rules !== NO_RULES || hasToJson(value)) return undefined
  try {
    return stringify(value)
  } catch (error) {
    if (isLimit(error)) return undefined
    const isCircle = error instanceof TypeError && execRegExp(CIRCULAR, error.message) !== null
    if (0 < tape.depth && isCircle && isEngines(error)) return undefined
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

/**
 * Puts a container on the path. For one that is there already it throws what JSON.stringify does; or writes what the
 * rules say instead, and tells that it is done.
 */
export function enter(tape: Tape, name: string | number, value: object): boolean {
  const { path, depth } = tape
  for (let index = depth - 1; 0 <= index; index -= 1) if (path[index] === value) return meetAgain(tape, index, name)
  push(tape, name, value)
  return true
}

function meetAgain(tape: Tape, start: number, name: string | number): false {
  const { circular } = tape.rules
  if (circular === undefined) throw circularError(tape.path, tape.names, start, tape.depth, name)
  tape.room()
  tape.string(circular)
  return false
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
  if (isBigIntObject(value)) return valueOfBigInt(value)
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
