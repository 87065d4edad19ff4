/** What happens behind the back of everybody who could catch it. */

import { inspect } from 'node:util'

/** Calls a listener of the user's. What it throws is a warning of the process: nobody waits for it, and a monitor ends no process. */
export function tell<T>(listener: (value: T) => void, value: T): void {
  try {
    listener(value)
  } catch (error) {
    warn(error)
  }
}

/** Errors are no reason to end the process where the work they are of is not the caller's. */
export function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : inspect(error))
}
