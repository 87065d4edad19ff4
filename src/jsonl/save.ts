/** Saves whole files so that a crash leaves either the old one or the new one. The JS thread captures values, tasks write. */

import { checkBytes, gatherBytes } from '../runtime/bytes.ts'
import { invalidValue } from '../runtime/errors.ts'
import { mostOf } from '../runtime/intrinsics.ts'
import { MSGPACK_CONFIG, readEncodeConfig, readRowConfig, readTransfer, type EncodeConfig } from '../encode/config.ts'
import { ENCODER_KEYS, SAVED_ROW_KEYS } from '../encode/option-keys.ts'
import type { EncodeOptions } from '../encode/options.ts'
import { dropSaved, saveBytes, SavedFile, saveTape, unwrap, type SaveTapeInput } from '../runtime/native.ts'
import {
  choose,
  copyOptions,
  readInteger,
  readSignal,
  tableOf,
  withoutPrototype,
  type BytesInput,
  type Cancellable,
} from '../runtime/options.ts'
import { run } from '../runtime/pool.ts'
import { EncoderCore, shared } from '../encode/encoder.ts'
import { forEachRow, RowTransfer, type ForEachOptions, type RowBuffer } from '../encode/row-buffer.ts'
import { MOST_MODE, readDurability, type Durability } from './durability.ts'
import { readPath } from './path.ts'

export interface SaveOptions extends Cancellable, BytesInput {
  /** 'jsonl' takes an iterable or async iterable of rows, 'bytes' a Uint8Array. @default 'json' */
  readonly format?: 'json' | 'jsonl' | 'msgpack' | 'bytes' | undefined
  /** @default 'full' */
  readonly durability?: Durability | undefined
  /** Mode of the file, less the umask. @default the mode of the file it replaces, else 0o666 */
  readonly mode?: number | undefined
  /** For the formats 'json' and, without `space` and `newline`, 'jsonl'. `maxBytes` is of the whole file. */
  readonly encode?: Omit<EncodeOptions, 'signal' | 'transfer'> | undefined
}

/**
 * Writes `path` so that a crash leaves either the old file or the whole new one: temporary file, sync, rename, directory sync.
 * The JS thread captures values; tasks print and write them. Rows of an async iterable are captured as they arrive, at most a few
 * megabytes ahead of the disk. The temporary file is in the same folder. If the call rejects, it is removed. A bad row rejects the call.
 */
export async function saveFile(
  path: string | URL,
  value: unknown,
  options: SaveOptions = {},
): Promise<{ readonly bytes: number }> {
  const name = readPath(path)
  const own = copyOptions(options, KEYS)
  const save = choose('options.format', own.format, FORMATS, saveJson)
  const durability = readDurability(own.durability, 'full')
  const mode = readInteger('options.mode', own.mode, 0, MOST_MODE)
  const signal = readSignal(own.signal)
  const config: SaveConfig = { encode: own.encode, transfer: readTransfer(own.transfer), signal }
  return { bytes: await save(new SavedFile(name, mode, durability), value, config) }
}

const KEYS = tableOf({
  format: true,
  durability: true,
  mode: true,
  encode: true,
  transfer: true,
  signal: true,
})

/** Resolved options that depend on the format. */
interface SaveConfig {
  readonly encode: SaveOptions['encode']
  readonly transfer: boolean
  readonly signal: AbortSignal | undefined
}

type Save = (file: SavedFile, value: unknown, config: SaveConfig) => Promise<number>

const saveJson: Save = (file, value, { encode = {}, transfer, signal }) => {
  const config = readEncodeConfig(copyOptions(encode, ENCODER_KEYS, 'options.encode'))
  file.bound(config.maxBytes)
  return saveValue(file, value, { ...config, transfer }, signal)
}

const saveMsgpack: Save = (file, value, { encode, transfer, signal }) => {
  refuse(encode)
  return saveValue(file, value, { ...MSGPACK_CONFIG, transfer }, signal)
}

const saveGivenBytes: Save = async (file, value, { encode, transfer, signal }) => {
  refuse(encode)
  const input = gatherBytes(checkBytes('value', value), transfer)
  try {
    file.end()
    return unwrap(await run((stop) => saveBytes(file, input.source, stop), { lane: 'files', signal }))
  } finally {
    input.end()
  }
}

const saveRows: Save = async (file, value, { encode = {}, transfer: isTaken, signal }) => {
  const config = readRowConfig(copyOptions(encode, SAVED_ROW_KEYS, 'options.encode'))
  file.bound(config.maxBytes)
  const transfer = isTaken ? new RowTransfer() : undefined
  const rows = new RowSaver(file, config, { transfer, signal })
  try {
    await forEachRow('value', value, { transfer, signal }, (row) => rows.add(row))
    return await rows.end()
  } catch (error) {
    await rows.drop()
    throw error
  }
}

const FORMATS = tableOf<Save>({ json: saveJson, jsonl: saveRows, msgpack: saveMsgpack, bytes: saveGivenBytes })

function refuse(encode: SaveOptions['encode']): void {
  if (encode !== undefined) throw invalidValue('options.encode', 'is of JSON, which this format is not', encode)
}

function saveValue(
  file: SavedFile,
  value: unknown,
  config: EncodeConfig,
  signal: AbortSignal | undefined,
): Promise<number> {
  const rowBuffer = shared.rowBufferOf(value, config, signal)
  file.end()
  return write(file, rowBuffer, config.gap, signal)
}

async function write(
  file: SavedFile,
  rowBuffer: RowBuffer,
  gap: string | undefined,
  signal: AbortSignal | undefined,
): Promise<number> {
  const { lexicon, layout, expectedSize: size } = rowBuffer
  const tape = rowBuffer.finish()
  const input: SaveTapeInput = withoutPrototype({ tape, lexicon, layout, size, ...(gap !== undefined && { gap }) })
  try {
    return unwrap(await run((stop) => saveTape(file, input, stop), { lane: 'files', signal }))
  } finally {
    rowBuffer.release()
  }
}

/** Captured bytes after which rows are written. */
const WRITE_BYTES = 4 << 20

/** File of rows. While some rows are written, later ones are captured. */
class RowSaver {
  readonly #file: SavedFile
  readonly #config: EncodeConfig
  readonly #options: ForEachOptions
  readonly #core = new EncoderCore()
  #rowBuffer: RowBuffer
  #rows = 0
  /** Least bytes of the rows before those of `#rowBuffer`. */
  #leastBytes = 0
  /** Settles when all rows before those of `#rowBuffer` are written. */
  #written: Promise<unknown> = Promise.resolve()

  constructor(file: SavedFile, config: EncodeConfig, options: ForEachOptions) {
    this.#file = file
    this.#config = config
    this.#options = options
    this.#rowBuffer = this.#core.open(config)
  }

  /** Captures a row. Returns a promise to wait for when much is captured: the write before the one that this row starts. */
  add(row: unknown): Promise<unknown> | undefined {
    this.#rowBuffer.add(row, this.#rows, this.#options.transfer)
    this.#rows += 1
    if (this.#rowBuffer.size < WRITE_BYTES) return undefined
    const before = this.#written
    this.#leastBytes += this.#rowBuffer.leastSize
    void this.#push()
    // Rows that never end would not wait for a write that is refused.
    const maxBytes = mostOf(this.#config.maxBytes - this.#leastBytes, 0)
    this.#rowBuffer = this.#core.open({ ...this.#config, maxBytes })
    return before
  }

  async end(): Promise<number> {
    await this.#written
    this.#file.end()
    return await this.#push()
  }

  #push(): Promise<number> {
    const rowBuffer = this.#rowBuffer
    const written = this.#written.then(() => write(this.#file, rowBuffer, undefined, this.#options.signal))
    // Adding later rows, or ending the file, rejects with the error.
    written.catch(() => undefined)
    this.#written = written
    return written
  }

  /** Removes the draft, once no write is running. */
  async drop(): Promise<void> {
    await this.#written.catch(() => undefined)
    await run(() => dropSaved(this.#file), { lane: 'files' })
  }
}
