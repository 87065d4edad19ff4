/**
 * Options of encoding, as callers give them. Encoders, logs, batchers and saves take them on the JS
 * thread; `config.ts` reads them.
 */

import type { Bounded, BytesInput, Cancellable } from '../runtime/options.ts'

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

/** Options that a caller gave, before they are checked. */
export type Unchecked<T> = { readonly [K in keyof T]?: unknown }
