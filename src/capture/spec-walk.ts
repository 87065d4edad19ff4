/**
 * Captures values by JSON.stringify's own algorithm, step by step (ECMA-262, SerializeJSONProperty and what it calls),
 * on the JS thread. It takes no shortcuts, and has a stack of its own instead of the engine's. `fast-walk.ts` calls it
 * for values that are not plain, are deep, or are under a replacer.
 */

import {
  apply,
  eachOf,
  isArray,
  isBigIntObject,
  isBooleanObject,
  isBoxed,
  isMap,
  isNumberObject,
  isRawJson,
  isStringObject,
  isTypedArray,
  keysOf,
  newMap,
  toNumber,
  toText,
  truncate,
  valueOfBigInt,
  valueOfBoolean,
  type TypedArray,
} from '../runtime/intrinsics.ts'
import { circularError } from './circular.ts'
import { textWithin } from './engine.ts'
import { writeKey, writePrimitive } from './keys.ts'
import type { PathEdge } from './path-node.ts'
import { isObject } from './plain.ts'
import { isForDefault } from './brands.ts'
import { checkBigints, hasBigints, writeTypedArray } from './typed-array.ts'
import { rawJsonBytesOf } from './raw-json.ts'
import type { CaptureRules } from './rules.ts'
import { isAskedFirst, isTwofold, isUntouched } from './builtin-tojson.ts'
import { tooDeep, unsupported } from './pointer.ts'
import type { CaptureContext } from './context.ts'
import {
  CLOSE_ARRAY,
  CLOSE_MAP,
  CLOSE_OBJECT,
  IN_BOTH,
  NULL,
  ONLY_JSON,
  ONLY_MSGPACK,
  OPEN_ARRAY,
  OPEN_MAP,
  OPEN_OBJECT,
} from './opcodes.ts'

/**
 * A value under capture: an array, an object with the keys it had when it was reached, or something that `turn` steps
 * through.
 */
interface OpenValue {
  readonly value: object
  readonly keys: readonly string[] | undefined
  readonly length: number
  /** Word at its end; 0 if it has none. */
  readonly close: number
  readonly turn: ((frame: OpenValue) => void) | undefined
  at: number
  /** The enclosing value; undefined at the root. */
  readonly outer: OpenValue | undefined
}

/** Depth from which ancestors are looked up in a map. */
const SET_FROM = 64

/** Captures the value at `key` of `holder`. Returns false if JSON.stringify would leave it out. */
export function captureProperty(tape: CaptureContext, holder: object, key: string, value: unknown): boolean {
  return new Exact(tape).property(holder, key, value)
}

/** Captures a value whose `toJSON` was read: it is in `context.toJSON`. */
export function captureExactly(
  context: CaptureContext,
  name: string | number,
  value: unknown,
  edge: PathEdge,
): boolean {
  return new Exact(context).read(name, value, edge)
}

/** Captures an object or array that no user code replaces any more. */
export function captureContainer(tape: CaptureContext, name: string | number, value: object): void {
  new Exact(tape).container(name, value)
}

class Exact {
  readonly #tape: CaptureContext
  /** Edge of values whose key is written, or that have none. */
  readonly #bare: PathEdge
  #frame: OpenValue | undefined
  #deep: Map<unknown, number> | undefined
  /** A Buffer or typed array with a `toJSON`: MessagePack gets the bytes, JSON gets the answer. */
  #twofold: { readonly bytes: TypedArray; readonly json: unknown } | undefined

  constructor(tape: CaptureContext) {
    this.#tape = tape
    this.#bare = tape.vocabulary.unknown.node.element
  }

  get #rules(): CaptureRules {
    return this.#tape.rules
  }

  property(holder: object, key: string, value: unknown): boolean {
    return this.#start(holder, key, value, this.#bare) && this.#run()
  }

  read(name: string | number, value: unknown, edge: PathEdge): boolean {
    const toJSON = this.#tape.takeToJson()
    return this.#write(name, unboxed(this.#asked(this.#resolved(name, value, toJSON))), edge) && this.#run()
  }

  container(name: string | number, value: object): void {
    this.#open(name, value)
    this.#run()
  }

  /** Captures everything that is open, to its end. */
  #run(): true {
    const tape = this.#tape
    for (let frame = this.#frame; frame !== undefined; frame = this.#frame) {
      if (frame.at === frame.length) {
        if (frame.close !== 0) {
          tape.literal(frame.close)
          this.#leave(frame.value)
        }
        this.#frame = frame.outer
        continue
      }
      const { keys, at, turn } = frame
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an object under capture has string keys
      const value = frame.value as Record<string, unknown>
      frame.at += 1
      if (turn !== undefined) {
        turn(frame)
        continue
      }
      if (keys === undefined) {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an array index is a property key
        if (!this.#start(value, at, value[at as unknown as string], this.#bare)) tape.literal(NULL)
        continue
      }
      const key = keys[at] ?? ''
      this.#start(value, key, value[key], tape.vocabulary.unknown)
    }
    return true
  }

  /** Does SerializeJSONProperty. */
  #start(holder: object, name: string | number, given: unknown, edge: PathEdge): boolean {
    return this.#write(name, this.#prepared(holder, name, given), edge)
  }

  /**
   * Returns the value to write, after `toJSON`, replacer and `default`. For a Buffer that `default` may replace, `toJSON`
   * comes last, unless replacer or `default` gave another value.
   */
  #prepared(holder: object, name: string | number, given: unknown): unknown {
    const { replace } = this.#rules
    const toJSON = readToJson(given)
    const isLate = isAskedFirst(this.#rules, given, toJSON)
    let value = isLate ? given : this.#resolved(name, given, toJSON)
    if (replace !== undefined) value = apply(replace, holder, [toText(name), value])
    value = this.#asked(value)
    return unboxed(isLate && value === given ? this.#resolved(name, given, toJSON) : value)
  }

  #resolved(name: string | number, value: unknown, toJSON: unknown): unknown {
    if (typeof toJSON !== 'function' || isUntouched(this.#rules, value, toJSON)) return value
    if (isObject(value) && rawJsonBytesOf(value) !== undefined) return value
    const json: unknown = apply(toJSON, value, [toText(name)])
    if (isTwofold(this.#rules, value, toJSON)) this.#twofold = { bytes: value, json }
    return json
  }

  /** Returns what `default` makes of the value. */
  #asked(value: unknown): unknown {
    const { ask } = this.#rules
    if (ask === undefined || !isForDefault(this.#rules, value)) return value
    const answer: unknown = apply(ask, undefined, [value])
    return answer === undefined ? value : answer
  }

  /** Writes a value. Returns false, with nothing written, for a value without JSON. */
  #write(name: string | number, value: unknown, edge: PathEdge): boolean {
    const twofold = this.#twofold
    if (twofold !== undefined) {
      this.#twofold = undefined
      if (twofold.json === value && hasJson(value)) {
        writeKey(this.#tape, edge, name)
        this.#either(
          () => this.#write(name, value, this.#bare),
          () => writeTypedArray(this.#tape, name, twofold.bytes),
        )
        return true
      }
    }
    switch (typeof value) {
      case 'number':
        // NaN or an infinity.
        if (this.#rules.isFinite && value - value !== 0) throw unsupported(this.#tape, name, value)
        writePrimitive(this.#tape, name, value, edge)
        return true
      case 'string':
      case 'boolean':
        writePrimitive(this.#tape, name, value, edge)
        return true
      case 'bigint':
        this.#bigint(name, value, edge)
        return true
      case 'object':
        if (value === null) {
          writePrimitive(this.#tape, name, value, edge)
          return true
        }
        writeKey(this.#tape, edge, name)
        this.#object(name, value)
        return true
      default:
        return false
    }
  }

  #bigint(name: string | number, value: bigint, edge: PathEdge): void {
    const tape = this.#tape
    const { bigint, target } = this.#rules
    checkBigints(tape)
    const digits = toText(value)
    const print = (): void => tape.json(digits, 0, digits.length)
    writeKey(tape, edge, name)
    tape.room()
    if (target === 'msgpack') {
      if (isOf64Bits(value)) print()
      else refuse(tape, unsupported(tape, name, value))
    } else if (target === 'json' || (bigint !== 'string' && isOf64Bits(value))) {
      if (bigint === 'string') tape.string(digits)
      else print()
    } else {
      const again = (): void => this.#bigint(name, value, this.#bare)
      this.#either(again, again)
    }
  }

  /** Writes a part that differs: `json` writes it for JSON alone, `msgpack` for MessagePack alone. */
  #either(json: () => void, msgpack: () => void): void {
    const tape = this.#tape
    const { rules } = tape
    const { target } = rules
    if (typeof target !== 'object') return
    const turn = ({ at }: OpenValue): void => {
      tape.rules = at === 1 ? target.msgpack : rules
      tape.isPart = at === 1
      tape.literal(at === 1 ? ONLY_MSGPACK : IN_BOTH)
      if (at === 1) msgpack()
    }
    this.#frame = { value: rules, keys: undefined, length: 2, close: 0, turn, at: 0, outer: this.#frame }
    tape.rules = target.json
    tape.isPart = true
    tape.literal(ONLY_JSON)
    json()
  }

  #object(name: string | number, value: object): void {
    const fragment = rawJsonBytesOf(value)
    if (fragment !== undefined) this.#tape.raw(fragment)
    else if (isRawJson(value)) this.#tape.json(value.rawJSON, 0, value.rawJSON.length)
    else if (isTypedArray(value)) this.#typedArray(name, value)
    else if (this.#rules.target === 'json' || !isMap(value)) this.#open(name, value)
    else this.#map(name, value)
  }

  #map(name: string | number, value: ReadonlyMap<unknown, unknown>): void {
    if (this.#rules.target === 'msgpack') this.#openMap(name, value)
    else {
      this.#either(
        () => this.#open(name, value),
        () => this.#openMap(name, value),
      )
    }
  }

  #openMap(name: string | number, value: ReadonlyMap<unknown, unknown>): void {
    if (!this.#enter(name, value)) return
    this.#tape.literal(OPEN_MAP)
    const entries: unknown[] = []
    eachOf(value, (item, key) => {
      entries[entries.length] = key
      entries[entries.length] = item
    })
    const { length } = entries
    let item: unknown
    const turn = (frame: OpenValue): void => {
      const index = frame.at - 1
      const key = entries[index - (index % 2)]
      const step = nameOf(key, index)
      if (index % 2 === 1) {
        this.#write(step, item, this.#bare)
        return
      }
      item = this.#prepared(value, step, entries[index + 1])
      const prepared = this.#prepared(value, '', key)
      if (hasJson(item) && hasJson(prepared)) this.#write(step, prepared, this.#bare)
      else frame.at += 1
    }
    this.#frame = { value, keys: undefined, length, close: CLOSE_MAP, turn, at: 0, outer: this.#frame }
  }

  #typedArray(name: string | number, value: TypedArray): void {
    const tape = this.#tape
    const { typedArrays, target } = this.#rules
    const writeBytes = (): void => writeTypedArray(tape, name, value)
    const writeKeys = (): void => {
      // It has as many keys as elements; nothing lists them faster than the engine.
      const text = tape.isPart && hasBigints(value) ? undefined : textWithin(tape, value)
      if (typeof text === 'string') tape.json(text, 0, text.length)
      else this.#open(name, text?.value ?? value)
    }
    if (typedArrays !== 'object' || target === 'msgpack') writeBytes()
    else if (target === 'json') writeKeys()
    else this.#either(writeKeys, writeBytes)
  }

  #open(name: string | number, value: object): void {
    const tape = this.#tape
    if (!this.#enter(name, value)) return
    if (isArray(value)) {
      const length = lengthOfArray(value)
      tape.literal(OPEN_ARRAY)
      this.#frame = {
        value,
        keys: undefined,
        length,
        close: CLOSE_ARRAY,
        turn: undefined,
        at: 0,
        outer: this.#frame,
      }
      return
    }
    const keys = this.#rules.keys ?? keysOf(value)
    tape.literal(OPEN_OBJECT)
    const { length } = keys
    this.#frame = { value, keys, length, close: CLOSE_OBJECT, turn: undefined, at: 0, outer: this.#frame }
  }

  /**
   * Puts a container on the path and returns true. For one that is on the path already it throws what JSON.stringify
   * throws, or writes the text of the rules and returns false.
   */
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

/**
 * Puts a container on the path. For one that is there already it throws what JSON.stringify does; or writes what the
 * rules say instead, and tells that it is done.
 */
export function enter(tape: CaptureContext, name: string | number, value: object): boolean {
  const { path, depth } = tape
  for (let index = depth - 1; 0 <= index; index -= 1) if (path[index] === value) return meetAgain(tape, index, name)
  push(tape, name, value)
  return true
}

function meetAgain(tape: CaptureContext, start: number, name: string | number): false {
  const { circular, target } = tape.rules
  tape.room()
  if (circular !== undefined) {
    tape.string(circular)
    return false
  }
  const error = circularError(tape.path, tape.names, start, tape.depth, name)
  if (target !== 'msgpack') throw error
  refuse(tape, error)
  return false
}

/** Refuses a value that MessagePack cannot express: throws the error, or keeps it until MessagePack is asked for. */
function refuse(tape: CaptureContext, error: unknown): void {
  if (!tape.isPart) throw error
  tape.msgpackError ??= error
  tape.literal(NULL)
}

function push(tape: CaptureContext, name: string | number, value: object): void {
  if (tape.rules.maxDepth <= tape.depth) throw tooDeep(tape, name)
  tape.path[tape.depth] = value
  tape.names[tape.depth] = name
  tape.depth += 1
}

/** Reads the `toJSON` of a value that may have one. */
function readToJson(value: unknown): unknown {
  if (!isObject(value) && typeof value !== 'bigint') return undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every object and bigint may have such a property
  return (value as { toJSON?: unknown }).toJSON
}

/** Unboxes objects that stand for primitives, recognised by brand: their methods may be patched. */
function unboxed(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !isBoxed(value)) return value
  if (isNumberObject(value)) return toNumber(value)
  if (isStringObject(value)) return toText(value)
  if (isBooleanObject(value)) return valueOfBoolean(value)
  if (isBigIntObject(value)) return valueOfBigInt(value)
  return value
}

/** Whether JSON.stringify gives the value any JSON. */
function hasJson(value: unknown): boolean {
  return value !== undefined && typeof value !== 'function' && typeof value !== 'symbol'
}

/** Returns the name that a path gives to the value at a key of a Map. */
function nameOf(key: unknown, index: number): string | number {
  if (typeof key === 'string') return key
  return isObject(key) || typeof key === 'symbol' ? index : toText(key)
}

function isOf64Bits(value: bigint): boolean {
  return LEAST_INT64 <= value && value <= MOST_UINT64
}

const LEAST_INT64 = -(2n ** 63n)
const MOST_UINT64 = 2n ** 64n - 1n

/** Does ToLength of a length that a proxy may give. */
function lengthOfArray(value: readonly unknown[]): number {
  const length = truncate(toNumber(value.length))
  // NaN is excluded too.
  if (!(0 < length)) return 0
  // V8 throws this error.
  if (MOST_ELEMENTS < length) throw new RangeError('Maximum call stack size exceeded')
  return length
}

const MOST_ELEMENTS = 2 ** 32 - 1
