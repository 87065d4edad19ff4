/** Results of texts that JSON.stringify made, at once on the JS thread. `encoder.ts` calls it. */

import { checkSize } from '../capture/printable-tape.ts'
import { NODE } from '../capture/strings.ts'
import { allocateNow, utf8Of, type Bytes } from '../runtime/bytes.ts'
import { bufferFrom, isUtf8WritePlain, lengthOf } from '../runtime/intrinsics.ts'
import { OWN_BUFFER } from '../runtime/results.ts'
import { Layout } from '../runtime/native.ts'
import type { EncodeConfig, PrintOptions } from './config.ts'

/**
 * Whether a text needs nothing but UTF-8 and a newline to become the result. The nesting of a long one is checked by the
 * addon where the engine does not bound it: each level takes two characters.
 */
export function isPlainText({ length }: string, { layout, gap, rules }: EncodeConfig): boolean {
  return layout === 0 && gap === undefined && (NODE < NESTS_ON || length < 2 * rules.maxDepth)
}

/** First Node whose JSON.stringify nests without a stack. */
const NESTS_ON = 25

/** Length from which a text becomes bytes in a task, which costs the JS thread 20–50 µs. */
const FOR_TASK = OWN_BUFFER

/** Whether a text becomes bytes at once, though its caller would wait for a task. */
export function isForNow(text: string, config: EncodeConfig): boolean {
  return text.length < FOR_TASK && isPlainText(text, config)
}

/** Encodes a text at once. Small results share the memory that Node's pool has for them. */
export function bytesOfText(text: string, { newline, maxBytes }: EncodeConfig): Bytes {
  const whole = newline ? `${text}\n` : text
  const bytes =
    whole.length * MOST_SIZE < OWN_BUFFER && isUtf8WritePlain() ? bufferFrom(whole) : utf8Of(whole, allocateNow)
  if (maxBytes !== Infinity) checkSize(lengthOf(bytes), maxBytes)
  return bytes
}

/** Most bytes of a UTF-16 unit in UTF-8. */
const MOST_SIZE = 3

/** Returns how a tape without segments is printed: its newline is not on it. */
export function ofWholeText({ newline, layout, gap, maxBytes }: EncodeConfig): PrintOptions {
  return { layout: newline ? layout | Layout.Newline : layout, gap, maxBytes }
}
