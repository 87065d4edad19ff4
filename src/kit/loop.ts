/** How late the loop is. */

import { clearInterval, setInterval } from 'node:timers'
import { checkKeys, MAX_DELAY_MS, readInteger, readListener, readNumber, tableOf } from '../options.ts'
import { Alarm } from './alarm.ts'
import { tell } from './tell.ts'
import { SampleWindow, type LoopLag } from './window.ts'

export interface LoopMonitor extends Disposable {
  /** Milliseconds by which the samples came late since the last reset, within the window. Sorts a copy of them: 1 ms for 10,000. */
  lag(): LoopLag
  /** Forgets the samples. A stall under way is a sample of what comes after. */
  reset(): void
}

const KEYS = tableOf({ intervalMs: true, window: true, warn: true, onWarn: true })
const WARN_KEYS = tableOf({ p90: true, p99: true, max: true })
const INTERVAL_MS = 100
const WINDOW = 10_000
const MAX_WINDOW = 10_000_000

/**
 * Measures how late a timer comes. The stall of 5 s that a mean hides and a p99 of 10,000 samples hides, since it is one sample
 * of them, is the `max`.
 *
 * A sample costs what waking up for a timer costs, some tens of microseconds, whatever the window; the window's memory is 8 bytes a sample, made at once.
 * `warn.max` is looked at with every sample, a percentile once there are so many samples that one alone does not decide it (11 for p90,
 * 101 for p99). After a warning the next one comes when a window of samples has passed, or after a reset. Keeps nothing alive.
 */
export function monitorLoop(
  options: {
    /** @default 100 */
    readonly intervalMs?: number | undefined
    /** Samples kept. @default 10 000 */
    readonly window?: number | undefined
    /** Thresholds in milliseconds. @default none */
    readonly warn?:
      | {
          readonly p90?: number | undefined
          readonly p99?: number | undefined
          readonly max?: number | undefined
        }
      | undefined
    /** At most once per window. @default process.emitWarning */
    readonly onWarn?: ((lag: LoopLag) => void) | undefined
  } = {},
): LoopMonitor {
  checkKeys(options, KEYS)
  const intervalMs = readInteger('options.intervalMs', options.intervalMs, 1, MAX_DELAY_MS) ?? INTERVAL_MS
  const window = new SampleWindow(readInteger('options.window', options.window, 1, MAX_WINDOW) ?? WINDOW)
  const alarm = readAlarm(options.warn, window)
  const onWarn = readListener('options.onWarn', options.onWarn) ?? warnOfLag
  return new Monitor(intervalMs, window, alarm, onWarn)
}

class Monitor implements LoopMonitor {
  readonly #intervalMs: number
  readonly #window: SampleWindow
  readonly #alarm: Alarm | undefined
  readonly #onWarn: (lag: LoopLag) => void
  readonly #timer: NodeJS.Timeout
  #due: number

  constructor(intervalMs: number, window: SampleWindow, alarm: Alarm | undefined, onWarn: (lag: LoopLag) => void) {
    this.#intervalMs = intervalMs
    this.#window = window
    this.#alarm = alarm
    this.#onWarn = onWarn
    this.#due = performance.now() + intervalMs
    this.#timer = setInterval(() => this.#sample(), intervalMs)
    this.#timer.unref()
  }

  lag(): LoopLag {
    return this.#window.summarize()
  }

  reset(): void {
    this.#window.clear()
    this.#alarm?.clear()
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  #sample(): void {
    const now = performance.now()
    // Libuv counts in whole milliseconds, and so may be early by part of one.
    const late = Math.max(0, now - this.#due)
    // Before the listener runs, as Node counts the next interval: what the listener takes is lateness, too.
    this.#due = now + this.#intervalMs
    const left = this.#window.add(late)
    if (this.#alarm?.isDue(late, left) === true) tell(this.#onWarn, this.#window.summarize())
  }
}

type Thresholds = NonNullable<NonNullable<Parameters<typeof monitorLoop>[0]>['warn']>

function readAlarm(warn: Thresholds | undefined, window: SampleWindow): Alarm | undefined {
  if (warn === undefined) return undefined
  checkKeys(warn, WARN_KEYS, 'options.warn')
  const read = (name: string, value: unknown): number =>
    readNumber(`options.warn.${name}`, value, 0, Infinity) ?? Infinity
  const [p90, p99, max] = [read('p90', warn.p90), read('p99', warn.p99), read('max', warn.max)]
  return new Alarm(window, { p90, p99, max })
}

function warnOfLag({ p90, p99, max }: LoopLag): void {
  const [high, higher, highest] = [p90, p99, max].map((ms) => ms.toFixed(0))
  process.emitWarning(`the event loop is held: it came ${high} ms late at p90, ${higher} at p99, ${highest} at most`)
}
