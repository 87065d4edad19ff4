/** What callers may say about encoding, and what it comes to. */

import { isEngines, NO_RULES, type Replace, type Rules } from './capture/rules.ts'
import { invalidType } from './errors.ts'
import {
  isArray,
  isNumberObject,
  isStringObject,
  leastOf,
  newSet,
  repeatString,
  sliceString,
  stringifyJson,
  toNumber,
  toText,
  truncate,
} from './intrinsics.ts'
import { Layout } from './native.ts'
import { checkKeys, choose, readBoolean, tableOf, type Cancellable } from './options.ts'

export interface EncodeOptions extends Cancellable {
  /** As JSON.stringify's. A function runs on the JS thread, for every key. */
  readonly replacer?:
    | ((this: unknown, key: string, value: unknown) => unknown)
    | readonly (string | number)[]
    | null
    | undefined
  /** As JSON.stringify's. */
  readonly space?: string | number | undefined
  /** End with one "\n". @default false */
  readonly newline?: boolean | undefined
  /** Object keys in UTF-16 code-unit order (RFC 8785), at every depth. A RawJson stays as it is. @default false */
  readonly sortKeys?: boolean | undefined
  /** Typed arrays and Buffers: as JSON.stringify writes them; as an array of numbers (float32 in its own shortest form, BigInt arrays as `bigint` says); or their bytes as a base64 string (with these two, Buffer.prototype.toJSON is not called). @default 'object' */
  readonly typedArrays?: 'object' | 'array' | 'base64' | undefined
  /** @default 'throw' (as JSON.stringify) */
  readonly bigint?: 'throw' | 'number' | 'string' | undefined
  /** NaN and infinities. @default 'null' (as JSON.stringify) */
  readonly nonFinite?: 'null' | 'throw' | undefined
  /** An ancestor met again: throw as JSON.stringify does, or write this text in its place. @default 'throw' */
  readonly circular?: 'throw' | { readonly text: string } | undefined
  /**
   * Asked, after toJSON and replacer, for functions, symbols, bigints, and (by brand, whatever keys they have) Map, Set, WeakMap, WeakSet,
   * WeakRef, RegExp, Error, Promise, ArrayBuffer, SharedArrayBuffer, DataView. Its answer is encoded instead, and what the answer
   * contains may be asked about in turn, the answer itself not again; `undefined` means "as without me".
   */
  readonly default?: ((value: unknown) => unknown) | undefined
}

export interface EncodeLinesOptions extends Omit<EncodeOptions, 'space' | 'newline'> {
  /** A row that cannot be encoded: reject the whole call, or leave it out and report it (in order of index, before the promise settles). @default 'throw' */
  readonly onBadRow?: 'throw' | ((error: unknown, index: number) => void) | undefined
}

export interface MsgpackOptions extends Cancellable {
  /** Numbers that are not integers. Integers take the smallest form, as msgspec and msgpack-c write them. @default 'float64' */
  readonly floats?: 'float64' | 'float32' | undefined
}

/** What is made of a tape. */
export interface Shape {
  /** Bits of `Layout`. */
  readonly layout: number
  /** Undefined for no white space at all. */
  readonly gap: string | undefined
}

/** What `EncodeOptions` come to. */
export interface Form extends Shape {
  readonly rules: Rules
  /** Ends with one "\n". */
  readonly newline: boolean
}

export const DEFAULT_FORM: Form = { rules: NO_RULES, layout: 0, gap: undefined, newline: false }

export type OnBadRow = (error: unknown, index: number) => void

const CAPTURE = {
  replacer: true,
  typedArrays: true,
  bigint: true,
  nonFinite: true,
  circular: true,
  default: true,
}
const RULE_KEYS = { ...CAPTURE, sortKeys: true }
export const SYNC_KEYS: Readonly<Record<string, unknown>> = tableOf({ ...RULE_KEYS, space: true, newline: true })
export const ENCODE_KEYS: Readonly<Record<string, unknown>> = tableOf({
  ...RULE_KEYS,
  space: true,
  newline: true,
  signal: true,
})
export const LINES_KEYS: Readonly<Record<string, unknown>> = tableOf({ ...RULE_KEYS, onBadRow: true, signal: true })
export const ROW_KEYS: Readonly<Record<string, unknown>> = tableOf(RULE_KEYS)
export const SIGNAL_KEYS: Readonly<Record<string, unknown>> = tableOf({ signal: true })
export const ENCODER_LINES_KEYS: Readonly<Record<string, unknown>> = tableOf({ onBadRow: true, signal: true })
export const CAPTURE_KEYS: Readonly<Record<string, unknown>> = tableOf(CAPTURE)
export const SNAPSHOT_KEYS: Readonly<Record<string, unknown>> = tableOf({
  space: true,
  newline: true,
  sortKeys: true,
  signal: true,
})
export const MSGPACK_KEYS: Readonly<Record<string, unknown>> = tableOf({ floats: true, signal: true })

type Given<T> = { readonly [K in keyof T]?: unknown }

export function readForm(options: Given<EncodeOptions>): Form {
  const { space, newline } = options
  const hasNewline = readBoolean('options.newline', newline, false)
  return { ...readRowForm(options), gap: readSpace(space), newline: hasNewline }
}

/** What rows have of it. */
export function readRowForm(options: Given<EncodeLinesOptions>): Form {
  const sortKeys = readBoolean('options.sortKeys', options.sortKeys, false)
  return { ...DEFAULT_FORM, rules: readRules(options), layout: sortKeys ? Layout.SortedKeys : 0 }
}

const TYPED_ARRAYS = tableOf({ object: 'object', array: 'array', base64: 'base64' } as const)
const BIGINTS = tableOf({ throw: 'throw', number: 'number', string: 'string' } as const)
const NON_FINITE = tableOf({ null: false, throw: true })

/** The very NO_RULES where they are those. */
export function readRules(options: Given<EncodeLinesOptions>): Rules {
  const { replacer, typedArrays, bigint, nonFinite, circular, default: ask } = options
  const rules: Rules = {
    ...readReplacer(replacer),
    typedArrays: choose('options.typedArrays', typedArrays, TYPED_ARRAYS, NO_RULES.typedArrays),
    bigint: choose('options.bigint', bigint, BIGINTS, NO_RULES.bigint),
    isFinite: choose('options.nonFinite', nonFinite, NON_FINITE, NO_RULES.isFinite),
    circular: readCircular(circular),
    ask: readAsk(ask),
    target: NO_RULES.target,
  }
  return isEngines(rules) ? NO_RULES : rules
}

function readCircular(circular: unknown): string | undefined {
  if (circular === undefined || circular === 'throw') return undefined
  if (typeof circular !== 'object' || circular === null) {
    throw invalidType('options.circular', "'throw' or of type object", circular)
  }
  checkKeys(circular, CIRCULAR_KEYS, 'options.circular')
  const { text } = circular as { readonly text?: unknown }
  if (typeof text !== 'string') throw invalidType('options.circular.text', 'of type string', text)
  return text
}

const CIRCULAR_KEYS = tableOf({ text: true })

function readAsk(ask: unknown): Rules['ask'] {
  if (ask === undefined) return undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  if (typeof ask === 'function') return ask as NonNullable<Rules['ask']>
  throw invalidType('options.default', 'of type function', ask)
}

/** As JSON.stringify reads it: what is neither function nor array is as if it were not there. */
function readReplacer(replacer: unknown): Pick<Rules, 'replace' | 'keys'> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  if (typeof replacer === 'function') return { replace: replacer as Replace, keys: undefined }
  if (!isArray(replacer)) return { replace: undefined, keys: undefined }
  const keys: string[] = []
  const seen = newSet<string>()
  const add = (key: string): void => {
    if (!seen.has(key)) keys[keys.length] = key
    seen.add(key)
  }
  const { length } = replacer
  for (let index = 0; index < length; index += 1) {
    const item = replacer[index]
    if (typeof item === 'string') add(item)
    else if (typeof item === 'number' || isNumberObject(item) || isStringObject(item)) add(toText(item))
  }
  return { replace: undefined, keys }
}

const MOST_SPACE = 10
/** V8 breaks lines for a space between 0 and 1, and does not indent them. */
const HAS_EMPTY_GAP = stringifyJson([0], undefined, 0.5) !== '[0]'

/** As JSON.stringify reads it. */
export function readSpace(given: unknown): string | undefined {
  let space = given
  if (isNumberObject(space)) space = toNumber(space)
  else if (isStringObject(space)) space = toText(space)
  if (typeof space === 'string') return space === '' ? undefined : sliceString(space, 0, MOST_SPACE)
  if (typeof space !== 'number') return undefined
  const count = leastOf(MOST_SPACE, truncate(space))
  if (1 <= count) return repeatString(' ', count)
  return 0 < space && HAS_EMPTY_GAP ? '' : undefined
}

export function readOnBadRow(onBadRow: unknown): OnBadRow | undefined {
  if (onBadRow === undefined || onBadRow === 'throw') return undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  if (typeof onBadRow === 'function') return onBadRow as OnBadRow
  throw invalidType('options.onBadRow', "'throw' or of type function", onBadRow)
}

const FLOATS = tableOf({ float64: 0, float32: Layout.Singles })

export function readMsgpackLayout({ floats }: Given<MsgpackOptions>): number {
  return Layout.Msgpack | choose('options.floats', floats, FLOATS, 0)
}
