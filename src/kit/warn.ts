/** Process warnings for failures that no caller can catch. Runs on the JS thread; every tool of the kit calls it. */

import { inspect } from 'node:util'
import { isError } from '../runtime/intrinsics.ts'

/** Calls a listener of the user. An error that it throws becomes a process warning, as no caller waits for the listener. */
export function notify<T>(listener: (value: T) => void, value: T): void {
  try {
    listener(value)
  } catch (error) {
    warn(error)
  }
}

/** Warns of an error, or of any other value after `prefix`. The process goes on, as the failed work is not the caller's. */
export function warn(error: unknown, prefix = ''): void {
  process.emitWarning(isError(error) ? error : `${prefix}${inspect(error)}`)
}
