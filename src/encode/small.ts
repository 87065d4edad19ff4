/**
 * Values that are small, and texts that become bytes at once, on the JS thread. `encoder-core.ts` calls it.
 *
 * JSON.stringify takes 50–160 ns for a small object, so not even a look at the value is free: while results are small,
 * values go to JSON.stringify unseen. A large result draws attention to the next values.
 */

import { isLimit } from '../capture/engine.ts'
import { Revived, stringify } from '../capture/raw-json.ts'
import { tuning } from '../capture/tuning.ts'
import { allocateNow, utf8Of, type Bytes } from '../runtime/bytes.ts'
import { bufferFrom, isUtf8WritePlain, leastOf } from '../runtime/intrinsics.ts'
import { OWN_BUFFER } from '../runtime/results.ts'
import type { EncodeConfig } from './config.ts'
import { noJson } from './row-buffer.ts'

/** Whether the next values are looked at. */
export class Attention {
  /** Values that are looked at from now on. */
  #left: number
  /** Characters that must come of large values before one is looked at. */
  #unseen: number

  constructor(left: number, unseen: number) {
    this.#left = left
    this.#unseen = unseen
  }

  get isDue(): boolean {
    return 0 < this.#left
  }

  /** Takes note of a text of so many characters. */
  note(length: number): void {
    if (length < tuning.smallText) {
      if (0 < this.#left) this.#left -= 1
      return
    }
    this.#unseen -= leastOf(length, this.#unseen)
    if (this.#unseen === 0) this.#left = tuning.peeks
  }
}

/**
 * Stringifies a value that nobody has looked at. Returns a `Revived` where a walk has to capture its value instead: where
 * the value holds RawJsons, is too deep for the engine's stack, or too long for a string.
 */
export function stringifyUnseen(value: unknown): string | Revived {
  let text: string | Revived | undefined
  try {
    text = stringify(value)
  } catch (error) {
    if (!isLimit(error) || typeof value !== 'object' || value === null) throw error
    return new Revived(value)
  }
  if (text === undefined) throw noJson('the value')
  return text
}

/** Whether a text needs nothing but UTF-8 and a newline to become the result. */
export function isPlainText({ layout, gap }: EncodeConfig): boolean {
  return layout === 0 && gap === undefined
}

/** Length below which a text becomes bytes at once: a task costs the JS thread more. */
const AT_ONCE = OWN_BUFFER

export function isForNow(text: string, config: EncodeConfig): boolean {
  return text.length < AT_ONCE && isPlainText(config)
}

/** Encodes a text at once. Small results share the memory that Node's pool has for them. */
export function bytesOfText(text: string, { newline }: EncodeConfig): Bytes {
  const whole = newline ? `${text}\n` : text
  return whole.length * 3 < OWN_BUFFER && isUtf8WritePlain() ? bufferFrom(whole) : utf8Of(whole, allocateNow)
}
