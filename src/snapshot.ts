/** Values as they were, kept outside the JS heap, to become JSON, MessagePack or a digest later. */

import type { Bytes } from './bytes.ts'
import { forBoth } from './capture/rules.ts'
import type { Kept } from './capture/tape.ts'
import { OffloopError } from './errors.ts'
import {
  MSGPACK_KEYS,
  readMsgpackLayout,
  readSpace,
  SIGNAL_KEYS,
  SNAPSHOT_KEYS,
  type EncodeOptions,
  type Form,
  type MsgpackOptions,
  type Shape,
} from './forms.ts'
import { toUtf8 } from './intrinsics.ts'
import { Layout } from './native.ts'
import { checkKeys, readBoolean, readSignal, type Cancellable } from './options.ts'
import type { Press } from './press.ts'

export interface Snapshot extends Disposable {
  /** Bytes held until dispose. */
  readonly byteLength: number
  json(options?: Pick<EncodeOptions, 'space' | 'newline' | 'sortKeys' | 'signal'>): Promise<Bytes>
  msgpack(options?: MsgpackOptions): Promise<Bytes>
  /** Lower-case hex SHA-256 of `json({ sortKeys: true })`. */
  digest(options?: Cancellable): Promise<string>
}

type JsonOptions = NonNullable<Parameters<Snapshot['json']>[0]>

/** What JSON is made of it is as `form` says, where a call says nothing else. */
export function takeSnapshot(press: Press, value: unknown, form: Form): Snapshot {
  return new Taken(press, press.keep(value, forBoth(form.rules)), form)
}

class Taken implements Snapshot {
  readonly byteLength: number
  readonly #press: Press
  readonly #form: Form
  /** Undefined once it is disposed. */
  #kept: Kept | undefined
  /** Tasks under way. */
  #readers = 0

  constructor(press: Press, kept: Kept, form: Form) {
    this.#press = press
    this.#form = form
    this.#kept = kept
    this.byteLength = kept.parts.size
  }

  async json(options: JsonOptions = {}): Promise<Bytes> {
    checkKeys(options, SNAPSHOT_KEYS)
    return await this.#json(options, 0)
  }

  async msgpack(options: MsgpackOptions = {}): Promise<Bytes> {
    checkKeys(options, MSGPACK_KEYS)
    const signal = readSignal(options.signal)
    const shape = { layout: readMsgpackLayout(options), gap: undefined }
    const kept = this.#open()
    if (kept.msgpackError !== undefined) throw kept.msgpackError
    return await this.#print(kept, shape, signal)
  }

  async digest(options: Cancellable = {}): Promise<string> {
    checkKeys(options, SIGNAL_KEYS)
    return toUtf8(await this.#json({ signal: options.signal, sortKeys: true }, Layout.Digest))
  }

  [Symbol.dispose](): void {
    const kept = this.#kept
    this.#kept = undefined
    if (this.#readers === 0) kept?.release()
  }

  async #json(options: JsonOptions, digest: number): Promise<Bytes> {
    const { layout, newline, gap } = this.#form
    const signal = readSignal(options.signal)
    const isSorted = readBoolean('options.sortKeys', options.sortKeys, (layout & Layout.SortedKeys) !== 0)
    const hasNewline = readBoolean('options.newline', options.newline, newline)
    const shape = {
      layout: digest | (isSorted ? Layout.SortedKeys : 0) | (hasNewline ? Layout.Newline : 0),
      gap: options.space === undefined ? gap : readSpace(options.space),
    }
    const kept = this.#open()
    if (kept.jsonError !== undefined) throw kept.jsonError
    return await this.#print(kept, shape, signal)
  }

  #open(): Kept {
    if (this.#kept === undefined) throw new OffloopError('ERR_OFFLOOP_CLOSED', 'the snapshot is disposed')
    return this.#kept
  }

  async #print(kept: Kept, shape: Shape, signal: AbortSignal | undefined): Promise<Bytes> {
    this.#readers += 1
    try {
      return await this.#press.printKept(kept, shape, signal)
    } finally {
      this.#readers -= 1
      if (this.#readers === 0 && this.#kept === undefined) kept.release()
    }
  }
}
