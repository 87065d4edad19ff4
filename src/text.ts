/** Strings whose characters are to be bytes. */

import { execRegExp, sliceString } from './intrinsics.ts'

/** Constant time on a string that V8 keeps as one byte a character, which nearly all base64 is. */
// oxlint-disable-next-line no-control-regex
const WIDE = /[^\x00-\xff]/
/** As little base64 or base85 as any wide character; but one byte. */
const FOREIGN = '\xff'

/** Whether there is a character in it that is not Latin-1. */
export function isWide(text: string): boolean {
  return execRegExp(WIDE, text) !== null
}

/** The text itself; or, up to its first character that is not Latin-1, with a Latin-1 one in that place that is as invalid. */
export function upToWide(text: string): string {
  const match = execRegExp(WIDE, text)
  return match === null ? text : sliceString(text, 0, match.index) + FOREIGN
}
