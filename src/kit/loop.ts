/** Measures how late the event loop runs a timer. Runs on the JS thread; `offloop/kit` exports it. */

import { clearInterval, setInterval } from 'node:timers'
import { copyOptions, MAX_DELAY_MS, readInteger, readListener, readNumber, tableOf } from '../runtime/options.ts'
import { Alarm } from './alarm.ts'
import { notify } from './warn.ts'
import { SampleWindow, type LoopLag } from './window.ts'

export interface LoopMonitor extends Disposable {
  /** How late the samples came, in milliseconds, since the last reset and within the window. Sorts a copy of them: 1 ms for 10,000. */
  lag(): LoopLag
  /** Forgets the samples. A stall that has begun becomes the first new sample. */
  reset(): void
}

const KEYS = tableOf({ intervalMs: true, window: true, warn: true, onWarn: true })
const WARN_KEYS = tableOf({ p90: true, p99: true, max: true })
const INTERVAL_MS = 100
const WINDOW = 10_000
const MAX_WINDOW = 10_000_000

/**
 * Measures how late a timer comes. `max` shows the stall of 5 s that a mean hides, and that a p99 of 10,000 samples hides, too.
 *
 * A sample costs one timer, some tens of microseconds, whatever the window. The window allocates 8 bytes a sample, at once.
 * `warn.max` is compared with every sample. A percentile is compared once a single sample cannot decide it: from 11 samples on for p90,
 * from 101 on for p99. After a warning, the next one comes after a window of samples or a reset. Does not keep the process alive.
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
    /** Called at most once per window. @default process.emitWarning */
    readonly onWarn?: ((lag: LoopLag) => void) | undefined
  } = {},
): LoopMonitor {
  const own = copyOptions(options, KEYS)
  const intervalMs = readInteger('options.intervalMs', own.intervalMs, 1, MAX_DELAY_MS) ?? INTERVAL_MS
  const window = new SampleWindow(readInteger('options.window', own.window, 1, MAX_WINDOW) ?? WINDOW)
  const alarm = readAlarm(own.warn, window)
  const onWarn = readListener('options.onWarn', own.onWarn) ?? warnOfLag
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
    // libuv counts whole milliseconds, so a timer may come up to one early.
    const late = Math.max(0, now - this.#due)
    // Node starts the next interval before the listener runs, so the time of the listener counts as lateness.
    this.#due = now + this.#intervalMs
    const left = this.#window.add(late)
    if (this.#alarm?.isDue(late, left) === true) notify(this.#onWarn, this.#window.summarize())
  }
}

type Thresholds = NonNullable<NonNullable<Parameters<typeof monitorLoop>[0]>['warn']>

function readAlarm(warn: Thresholds | undefined, window: SampleWindow): Alarm | undefined {
  if (warn === undefined) return undefined
  const own = copyOptions(warn, WARN_KEYS, 'options.warn')
  const read = (name: string, value: unknown): number =>
    readNumber(`options.warn.${name}`, value, 0, Infinity) ?? Infinity
  const [p90, p99, max] = [read('p90', own.p90), read('p99', own.p99), read('max', own.max)]
  return new Alarm(window, { p90, p99, max })
}

function warnOfLag({ p90, p99, max }: LoopLag): void {
  const [high, higher, highest] = [p90, p99, max].map((ms) => ms.toFixed(0))
  process.emitWarning(`the event loop is held: it came ${high} ms late at p90, ${higher} at p99, ${highest} at most`)
}
