/** Writes keys, and primitive values with their keys. Runs on the JS thread; both walks call it. */

import { toText } from '../runtime/intrinsics.ts'
import { FALSE, NULL, TRUE } from './opcodes.ts'
import { NO_KEY, type PathEdge } from './path-node.ts'
import type { Tape } from './writer.ts'

/** Writes the key of a property; nothing for an element or a whole value. */
export function writeKey(tape: Tape, edge: PathEdge, name: string | number): void {
  if (edge.word === NO_KEY) return
  tape.room()
  writeName(tape, edge, name)
}

/** Writes a key where the tape has room for its words. */
export function writeName(tape: Tape, edge: PathEdge, name: string | number): void {
  if (edge.isUnknown) tape.name(toText(name))
  else tape.words[tape.w++] = edge.word
}

/** Writes a primitive value with its key. No user code takes part. */
export function writePrimitive(
  tape: Tape,
  name: string | number,
  value: string | number | boolean | null,
  edge: PathEdge,
): void {
  writeKey(tape, edge, name)
  tape.room()
  switch (typeof value) {
    case 'string':
      tape.string(value)
      break
    case 'number':
      tape.number(value)
      break
    case 'boolean':
      tape.literal(value ? TRUE : FALSE)
      break
    default:
      tape.literal(NULL)
  }
}
