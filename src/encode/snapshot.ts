/**
 * Snapshots: captured values, kept outside the JS heap, that become JSON, MessagePack or a digest later. The JS thread
 * captures; tasks print.
 */

import type { Bytes } from '../runtime/bytes.ts'
import { forBoth } from '../capture/rules.ts'
import type { SnapshotTape } from '../capture/snapshot-tape.ts'
import { OffloopError } from '../runtime/errors.ts'
import { readMaxBytes, readMsgpackOptions, readSpace, type EncodeConfig, type PrintOptions } from './config.ts'
import { SIGNAL_KEYS, SNAPSHOT_KEYS, SNAPSHOT_MSGPACK_KEYS, SNAPSHOT_SIZE_KEYS } from './option-keys.ts'
import type { EncodeOptions, MsgpackOptions } from './options.ts'
import { toNumber, toUtf8 } from '../runtime/intrinsics.ts'
import { Layout } from '../runtime/native.ts'
import { copyOptions, readBoolean, readSignal, withoutPrototype, type Cancellable } from '../runtime/options.ts'
import type { EncoderCore } from './encoder.ts'

export interface Snapshot extends Disposable {
  /** Bytes held until the snapshot is disposed of. */
  readonly byteLength: number
  json(options?: Pick<EncodeOptions, 'space' | 'newline' | 'sortKeys' | 'signal' | 'maxBytes'>): Promise<Bytes>
  /** Returns the exact length of `json()` in bytes, counted by a task; no text is made. */
  jsonSize(options?: Pick<EncodeOptions, 'space' | 'newline' | 'signal'>): Promise<number>
  msgpack(options?: Omit<MsgpackOptions, 'transfer'>): Promise<Bytes>
  /** Returns the lower-case hex SHA-256 of `json({ sortKeys: true })`. */
  digest(options?: Cancellable): Promise<string>
}

type JsonOptions = NonNullable<Parameters<Snapshot['json']>[0]>
type SizeOptions = NonNullable<Parameters<Snapshot['jsonSize']>[0]>

/** Takes a snapshot. `json()` uses `config` where a call gives no other options. */
export function takeSnapshot(core: EncoderCore, value: unknown, config: EncodeConfig): Snapshot {
  return new SnapshotHandle(core, core.keep(value, { ...config, rules: forBoth(config.rules) }), config)
}

class SnapshotHandle implements Snapshot {
  readonly byteLength: number
  readonly #core: EncoderCore
  readonly #config: EncodeConfig
  /** The captured value; undefined once the snapshot is disposed of. */
  #kept: SnapshotTape | undefined
  /** Number of tasks that read it. */
  #readers = 0

  constructor(core: EncoderCore, kept: SnapshotTape, config: EncodeConfig) {
    this.#core = core
    this.#config = config
    this.#kept = kept
    this.byteLength = kept.parts.size
  }

  async json(options: JsonOptions = {}): Promise<Bytes> {
    return await this.#json(copyOptions(options, SNAPSHOT_KEYS), 0)
  }

  async jsonSize(options: SizeOptions = {}): Promise<number> {
    return toNumber(toUtf8(await this.#json(copyOptions(options, SNAPSHOT_SIZE_KEYS), Layout.Size)))
  }

  async msgpack(options: Omit<MsgpackOptions, 'transfer'> = {}): Promise<Bytes> {
    const own = copyOptions(options, SNAPSHOT_MSGPACK_KEYS)
    const signal = readSignal(own.signal)
    const printOptions = readMsgpackOptions(own)
    const kept = this.#open()
    if (kept.msgpackError !== undefined) throw kept.msgpackError
    return await this.#print(kept, printOptions, signal)
  }

  async digest(options: Cancellable = {}): Promise<string> {
    const { signal } = copyOptions(options, SIGNAL_KEYS)
    return toUtf8(await this.#json(withoutPrototype({ signal, sortKeys: true }), Layout.Digest))
  }

  [Symbol.dispose](): void {
    const kept = this.#kept
    this.#kept = undefined
    if (this.#readers === 0) kept?.release()
  }

  /** Makes JSON, or what the bits of `form` say instead. `options` inherit nothing. */
  async #json(options: JsonOptions, form: number): Promise<Bytes> {
    const { layout, newline, gap } = this.#config
    const signal = readSignal(options.signal)
    const isSorted = readBoolean('options.sortKeys', options.sortKeys, (layout & Layout.SortedKeys) !== 0)
    const hasNewline = readBoolean('options.newline', options.newline, newline)
    const { maxBytes } = options
    const printOptions = {
      maxBytes: maxBytes === undefined && form === 0 ? this.#config.maxBytes : readMaxBytes(maxBytes),
      layout: form | (isSorted ? Layout.SortedKeys : 0) | (hasNewline ? Layout.Newline : 0),
      gap: options.space === undefined ? gap : readSpace(options.space),
    }
    const kept = this.#open()
    if (kept.jsonError !== undefined) throw kept.jsonError
    return await this.#print(kept, printOptions, signal)
  }

  #open(): SnapshotTape {
    if (this.#kept === undefined) throw new OffloopError('ERR_OFFLOOP_CLOSED', 'the snapshot is disposed')
    return this.#kept
  }

  async #print(kept: SnapshotTape, printOptions: PrintOptions, signal: AbortSignal | undefined): Promise<Bytes> {
    this.#readers += 1
    try {
      return await this.#core.printSnapshot(kept, printOptions, signal)
    } finally {
      this.#readers -= 1
      if (this.#readers === 0 && this.#kept === undefined) kept.release()
    }
  }
}
