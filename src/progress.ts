/** Progress of tasks: looked at by a timer, so that no task has to wait for the loop. */

import { clearInterval, setInterval } from 'node:timers'
import { Progress } from './native.ts'
import { onAbort } from './signal.ts'

export interface Done {
  readonly bytes: number
  readonly total: number
}

/** Rows are zero where a task does not count them. */
export interface DoneWithRows extends Done {
  readonly rows: number
}

export type Listener = (done: Done) => void

const PERIOD_MS = 100

/**
 * Runs `work`, and tells `listener` ten times a second how far it has come, and at its end that it is done. What the
 * listener throws ends the work and is what the call then rejects with.
 */
export async function watched<T>(
  listener: (done: DoneWithRows) => void,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal, progress: Progress) => Promise<T>,
): Promise<T> {
  const progress = new Progress()
  const controller = new AbortController()
  let thrown: { readonly error: unknown } | undefined
  const unwatch = signal === undefined ? undefined : onAbort(signal, () => controller.abort(signal.reason))
  const timer = setInterval(() => {
    const { bytes, total, rows } = progress
    if (total === 0) return
    try {
      listener({ bytes, total, rows })
    } catch (error) {
      thrown = { error }
      clearInterval(timer)
      controller.abort(error)
    }
  }, PERIOD_MS)
  timer.unref()
  try {
    const result = await work(controller.signal, progress)
    if (thrown !== undefined) throw thrown.error
    listener({ bytes: progress.total, total: progress.total, rows: progress.rows })
    return result
  } finally {
    clearInterval(timer)
    unwatch?.()
  }
}
