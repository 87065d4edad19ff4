/** Errors for values that the options refuse, with the JSON Pointer of the value. Runs on the JS thread; the capture throws them. */

import { inspect } from 'node:util'
import { OffloopError } from '../runtime/errors.ts'
import type { CaptureContext } from './context.ts'

/**
 * Returns the error for a value that the options refuse. The value is at `name` in the container that is being
 * captured, or at `index` of the typed array there.
 */
export function unsupported(
  context: CaptureContext,
  name: string | number,
  value: unknown,
  index?: number,
): OffloopError {
  const pointer = pointerTo(context, name) + (index === undefined ? '' : `/${index}`)
  const place = pointer === '' ? 'the value' : `the value at ${pointer}`
  return new OffloopError('ERR_OFFLOOP_UNSUPPORTED', `${place} is ${inspect(value)}, which is refused`, { pointer })
}

/** Steps of the pointer that the error for a value too deep names. Nobody reads more. */
const STEPS_NAMED = 16

/** Returns the error for a container that is too deep. It is at `name` in the container that is being captured. */
export function tooDeep(context: CaptureContext, name: string | number): OffloopError {
  const { names, depth, rules } = context
  const pointer = depth <= STEPS_NAMED ? pointerTo(context, name) : pointerOf(names.slice(1, STEPS_NAMED + 1))
  const place = depth <= STEPS_NAMED ? pointer : `${pointer}/…`
  const message = `the value at ${place} is nested more than maxDepth, ${rules.maxDepth}, levels deep`
  return new OffloopError('ERR_OFFLOOP_TOO_LARGE', depth === 0 ? message.replace(' at ', '') : message, { pointer })
}

/** Returns the pointer of the value at `name` in the container that is being captured. */
function pointerTo({ names, depth }: CaptureContext, name: string | number): string {
  if (depth === 0) return ''
  return pointerOf(names.slice(1, depth).concat(name))
}

/** Returns the JSON Pointer (RFC 6901) of a path. */
export function pointerOf(path: readonly (string | number)[]): string {
  return path.map((step) => `/${segmentOf(step)}`).join('')
}

/** Returns the segment of a JSON Pointer for a key or an index. */
export function segmentOf(step: string | number): string {
  return String(step).replaceAll('~', '~0').replaceAll('/', '~1')
}
