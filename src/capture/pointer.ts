/** Where a value stands, as errors say it. */

import { inspect } from 'node:util'
import { OffloopError } from '../errors.ts'
import type { Tape } from './tape.ts'

/**
 * The error for a value that the options refuse: at `name` in the container that is captured now, or at `index` of a
 * typed array that stands there.
 */
export function unsupported(tape: Tape, name: string | number, value: unknown, index?: number): OffloopError {
  const pointer = pointerTo(tape, name) + (index === undefined ? '' : `/${index}`)
  const place = pointer === '' ? 'the value' : `the value at ${pointer}`
  return new OffloopError('ERR_OFFLOOP_UNSUPPORTED', `${place} is ${inspect(value)}, which is refused`, { pointer })
}

/** A JSON Pointer (RFC 6901). */
function pointerTo({ names, depth }: Tape, name: string | number): string {
  if (depth === 0) return ''
  return pointerOf(names.slice(1, depth).concat(name))
}

export function pointerOf(steps: readonly (string | number)[]): string {
  return steps.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
