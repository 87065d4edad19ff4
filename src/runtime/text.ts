/** Strings whose characters are bytes. Runs on the JS thread; base64, routed experts and the capture call it. */

import { execRegExp, sliceString } from './intrinsics.ts'

/** Finds a character beyond Latin-1. Takes constant time on a string that V8 stores as one byte a character, as it does nearly all base64. */
// oxlint-disable-next-line no-control-regex -- Latin-1 starts at U+0000
const WIDE = /[^\x00-\xff]/
/** A Latin-1 character that is invalid in base64 and base85. */
const FOREIGN = '\xff'

/** Returns whether a character is beyond Latin-1. */
export function isWide(text: string): boolean {
  return execRegExp(WIDE, text) !== null
}

/** Returns the text if it is Latin-1; else the text up to the first character beyond it, which an invalid Latin-1 character replaces. */
export function upToWide(text: string): string {
  const match = execRegExp(WIDE, text)
  return match === null ? text : sliceString(text, 0, match.index) + FOREIGN
}
