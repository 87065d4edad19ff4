/**
 * The texts that JSON.stringify makes of whole values, on the JS thread. `encoder.ts` calls it.
 *
 * JSON.stringify takes 50–160 ns for a small object, so not even a look at the value is free: while results are small,
 * values go to JSON.stringify unseen. A large result draws attention to the next values.
 */

import { isLimit, textOfRoot } from '../capture/engine.ts'
import { mayExceed } from '../capture/look.ts'
import { ENGINE, OPEN, type Way } from '../capture/path-node.ts'
import { checkSize } from '../capture/printable-tape.ts'
import { Revived, stringify } from '../capture/raw-json.ts'
import { NO_RULES } from '../capture/rules.ts'
import { tuning } from '../capture/tuning.ts'
import type { Vocabulary } from '../capture/vocabulary.ts'
import { isProxy, leastOf } from '../runtime/intrinsics.ts'
import type { EncodeConfig } from './config.ts'
import { noJson } from './row-buffer.ts'

/** What a walk captures instead of a text: the value itself, or another one in its place. */
export class Unwritten {
  readonly value: unknown
  /** Way of the value, if its path node has chosen one. */
  readonly way: Way | undefined

  constructor(value: unknown, way?: Way) {
    this.value = value
    this.way = way
  }
}

export class RootTexts {
  /** Values that are looked at from now on. */
  #left: number
  /** Characters that must come of large values before one is looked at. */
  #unseen: number

  constructor(left: number, unseen: number) {
    this.#left = left
    this.#unseen = unseen
  }

  /** Returns the text of a value, or what a walk has to capture. */
  of(value: unknown, { rules, transfer, maxBytes }: EncodeConfig, vocabulary: Vocabulary): string | Unwritten {
    // JSON.stringify knows plain rules only, and takes no bytes. Strings are copied.
    if (rules !== NO_RULES || transfer || typeof value === 'string') return new Unwritten(value)
    if (maxBytes === Infinity) return this.#attend(value, vocabulary)
    if (typeof value === 'object' && value !== null && !isProxy(value) && mayExceed(value, maxBytes)) {
      return new Unwritten(value)
    }
    const text = this.#attend(value, vocabulary)
    if (typeof text === 'string') checkSize(text.length, maxBytes)
    return text
  }

  #attend(value: unknown, vocabulary: Vocabulary): string | Unwritten {
    const isSeen = 0 < this.#left && typeof value === 'object' && value !== null && !isProxy(value)
    const text = isSeen ? textOfSeen(value, vocabulary) : textOfUnseen(value, vocabulary)
    this.#note(typeof text === 'string' ? text.length : tuning.smallText)
    return text
  }

  /** Takes note of a text of so many characters. */
  #note(length: number): void {
    if (length < tuning.smallText) {
      if (0 < this.#left) this.#left -= 1
      return
    }
    this.#unseen -= leastOf(length, this.#unseen)
    if (this.#unseen === 0) this.#left = tuning.peeks
  }
}

function textOfUnseen(value: unknown, vocabulary: Vocabulary): string | Unwritten {
  let text: string | Revived | undefined
  try {
    text = stringify(value)
  } catch (error) {
    if (!isLimit(error)) throw error
    const isKnown = typeof value === 'object' && value !== null && !isProxy(value)
    if (isKnown) vocabulary.rootOf(value).open()
    return new Unwritten(value, OPEN)
  }
  return checked(text)
}

function textOfSeen(value: object, vocabulary: Vocabulary): string | Unwritten {
  const node = vocabulary.rootOf(value)
  const way = node.wayOf(value)
  if (way !== ENGINE) return new Unwritten(value, way)
  const text = textOfRoot(node, value)
  vocabulary.learnFrom(node, value)
  return checked(text)
}

function checked(text: string | Revived | undefined): string | Unwritten {
  if (text === undefined) throw noJson('the value')
  return text instanceof Revived ? new Unwritten(text.value) : text
}
