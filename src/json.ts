/** JSON out: the JS thread captures the value, a task prints it. */

import type { Bytes } from './bytes.ts'
import { MSGPACK_RULES } from './capture/rules.ts'
import { invalidValue } from './errors.ts'
import {
  CAPTURE_KEYS,
  DEFAULT_FORM,
  ENCODE_KEYS,
  ENCODER_LINES_KEYS,
  LINES_KEYS,
  MSGPACK_KEYS,
  readForm,
  readMsgpackLayout,
  readOnBadRow,
  readRowForm,
  readRules,
  SIGNAL_KEYS,
  SYNC_KEYS,
  type EncodeLinesOptions,
  type EncodeOptions,
  type Form,
  type MsgpackOptions,
} from './forms.ts'
import { checkKeys, readSignal, type Cancellable } from './options.ts'
import { Press, shared } from './press.ts'
import { takeSnapshot, type Snapshot } from './snapshot.ts'

/** An encoder that learns the shapes of one call site. `encode` and `encodeLines` share one; every log has its own. */
export interface Encoder {
  encode(value: unknown, options?: Cancellable): Promise<Bytes>
  encodeSync(value: unknown): Bytes
  /** Rejects with ERR_INVALID_ARG_VALUE if the encoder was made with `space` or `newline`. */
  encodeLines(
    rows: Iterable<unknown> | AsyncIterable<unknown>,
    options?: Pick<EncodeLinesOptions, 'onBadRow' | 'signal'>,
  ): Promise<Bytes>
  /** `json()` of the snapshot starts from this encoder's `space`, `newline`, `sortKeys`. */
  capture(value: unknown): Snapshot
}

/**
 * The bytes of `Buffer.from(JSON.stringify(value, replacer, space))`, exactly, made off the JS thread.
 * Rejects with the error JSON.stringify would throw, and with a TypeError where it would return undefined.
 * Results above V8's string limit are fine. Nesting depth is bounded by memory only.
 */
export async function encode(value: unknown, options?: EncodeOptions): Promise<Bytes> {
  if (options === undefined) return shared.encode(value, DEFAULT_FORM, undefined)
  checkKeys(options, ENCODE_KEYS)
  const signal = readSignal(options.signal)
  return shared.encode(value, readForm(options), signal)
}

/** The same bytes at once, on this thread: for loggers, exit handlers and small values. Throws what `encode` would reject with. */
export function encodeSync(value: unknown, options?: Omit<EncodeOptions, 'signal'>): Bytes {
  if (options === undefined) return shared.encodeSync(value, DEFAULT_FORM)
  checkKeys(options, SYNC_KEYS)
  return shared.encodeSync(value, readForm(options))
}

/**
 * One JSON document and "\n" per row; no row holds a raw line break (inside a RawJson each "\n" and "\r" becomes a space).
 * A row that JSON.stringify would make undefined is a bad row. No rows: an empty Buffer.
 */
export async function encodeLines(
  rows: Iterable<unknown> | AsyncIterable<unknown>,
  options?: EncodeLinesOptions,
): Promise<Bytes> {
  if (options === undefined) return await shared.encodeLines(rows, DEFAULT_FORM, undefined, undefined)
  checkKeys(options, LINES_KEYS)
  const signal = readSignal(options.signal)
  const onBad = readOnBadRow(options.onBadRow)
  return await shared.encodeLines(rows, readRowForm(options), onBad, signal)
}

export function createEncoder(options?: Omit<EncodeOptions, 'signal'>): Encoder {
  if (options === undefined) return new OwnEncoder(DEFAULT_FORM)
  checkKeys(options, SYNC_KEYS)
  return new OwnEncoder(readForm(options))
}

class OwnEncoder implements Encoder {
  readonly #form: Form
  readonly #press = new Press()

  constructor(form: Form) {
    this.#form = form
  }

  async encode(value: unknown, options?: Cancellable): Promise<Bytes> {
    if (options === undefined) return this.#press.encode(value, this.#form, undefined)
    checkKeys(options, SIGNAL_KEYS)
    return this.#press.encode(value, this.#form, readSignal(options.signal))
  }

  encodeSync(value: unknown): Bytes {
    return this.#press.encodeSync(value, this.#form)
  }

  async encodeLines(
    rows: Iterable<unknown> | AsyncIterable<unknown>,
    options: Pick<EncodeLinesOptions, 'onBadRow' | 'signal'> = {},
  ): Promise<Bytes> {
    checkKeys(options, ENCODER_LINES_KEYS)
    const { onBadRow, signal: given } = options
    const signal = readSignal(given)
    const onBad = readOnBadRow(onBadRow)
    const { gap, newline } = this.#form
    if (gap !== undefined) throw invalidValue('options.space', 'cannot be that of an encoder of lines', gap)
    if (newline) throw invalidValue('options.newline', 'cannot be that of an encoder of lines', newline)
    return await this.#press.encodeLines(rows, this.#form, onBad, signal)
  }

  capture(value: unknown): Snapshot {
    return takeSnapshot(this.#press, value, this.#form)
  }
}

/**
 * MessagePack: Uint8Array and Buffer as bin; other typed arrays as arrays of numbers (Float32Array and Float64Array elements always floats);
 * Map as map; bigint within 64 bits as int; lone surrogates as U+FFFD; a RawJson as what it says;
 * toJSON, undefined, functions and symbols as JSON.stringify treats them. More than 2³²−1 bytes or elements in one value: ERR_OFFLOOP_TOO_LARGE.
 */
export async function encodeMsgpack(value: unknown, options: MsgpackOptions = {}): Promise<Bytes> {
  checkKeys(options, MSGPACK_KEYS)
  const signal = readSignal(options.signal)
  return shared.encode(value, { ...DEFAULT_FORM, rules: MSGPACK_RULES, layout: readMsgpackLayout(options) }, signal)
}

/**
 * The value as it is now, in compact form outside the JS heap. Taking it is the only work on the JS thread; what it becomes is decided
 * later, and may be more than one thing. It keeps Buffers, typed arrays, Maps and bigints; what JSON refuses of them rejects in `json()`. Throws what user code throws, and for a cycle what JSON.stringify would (unless `circular` says otherwise).
 */
export function capture(
  value: unknown,
  options: Omit<EncodeOptions, 'signal' | 'newline' | 'space' | 'sortKeys'> = {},
): Snapshot {
  checkKeys(options, CAPTURE_KEYS)
  return takeSnapshot(shared, value, { ...DEFAULT_FORM, rules: readRules(options) })
}
