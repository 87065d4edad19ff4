/** Bounds of the ways in which strings go to a tape, and the width of their characters. Runs on the JS thread. */

import { byteLengthOfText } from '../runtime/intrinsics.ts'
import { isWide } from '../runtime/text.ts'

/** Major version of Node. */
export const NODE: number = Number.parseInt(process.versions.node, 10)

/**
 * Longest string that is joined in JavaScript, thousands at a time, before it is copied out of V8. Joining costs 10 ns,
 * a copy of its own 30 ns. The best bound depends on the engine.
 */
export const SHORT_STRING: number = NODE < 22 ? 192 : NODE < 24 ? 64 : 112
/** Characters that are joined. Longer ropes leave the cache before they are flattened. */
export const LONG_ROPE: number = 1 << 14
/** Least length of a string that gets memory of its own. */
export const LONG_STRING: number = 1 << 18
/** Least length of a JSON text, or a key, that gets memory of its own. */
export const LONG_TEXT: number = 1 << 14

/** Whether V8 measures the UTF-8 of wide strings faster than it finds their widest character: V8 14 and later. */
const HAS_FAST_LENGTH = 25 <= NODE
const FAST_LENGTH_FROM = 512

/** Whether the characters may need two bytes. It may be true for some strings that need one. */
export function mayBeWide(text: string): boolean {
  if (HAS_FAST_LENGTH && FAST_LENGTH_FROM <= text.length) return byteLengthOfText(text) !== text.length
  return isWide(text)
}
