/**
 * What JSON.stringify writes in place of a value: the results of `toJSON`, the replacer and the option `default`, and
 * unboxed primitives (the first half of SerializeJSONProperty in ECMA-262). Runs on the JS thread; `spec-frames.ts` and
 * `spec-walk.ts` call it.
 */

import {
  apply,
  isBigIntObject,
  isBooleanObject,
  isBoxed,
  isNumberObject,
  isStringObject,
  toNumber,
  toText,
  valueOfBigInt,
  valueOfBoolean,
  type TypedArray,
} from '../runtime/intrinsics.ts'
import { isForDefault } from './brands.ts'
import { isAskedFirst, isTwofold, isUntouched } from './builtin-tojson.ts'
import type { CaptureContext } from './context.ts'
import { isObject } from './plain.ts'
import { rawJsonBytesOf } from './raw-json.ts'
import type { CaptureRules } from './rules.ts'

/** A Buffer or typed array with a `toJSON`: MessagePack gets the bytes, JSON gets the answer. */
export interface TwofoldValue {
  readonly bytes: TypedArray
  readonly json: unknown
}

export class SpecValues {
  readonly context: CaptureContext
  /** The last value, if it has two forms. */
  #twofold: TwofoldValue | undefined

  constructor(context: CaptureContext) {
    this.context = context
  }

  get rules(): CaptureRules {
    return this.context.rules
  }

  /**
   * Returns the value to write, after `toJSON`, replacer and `default`. For a Buffer that `default` may replace, `toJSON`
   * comes last, unless replacer or `default` gave another value.
   */
  prepare(holder: object, name: string | number, given: unknown): unknown {
    const { replace } = this.rules
    const toJSON = readToJson(given)
    const isLate = isAskedFirst(this.rules, given, toJSON)
    let value = isLate ? given : this.#resolve(name, given, toJSON)
    if (replace !== undefined) value = apply(replace, holder, [toText(name), value])
    value = this.#ask(value)
    return unbox(isLate && value === given ? this.#resolve(name, given, toJSON) : value)
  }

  /** Returns the value to write for one whose `toJSON` was read, and that no replacer gets. */
  prepareRead(name: string | number, value: unknown, toJSON: unknown): unknown {
    return unbox(this.#ask(this.#resolve(name, value, toJSON)))
  }

  /** Returns both forms of the last prepared value, if it has two, and forgets them. */
  takeTwofold(): TwofoldValue | undefined {
    const twofold = this.#twofold
    if (twofold !== undefined) this.#twofold = undefined
    return twofold
  }

  /** Returns what `toJSON` makes of the value. */
  #resolve(name: string | number, value: unknown, toJSON: unknown): unknown {
    if (typeof toJSON !== 'function' || isUntouched(this.rules, value, toJSON)) return value
    if (isObject(value) && rawJsonBytesOf(value) !== undefined) return value
    const json: unknown = apply(toJSON, value, [toText(name)])
    if (isTwofold(this.rules, value, toJSON)) this.#twofold = { bytes: value, json }
    return json
  }

  /** Returns what `default` makes of the value. */
  #ask(value: unknown): unknown {
    const { ask } = this.rules
    if (ask === undefined || !isForDefault(this.rules, value)) return value
    const answer: unknown = apply(ask, undefined, [value])
    return answer === undefined ? value : answer
  }
}

/** Reads the `toJSON` of a value that may have one. */
function readToJson(value: unknown): unknown {
  if (!isObject(value) && typeof value !== 'bigint') return undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every object and bigint may have such a property
  return (value as { toJSON?: unknown }).toJSON
}

/** Unboxes objects that stand for primitives, recognised by brand: their methods may be patched. */
function unbox(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !isBoxed(value)) return value
  if (isNumberObject(value)) return toNumber(value)
  if (isStringObject(value)) return toText(value)
  if (isBooleanObject(value)) return valueOfBoolean(value)
  if (isBigIntObject(value)) return valueOfBigInt(value)
  return value
}

/** Whether JSON.stringify gives the value any JSON. */
export function hasJson(value: unknown): boolean {
  return value !== undefined && typeof value !== 'function' && typeof value !== 'symbol'
}
