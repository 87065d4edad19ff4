/**
 * Options of `parse`, `split` and `parseEvents`, on the JS thread: reads them, and compiles their pointers. `parse.ts` and
 * `events.ts` call it.
 */

import { constants } from 'node:buffer'
import { invalidType, invalidValue } from '../runtime/errors.ts'
import { readLiftHints, type ExpertsHints, type RoutedExperts } from '../experts/experts.ts'
import { keysOf } from '../runtime/intrinsics.ts'
import { LiftPointers, type NativeHints } from '../runtime/native.ts'
import {
  choose,
  copyOptions,
  readBoolean,
  readLimit,
  readSignal,
  tableOf,
  withoutPrototype,
  type Bounded,
  type BytesInput,
  type Cancellable,
} from '../runtime/options.ts'
import type { Bytes } from '../runtime/bytes.ts'

/** Types of the elements of typed arrays. */
export type ElementType = 'int8' | 'uint8' | 'int16' | 'uint16' | 'int32' | 'uint32' | 'float32' | 'float64'
export type NumberArray =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
/** A list of lists of numbers of any lengths: all numbers in a row, and how many each list has. */
export interface Ragged {
  readonly values: NumberArray
  readonly counts: Int32Array
}
/** Nested lists of equal lengths: the numbers in C order, and the lengths from outside in. */
export interface Tensor {
  readonly data: NumberArray
  readonly shape: readonly number[]
}

/** Names what a value becomes, off the JS thread, instead of JS objects. */
export type Lift =
  | 'base64' // string → the decoded bytes (forgiving)
  | ElementType // array of numbers → typed array
  | 'raw' // any value but null → the bytes of its JSON text
  | 'drop' // any value → null
  | 'experts' // any routed-experts payload → RoutedExperts
  | { readonly experts: ExpertsHints }
  | { readonly base64: ElementType } // base64 of little-endian numbers → typed array
  | { readonly ragged: ElementType } // array of arrays of numbers → Ragged
  | { readonly tensor: ElementType } // nested arrays of equal lengths → Tensor
/** A value that was lifted out of a body. */
export type Lifted = Bytes | NumberArray | RoutedExperts | Ragged | Tensor | null

export interface ParseOptions extends Cancellable, BytesInput, Bounded {
  /**
   * JSON Pointers (RFC 6901). A segment `*` matches every key or index; a leading `**` matches any depth, zero included (segments `**`, `x` match `x` at the top too).
   * If two pointers match one value, the first listed wins. Nothing is searched inside a lifted value.
   */
  readonly lift?: Readonly<Record<string, Lift>> | undefined
  /**
   * A value that is not of the requested kind (another JSON type, a number that does not fit its element type, text that is not base64, lists
   * that are not nested as asked, a malformed payload): `'throw'` rejects with ERR_OFFLOOP_LIFT (a malformed payload: ERR_OFFLOOP_EXPERTS);
   * `'keep'` leaves it as parsed, whole, with nothing inside it lifted, and checks each value before it is lifted. null and absent values stay so.
   * Integers must fit exactly; floats are rounded as a typed array rounds them. @default 'throw'
   */
  readonly onMismatch?: 'throw' | 'keep' | undefined
  /** Strings whose JSON text is longer than this many bytes become null without ever being JS strings. Applies to values, not keys. @default Infinity */
  readonly dropStringsOver?: number | undefined
}

export interface SplitOptions extends ParseOptions {
  readonly lift: Readonly<Record<string, Lift>>
  /** The text in place of a lifted value: null, or the string that this returns for the index of the value in `lifted`. @default 'null' */
  readonly replace?: 'null' | ((index: number, pointer: string) => string) | undefined
}

const KEYS = { lift: true, onMismatch: true, dropStringsOver: true, signal: true }
/** Keys of the options that the body of a response has for `parse` and for `split`. */
export const BODY_KEYS: Readonly<Record<string, unknown>> = tableOf(KEYS)
export const BODY_SPLIT_KEYS: Readonly<Record<string, unknown>> = tableOf({ ...KEYS, replace: true })
/** Keys of the options of `parse`, and of `split`. */
export const PARSE_KEYS: Readonly<Record<string, unknown>> = tableOf({ ...KEYS, maxBytes: true, transfer: true })
export const SPLIT_KEYS: Readonly<Record<string, unknown>> = tableOf({ ...PARSE_KEYS, replace: true })

/** Keys of the options of `parseEvents`. */
export const EVENT_KEYS: Readonly<Record<string, unknown>> = tableOf({
  ...KEYS,
  maxBytes: true,
  done: true,
  maxEventBytes: true,
})

/** Constructors of typed arrays by the type of their elements. */
export const ARRAYS: Readonly<Record<ElementType, NumberArrayConstructor>> = withoutPrototype({
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  float32: Float32Array,
  float64: Float64Array,
})
interface NumberArrayConstructor {
  readonly BYTES_PER_ELEMENT: number
  new (buffer: ArrayBuffer, offset: number, length: number): NumberArray
  from(numbers: readonly number[]): NumberArray
}
const NAMES = tableOf<unknown>({ base64: true, ...ARRAYS, raw: true, drop: true, experts: true })
const FORMS: Readonly<Record<string, unknown>> = tableOf({ experts: true, base64: true, ragged: true, tensor: true })
const MISMATCHES = tableOf({ throw: false, keep: true })

/** The kind of values that one pointer lifts. `LiftKind::named` in `crates/body/src/lift.rs` reads `form` and `element`. */
export interface LiftKind {
  readonly form: 'numbers' | 'base64' | 'ragged' | 'tensor' | 'raw' | 'drop' | 'experts'
  /** Type of the elements of numbers. */
  readonly element: ElementType | undefined
  /** Hints for routed experts. */
  readonly hints: NativeHints | null
}

/** Resolved options. `kinds` belong to the pointer of the same index. */
export interface ParseConfig {
  readonly pointers: string[]
  readonly kinds: LiftKind[]
  readonly keepsMismatches: boolean
  /** Most bytes of a string's JSON. */
  readonly longestString: number
  readonly maxBytes: number
  readonly transfer: boolean
  readonly signal: AbortSignal | undefined
}

export const NO_CONFIG: ParseConfig = {
  pointers: [],
  kinds: [],
  keepsMismatches: false,
  longestString: Infinity,
  maxBytes: Infinity,
  transfer: false,
  signal: undefined,
}

export function readConfig(options: ParseOptions): ParseConfig {
  const { lift, onMismatch, dropStringsOver, maxBytes, transfer, signal } = options
  const config: ParseConfig = {
    pointers: [],
    kinds: [],
    keepsMismatches: choose('options.onMismatch', onMismatch, MISMATCHES, false),
    longestString: readLimit('options.dropStringsOver', dropStringsOver, 0),
    maxBytes: readLimit('options.maxBytes', maxBytes, 0),
    transfer: readBoolean('options.transfer', transfer, false),
    signal: readSignal(signal),
  }
  if (lift === undefined) return config
  if (typeof lift !== 'object' || lift === null) throw invalidType('options.lift', 'of type object', lift)
  for (const pointer of keysOf(lift)) {
    config.kinds.push(readKind(`options.lift['${pointer}']`, lift[pointer]))
    config.pointers.push(pointer)
  }
  return config
}

function readKind(name: string, kind: unknown): LiftKind {
  if (typeof kind === 'object' && kind !== null) return readForm(name, kind)
  if (typeof kind !== 'string' || !(kind in NAMES)) {
    throw invalidValue(name, `must be an object or one of: ${listOf(NAMES)}`, kind)
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the tables have these names alone
  if (kind in ARRAYS) return { form: 'numbers', element: kind as ElementType, hints: null }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the tables have these names alone
  return { form: kind as LiftKind['form'], element: undefined, hints: null }
}

/** Reads an object with one key, which names the form. */
function readForm(name: string, kind: object): LiftKind {
  const own = copyOptions(kind, FORMS, name)
  const [form, ...others] = keysOf(own)
  if (form === undefined || others.length !== 0) throw invalidValue(name, `must have one of: ${listOf(FORMS)}`, kind)
  if (form === 'experts') return { form, element: undefined, hints: readLiftHints(name, own) }
  const element: unknown = Reflect.get(own, form)
  if (typeof element !== 'string' || !(element in ARRAYS)) {
    throw invalidValue(`${name}.${form}`, `must be one of: ${listOf(ARRAYS)}`, element)
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the tables have these names alone
  return { form, element, hints: null } as LiftKind
}

function listOf(table: object): string {
  return keysOf(table)
    .map((key) => `'${key}'`)
    .join(', ')
}

/** Use of the rest of a body. */
export interface RestUse {
  /** Whether it becomes a string, which cannot be of any length. */
  readonly isText: boolean
}

/** Compiles the pointers. Throws for one that is not valid. */
export function compile(
  { pointers, kinds, keepsMismatches, longestString }: ParseConfig,
  { isText }: RestUse,
): LiftPointers {
  const names = kinds.map(({ form, element }) => {
    // `parse` returns null for a value that is dropped, like for one that is null. `split` lists it.
    if (form === 'drop') return isText ? 'drop' : 'drop:listed'
    if (element === undefined) return form
    return form === 'numbers' ? element : `${form}:${element}`
  })
  const lifts = new LiftPointers(
    pointers,
    names,
    kinds.map(({ hints }) => hints),
    {
      keepsMismatches,
      longestString,
      longestRest: isText ? constants.MAX_STRING_LENGTH : Infinity,
    },
  )
  const { wrongPointer } = lifts
  if (wrongPointer === null) return lifts
  const { index, reason } = wrongPointer
  const pointer = pointers[index] ?? ''
  throw invalidValue(`options.lift['${pointer}']`, `is no JSON Pointer: it ${reason}`, pointer)
}
