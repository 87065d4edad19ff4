/** JSON out: the public functions. Each reads its options and captures the value on the JS thread; a task prints it. */

import type { Bytes } from '../runtime/bytes.ts'
import { invalidValue } from '../runtime/errors.ts'
import {
  DEFAULT_CONFIG,
  readEncodeConfig,
  readMaxBytes,
  readMsgpackConfig,
  readOnBadRow,
  readRowConfig,
  readTransfer,
  type EncodeConfig,
} from './config.ts'
import {
  BYTES_KEYS,
  CALL_KEYS,
  CAPTURE_KEYS,
  ENCODE_KEYS,
  ENCODER_KEYS,
  ENCODER_LINES_KEYS,
  LINES_KEYS,
  MSGPACK_KEYS,
  SYNC_KEYS,
} from './option-keys.ts'
import type { EncodeLinesOptions, EncodeOptions, MsgpackOptions } from './options.ts'
import { readRules } from './rule-options.ts'
import { copyOptions, readSignal, type BytesInput, type Cancellable } from '../runtime/options.ts'
import { EncoderCore, shared } from './encoder.ts'
import { takeSnapshot, type Snapshot } from './snapshot.ts'
import { warmWhenIdle } from './warm-up.ts'

/** An encoder that learns the shapes of one call site. `encode` and `encodeLines` share one; every log has its own. */
export interface Encoder {
  encode(value: unknown, options?: Cancellable & BytesInput): Promise<Bytes>
  encodeSync(value: unknown): Bytes
  /** Encodes rows. Rejects with ERR_INVALID_ARG_VALUE if the encoder was made with `space` or `newline`. */
  encodeLines(
    rows: Iterable<unknown> | AsyncIterable<unknown>,
    options?: Pick<EncodeLinesOptions, 'onBadRow' | 'signal' | 'transfer'>,
  ): Promise<Bytes>
  /**
   * Captures a value. `json()` of the snapshot uses this encoder's `space`, `newline` and `sortKeys` unless it is given
   * others.
   */
  capture(value: unknown, options?: BytesInput): Snapshot
}

/**
 * Returns the bytes of `Buffer.from(JSON.stringify(value, replacer, space))`, exactly, made off the JS thread.
 * Rejects with the error JSON.stringify would throw, and with a TypeError where it would return undefined. Results
 * above V8's string limit work, and so does nesting far deeper than the engine's stack allows, up to `maxDepth`.
 */
export async function encode(value: unknown, options?: EncodeOptions): Promise<Bytes> {
  if (options === undefined) return shared.encode(value, DEFAULT_CONFIG, undefined)
  const own = copyOptions(options, ENCODE_KEYS)
  const signal = readSignal(own.signal)
  return shared.encode(value, readEncodeConfig(own), signal)
}

/**
 * Returns the bytes of `encode` at once, made on this thread: for loggers, exit handlers and small values. Throws what
 * `encode` would reject with.
 */
export function encodeSync(value: unknown, options?: Omit<EncodeOptions, 'signal'>): Bytes {
  if (options === undefined) return shared.encodeSync(value, DEFAULT_CONFIG)
  return shared.encodeSync(value, readEncodeConfig(copyOptions(options, SYNC_KEYS)))
}

/**
 * Writes one JSON document and "\n" per row. No row contains a raw line break: inside a RawJson each "\n" and "\r"
 * becomes a space. A row for which JSON.stringify returns undefined is a bad row. No rows give an empty Buffer.
 */
export async function encodeLines(
  rows: Iterable<unknown> | AsyncIterable<unknown>,
  options?: EncodeLinesOptions,
): Promise<Bytes> {
  if (options === undefined) return await shared.encodeLines(rows, DEFAULT_CONFIG, undefined, undefined)
  const own = copyOptions(options, LINES_KEYS)
  const signal = readSignal(own.signal)
  const onBad = readOnBadRow(own.onBadRow)
  return await shared.encodeLines(rows, readRowConfig(own), onBad, signal)
}

export function createEncoder(options?: Omit<EncodeOptions, 'signal' | 'transfer'>): Encoder {
  if (options === undefined) return new OwnEncoder(DEFAULT_CONFIG)
  return new OwnEncoder(readEncodeConfig(copyOptions(options, ENCODER_KEYS)))
}

class OwnEncoder implements Encoder {
  readonly #config: EncodeConfig
  readonly #core = new EncoderCore()

  constructor(config: EncodeConfig) {
    this.#config = config
  }

  async encode(value: unknown, options?: Cancellable & BytesInput): Promise<Bytes> {
    if (options === undefined) return this.#core.encode(value, this.#config, undefined)
    const own = copyOptions(options, CALL_KEYS)
    const signal = readSignal(own.signal)
    return this.#core.encode(value, { ...this.#config, transfer: readTransfer(own.transfer) }, signal)
  }

  encodeSync(value: unknown): Bytes {
    return this.#core.encodeSync(value, this.#config)
  }

  async encodeLines(
    rows: Iterable<unknown> | AsyncIterable<unknown>,
    options: Pick<EncodeLinesOptions, 'onBadRow' | 'signal' | 'transfer'> = {},
  ): Promise<Bytes> {
    const { onBadRow, signal: given, transfer: isTaken } = copyOptions(options, ENCODER_LINES_KEYS)
    const signal = readSignal(given)
    const transfer = readTransfer(isTaken)
    const onBad = readOnBadRow(onBadRow)
    const { gap, newline } = this.#config
    if (gap !== undefined) throw invalidValue('options.space', 'cannot be that of an encoder of lines', gap)
    if (newline) throw invalidValue('options.newline', 'cannot be that of an encoder of lines', newline)
    return await this.#core.encodeLines(rows, { ...this.#config, transfer }, onBad, signal)
  }

  capture(value: unknown, options?: BytesInput): Snapshot {
    const own = options === undefined ? {} : copyOptions(options, BYTES_KEYS)
    return takeSnapshot(this.#core, value, { ...this.#config, transfer: readTransfer(own.transfer) })
  }
}

/**
 * Encodes MessagePack. Uint8Array and Buffer become bin; other typed arrays become arrays of numbers (elements of
 * Float32Array and Float64Array are always floats); Map becomes map; a bigint within 64 bits becomes int; lone
 * surrogates become U+FFFD; a RawJson becomes the value of its text; toJSON, undefined, functions and symbols are
 * treated as in JSON.stringify. More than 2³²−1 bytes or elements in one value: ERR_OFFLOOP_TOO_LARGE.
 */
export async function encodeMsgpack(value: unknown, options: MsgpackOptions = {}): Promise<Bytes> {
  const own = copyOptions(options, MSGPACK_KEYS)
  const signal = readSignal(own.signal)
  return shared.encode(value, readMsgpackConfig(own), signal)
}

/**
 * Captures the value as it is now, in compact form outside the JS heap. Capturing is the only work on the JS thread;
 * formats are chosen later, and there may be several. A snapshot keeps Buffers, typed arrays, Maps and bigints; those
 * that JSON refuses make `json()` reject. Throws what user code throws, and for a cycle what JSON.stringify throws
 * (unless `circular` says otherwise).
 */
export function capture(
  value: unknown,
  options: Omit<EncodeOptions, 'signal' | 'newline' | 'space' | 'sortKeys'> = {},
): Snapshot {
  const own = copyOptions(options, CAPTURE_KEYS)
  const [rules, transfer, maxBytes] = [readRules(own), readTransfer(own.transfer), readMaxBytes(own.maxBytes)]
  const config = { ...DEFAULT_CONFIG, rules, transfer, maxBytes }
  return takeSnapshot(shared, value, config)
}

warmWhenIdle(() => {
  const core = new EncoderCore()
  return (value) => core.encode(value, DEFAULT_CONFIG, undefined)
})
