/**
 * Options of encoding, and the configuration they come to. Read once a call, on the JS thread; `encode.ts`, logs and
 * batchers call it.
 */

import { arePlain, MSGPACK_RULES, NO_RULES, type Replace, type CaptureRules } from '../capture/rules.ts'
import { invalidType } from '../runtime/errors.ts'
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
} from '../runtime/intrinsics.ts'
import { Layout } from '../runtime/native.ts'
import {
  choose,
  copyOptions,
  readBoolean,
  readInteger,
  readLimit,
  tableOf,
  type Bounded,
  type BytesInput,
  type Cancellable,
} from '../runtime/options.ts'

export interface EncodeOptions extends Cancellable, BytesInput, Bounded {
  /** Replacer, as for JSON.stringify. A function runs on the JS thread, for every key. */
  readonly replacer?:
    | ((this: unknown, key: string, value: unknown) => unknown)
    | readonly (string | number)[]
    | null
    | undefined
  /** White space, as for JSON.stringify. */
  readonly space?: string | number | undefined
  /** Ends the result with one "\n". @default false */
  readonly newline?: boolean | undefined
  /**
   * Sorts object keys by UTF-16 code unit (RFC 8785), at every depth. The text of a RawJson is not changed. @default
   * false
   */
  readonly sortKeys?: boolean | undefined
  /**
   * Form of typed arrays and Buffers: `'object'` as JSON.stringify writes them; `'array'` as an array of numbers
   * (float32 in its own shortest form, BigInt arrays as `bigint` says); `'base64'` as a base64 string of their bytes.
   * With the last two, Buffer.prototype.toJSON is not called. @default 'object'
   */
  readonly typedArrays?: 'object' | 'array' | 'base64' | undefined
  /** @default 'throw' (as JSON.stringify) */
  readonly bigint?: 'throw' | 'number' | 'string' | undefined
  /** NaN and infinities. @default 'null' (as JSON.stringify) */
  readonly nonFinite?: 'null' | 'throw' | undefined
  /**
   * A cycle throws as in JSON.stringify, or this text is written in place of the repeated ancestor. @default 'throw'
   */
  readonly circular?: 'throw' | { readonly text: string } | undefined
  /**
   * Called, after toJSON and replacer, for functions, symbols, bigints, and (by brand, whatever their keys) Map, Set,
   * WeakMap, WeakSet, WeakRef, RegExp, Error, Promise, ArrayBuffer, SharedArrayBuffer and DataView. Its return value is
   * encoded instead. Values inside the return value may be passed to it in turn, the return value itself is not.
   * `undefined` means: encode as if there were no `default`.
   */
  readonly default?: ((value: unknown) => unknown) | undefined
  /**
   * Further kinds that `default` is called for. For a Buffer, Buffer.prototype.toJSON is then called last, and only if
   * neither replacer nor `default` gave another value. @default none
   */
  readonly defaultFor?: readonly ('undefined' | 'typedArray')[] | undefined
  /** Levels of nesting. Deeper values, and endless ones that user code makes, reject with ERR_OFFLOOP_TOO_LARGE. @default 100 000 */
  readonly maxDepth?: number | undefined
}

export interface EncodeLinesOptions extends Omit<EncodeOptions, 'space' | 'newline'> {
  /**
   * A row that cannot be encoded rejects the whole call, or is left out and reported (in order of index, before the
   * promise settles). @default 'throw'
   */
  readonly onBadRow?: 'throw' | ((error: unknown, index: number) => void) | undefined
}

export interface MsgpackOptions extends Cancellable, BytesInput, Bounded {
  /** Levels of nesting, as in EncodeOptions. @default 100 000 */
  readonly maxDepth?: number | undefined
  /** Numbers that are not integers. Integers take the smallest form, as in msgspec and msgpack-c. @default 'float64' */
  readonly floats?: 'float64' | 'float32' | undefined
}

/** How a tape is printed. */
export interface PrintOptions {
  /** Bits of `Layout`. */
  readonly layout: number
  /** White space of one level; undefined for none at all. */
  readonly gap: string | undefined
  /** Most bytes of the result. */
  readonly maxBytes: number
  /** Levels of nesting that MessagePack may have, if fewer than the capture allowed. */
  readonly maxDepth?: number | undefined
}

/** Resolved encoding options: how to capture a value, and how to print it. */
export interface EncodeConfig extends PrintOptions {
  readonly rules: CaptureRules
  /** Whether the result ends with one "\n". */
  readonly newline: boolean
  /** Whether typed arrays and Buffers of 64 KiB or more are taken. */
  readonly transfer: boolean
}

export const DEFAULT_CONFIG: EncodeConfig = {
  rules: NO_RULES,
  layout: 0,
  gap: undefined,
  newline: false,
  transfer: false,
  maxBytes: Infinity,
}

export type OnBadRow = (error: unknown, index: number) => void

const CAPTURE = {
  replacer: true,
  typedArrays: true,
  bigint: true,
  nonFinite: true,
  circular: true,
  default: true,
  defaultFor: true,
  maxDepth: true,
}
const RULE_KEYS = { ...CAPTURE, sortKeys: true }
const BOUNDED_KEYS = { ...RULE_KEYS, maxBytes: true }
const ENCODER = { ...BOUNDED_KEYS, space: true, newline: true }
export const ENCODER_KEYS: Readonly<Record<string, unknown>> = tableOf(ENCODER)
export const SYNC_KEYS: Readonly<Record<string, unknown>> = tableOf({ ...ENCODER, transfer: true })
export const ENCODE_KEYS: Readonly<Record<string, unknown>> = tableOf({ ...ENCODER, transfer: true, signal: true })
export const ROW_KEYS: Readonly<Record<string, unknown>> = tableOf(RULE_KEYS)
export const LINES_KEYS: Readonly<Record<string, unknown>> = tableOf({
  ...BOUNDED_KEYS,
  onBadRow: true,
  transfer: true,
  signal: true,
})
export const SIGNAL_KEYS: Readonly<Record<string, unknown>> = tableOf({ signal: true })
/** Options of calls that may take bytes. */
export const BYTES_KEYS: Readonly<Record<string, unknown>> = tableOf({ transfer: true })
export const CALL_KEYS: Readonly<Record<string, unknown>> = tableOf({ transfer: true, signal: true })
export const ENCODER_LINES_KEYS: Readonly<Record<string, unknown>> = tableOf({
  onBadRow: true,
  transfer: true,
  signal: true,
})
export const CAPTURE_KEYS: Readonly<Record<string, unknown>> = tableOf({ ...CAPTURE, maxBytes: true, transfer: true })
const SNAPSHOT_SIZE = { space: true, newline: true, signal: true }
export const SNAPSHOT_SIZE_KEYS: Readonly<Record<string, unknown>> = tableOf(SNAPSHOT_SIZE)
export const SNAPSHOT_KEYS: Readonly<Record<string, unknown>> = tableOf({
  ...SNAPSHOT_SIZE,
  sortKeys: true,
  maxBytes: true,
})
const MSGPACK = { floats: true, maxBytes: true, maxDepth: true, signal: true }
export const SNAPSHOT_MSGPACK_KEYS: Readonly<Record<string, unknown>> = tableOf(MSGPACK)
export const MSGPACK_KEYS: Readonly<Record<string, unknown>> = tableOf({ ...MSGPACK, transfer: true })

type Unchecked<T> = { readonly [K in keyof T]?: unknown }

export function readEncodeConfig(options: Unchecked<EncodeOptions>): EncodeConfig {
  const { space, newline } = options
  const hasNewline = readBoolean('options.newline', newline, false)
  return { ...readRowConfig(options), gap: readSpace(space), newline: hasNewline }
}

/** Reads the options that rows have. */
export function readRowConfig(options: Unchecked<EncodeLinesOptions>): EncodeConfig {
  const sortKeys = readBoolean('options.sortKeys', options.sortKeys, false)
  const transfer = readTransfer(options.transfer)
  const layout = sortKeys ? Layout.SortedKeys : 0
  return { ...DEFAULT_CONFIG, rules: readRules(options), layout, transfer, maxBytes: readMaxBytes(options.maxBytes) }
}

export function readMaxBytes(maxBytes: unknown): number {
  return readLimit('options.maxBytes', maxBytes, 0)
}

export function readTransfer(transfer: unknown): boolean {
  return readBoolean('options.transfer', transfer, false)
}

const TYPED_ARRAYS = tableOf({ object: 'object', array: 'array', base64: 'base64' } as const)
const BIGINTS = tableOf({ throw: 'throw', number: 'number', string: 'string' } as const)
const NON_FINITE = tableOf({ null: false, throw: true })

/** Returns `NO_RULES` itself for the rules of plain JSON.stringify. */
export function readRules(options: Unchecked<EncodeLinesOptions>): CaptureRules {
  const { replacer, typedArrays, bigint, nonFinite, circular, default: ask, defaultFor, maxDepth } = options
  const rules: CaptureRules = {
    ...readReplacer(replacer),
    typedArrays: choose('options.typedArrays', typedArrays, TYPED_ARRAYS, NO_RULES.typedArrays),
    bigint: choose('options.bigint', bigint, BIGINTS, NO_RULES.bigint),
    isFinite: choose('options.nonFinite', nonFinite, NON_FINITE, NO_RULES.isFinite),
    circular: readCircular(circular),
    ...readAsk(ask, defaultFor),
    target: NO_RULES.target,
    maxDepth: readMaxDepth(maxDepth) ?? NO_RULES.maxDepth,
  }
  return arePlain(rules) ? NO_RULES : rules
}

/** Bound of `maxDepth`: a deeper path does not fit a heap of 512 MB. */
const DEEPEST = 1_000_000

function readMaxDepth(maxDepth: unknown): number | undefined {
  return readInteger('options.maxDepth', maxDepth, 0, DEEPEST)
}

function readCircular(circular: unknown): string | undefined {
  if (circular === undefined || circular === 'throw') return undefined
  if (typeof circular !== 'object' || circular === null) {
    throw invalidType('options.circular', "'throw' or of type object", circular)
  }
  const { text }: { readonly text?: unknown } = copyOptions(circular, CIRCULAR_KEYS, 'options.circular')
  if (typeof text !== 'string') throw invalidType('options.circular.text', 'of type string', text)
  return text
}

const CIRCULAR_KEYS = tableOf({ text: true })

type AskRules = Pick<CaptureRules, 'ask' | 'asksUndefined' | 'asksTypedArrays'>

/** Kinds of `defaultFor`. */
const ASKED_KINDS = tableOf({ undefined: 'undefined', typedArray: 'typedArray' } as const)

function readAsk(ask: unknown, defaultFor: unknown): AskRules {
  const kinds = readAskedKinds(defaultFor)
  if (ask === undefined) return { ask: undefined, asksUndefined: false, asksTypedArrays: false }
  if (typeof ask !== 'function') throw invalidType('options.default', 'of type function', ask)
  return {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a function of the user is called with what the type says
    ask: ask as NonNullable<CaptureRules['ask']>,
    asksUndefined: kinds.has('undefined'),
    asksTypedArrays: kinds.has('typedArray'),
  }
}

function readAskedKinds(defaultFor: unknown): ReadonlySet<string> {
  const kinds = newSet<string>()
  if (defaultFor === undefined) return kinds
  if (!isArray(defaultFor)) throw invalidType('options.defaultFor', 'an Array', defaultFor)
  const { length } = defaultFor
  for (let index = 0; index < length; index += 1) {
    // `choose` takes undefined for an option that is not given.
    kinds.add(choose(`options.defaultFor[${index}]`, defaultFor[index] ?? null, ASKED_KINDS, ''))
  }
  return kinds
}

/** Reads a replacer as JSON.stringify does: it ignores values that are neither function nor array. */
function readReplacer(replacer: unknown): Pick<CaptureRules, 'replace' | 'keys'> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a function of the user is called with what the type says
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
/** Whether V8 breaks lines, without indentation, for a space between 0 and 1. */
const HAS_EMPTY_GAP = stringifyJson([0], undefined, 0.5) !== '[0]'

/** Reads `space` as JSON.stringify does. */
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
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a function of the user is called with what the type says
  if (typeof onBadRow === 'function') return onBadRow as OnBadRow
  throw invalidType('options.onBadRow', "'throw' or of type function", onBadRow)
}

const FLOATS = tableOf({ float64: 0, float32: Layout.Singles })

/** Configuration of MessagePack without options. */
export const MSGPACK_CONFIG: EncodeConfig = { ...DEFAULT_CONFIG, rules: MSGPACK_RULES, layout: Layout.Msgpack }

export function readMsgpackOptions({ floats, maxBytes, maxDepth }: Unchecked<MsgpackOptions>): PrintOptions {
  const layout = Layout.Msgpack | choose('options.floats', floats, FLOATS, 0)
  return { layout, gap: undefined, maxBytes: readMaxBytes(maxBytes), maxDepth: readMaxDepth(maxDepth) }
}

/** Here the capture keeps to `maxDepth`, and can name the place of a value that is too deep. The printer need not. */
export function readMsgpackConfig(options: Unchecked<MsgpackOptions>): EncodeConfig {
  const { layout, maxBytes, maxDepth = MSGPACK_RULES.maxDepth } = readMsgpackOptions(options)
  const transfer = readTransfer(options.transfer)
  return { ...DEFAULT_CONFIG, layout, rules: { ...MSGPACK_RULES, maxDepth }, transfer, maxBytes }
}
