/** Whole files, written so that a crash leaves either the old one or the new one. */

import { checkBytes, gatherBytes, sourceOf } from '../bytes.ts'
import { MSGPACK_RULES } from '../capture/rules.ts'
import { invalidValue } from '../errors.ts'
import {
  DEFAULT_FORM,
  readForm,
  readMsgpackLayout,
  readRowForm,
  ROW_KEYS,
  SYNC_KEYS,
  type EncodeOptions,
  type Form,
} from '../forms.ts'
import { dropSaved, FileDurability, saveBytes, SavedFile, saveSheet, unwrap } from '../native.ts'
import { checkKeys, choose, readInteger, readSignal, tableOf, type Cancellable } from '../options.ts'
import { run } from '../pool.ts'
import { Press, shared } from '../press.ts'
import { forEachRow, type Sheet } from '../sheet.ts'
import { MOST_MODE, readDurability, type Durability } from './durability.ts'
import { readPath } from './path.ts'

export interface SaveOptions extends Cancellable {
  /** 'jsonl' takes an iterable or async iterable of rows, 'bytes' a Uint8Array. @default 'json' */
  readonly format?: 'json' | 'jsonl' | 'msgpack' | 'bytes' | undefined
  /** @default 'full' */
  readonly durability?: Durability | undefined
  /** Of the file, less the umask. @default that of the file it replaces, else 0o666 */
  readonly mode?: number | undefined
  /** Of JSON: for the formats 'json' and, without `space` and `newline`, 'jsonl'. */
  readonly encode?: Omit<EncodeOptions, 'signal'> | undefined
}

/**
 * Writes `path` so that a crash leaves either the old file or the whole new one: temporary file, sync, rename, directory sync.
 * Values are captured on the JS thread, rows of an async iterable as they arrive, no more than a few megabytes ahead of the
 * disk; the rest is done off it. The temporary stands in the same folder and is gone where this rejects; a bad row rejects it.
 */
export async function saveFile(
  path: string | URL,
  value: unknown,
  options: SaveOptions = {},
): Promise<{ readonly bytes: number }> {
  const name = readPath(path)
  checkKeys(options, KEYS)
  const save = choose('options.format', options.format, FORMATS, saveJson)
  const durability = readDurability(options.durability, FileDurability.Full)
  const mode = readInteger('options.mode', options.mode, 0, MOST_MODE)
  const signal = readSignal(options.signal)
  return { bytes: await save(new SavedFile(name, mode, durability), value, options.encode, signal) }
}

const KEYS = tableOf({ format: true, durability: true, mode: true, encode: true, signal: true })

type Save = (
  file: SavedFile,
  value: unknown,
  encode: SaveOptions['encode'],
  signal: AbortSignal | undefined,
) => Promise<number>

const saveJson: Save = (file, value, encode = {}, signal) => {
  checkKeys(encode, SYNC_KEYS, 'options.encode')
  return saveValue(file, value, readForm(encode), signal)
}

const saveMsgpack: Save = (file, value, encode, signal) => {
  refuse(encode)
  return saveValue(file, value, { ...DEFAULT_FORM, rules: MSGPACK_RULES, layout: readMsgpackLayout({}) }, signal)
}

const saveGiven: Save = async (file, value, encode, signal) => {
  refuse(encode)
  const source = sourceOf(gatherBytes(checkBytes('value', value), false))
  file.end()
  return unwrap(await run((stop) => saveBytes(file, source, stop), { lane: 'files', signal }))
}

const saveRows: Save = async (file, value, encode = {}, signal) => {
  checkKeys(encode, ROW_KEYS, 'options.encode')
  const rows = new RowsFile(file, readRowForm(encode), signal)
  try {
    await forEachRow('value', value, signal, (row) => rows.add(row))
    return await rows.end()
  } catch (error) {
    await rows.drop()
    throw error
  }
}

const FORMATS = tableOf<Save>({ json: saveJson, jsonl: saveRows, msgpack: saveMsgpack, bytes: saveGiven })

function refuse(encode: SaveOptions['encode']): void {
  if (encode !== undefined) throw invalidValue('options.encode', 'is of JSON, which this format is not', encode)
}

function saveValue(file: SavedFile, value: unknown, form: Form, signal: AbortSignal | undefined): Promise<number> {
  const sheet = shared.sheetOf(value, form)
  file.end()
  return write(file, sheet, form.gap, signal)
}

async function write(
  file: SavedFile,
  sheet: Sheet,
  gap: string | undefined,
  signal: AbortSignal | undefined,
): Promise<number> {
  const { lexicon, layout, expectedSize } = sheet
  const parts = sheet.finish()
  try {
    const launch: Parameters<typeof run<number>>[0] = (stop) =>
      saveSheet(file, parts, lexicon, layout, gap, expectedSize, stop)
    return unwrap(await run(launch, { lane: 'files', signal }))
  } finally {
    sheet.release()
  }
}

/** Rows are written when so many bytes of them are captured. */
const SHEET_BYTES = 4 << 20

/** A file of rows: while some are written, others are captured. */
class RowsFile {
  readonly #file: SavedFile
  readonly #form: Form
  readonly #signal: AbortSignal | undefined
  readonly #press = new Press()
  #sheet: Sheet
  #rows = 0
  /** Of all that was captured before the open sheet. */
  #written: Promise<unknown> = Promise.resolve()

  constructor(file: SavedFile, form: Form, signal: AbortSignal | undefined) {
    this.#file = file
    this.#form = form
    this.#signal = signal
    this.#sheet = this.#press.open(form)
  }

  /** What to wait for where much is captured: all but the latest sheet. */
  add(row: unknown): Promise<unknown> | undefined {
    this.#sheet.add(row, this.#rows)
    this.#rows += 1
    if (this.#sheet.size < SHEET_BYTES) return undefined
    const before = this.#written
    void this.#push()
    this.#sheet = this.#press.open(this.#form)
    return before
  }

  async end(): Promise<number> {
    await this.#written
    this.#file.end()
    return await this.#push()
  }

  #push(): Promise<number> {
    const sheet = this.#sheet
    const written = this.#written.then(() => write(this.#file, sheet, undefined, this.#signal))
    // Who adds the next rows, or ends the file, is told.
    written.catch(() => undefined)
    this.#written = written
    return written
  }

  /** When nothing of it is being written any more. */
  async drop(): Promise<void> {
    await this.#written.catch(() => undefined)
    await run(() => dropSaved(this.#file), { lane: 'files' })
  }
}
