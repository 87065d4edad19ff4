/**
 * Reports the progress of tasks, on the JS thread. A timer reads their counters, so that no task waits for the loop.
 * Repairs, scans and reads use it.
 */

import { clearInterval, setInterval } from 'node:timers'
import { TaskProgress } from './native.ts'
import { onAbort } from './abort.ts'

export interface Done {
  readonly bytes: number
  readonly total: number
}

/** Progress with rows; `rows` is 0 where a task does not count them. */
export interface DoneWithRows extends Done {
  readonly rows: number
}

export type Listener = (done: Done) => void

const PERIOD_MS = 100

/**
 * Runs `work`, and calls `listener` ten times a second with its progress, and once at its end. An error of the listener
 * stops the work and rejects the call.
 */
export async function watched<T>(
  listener: (done: DoneWithRows) => void,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal, progress: TaskProgress) => Promise<T>,
): Promise<T> {
  const progress = new TaskProgress()
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
