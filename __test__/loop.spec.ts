import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import * as fc from 'fast-check'
import { Alarm, Limit } from '../src/kit/alarm.ts'
import { monitorLoop, type LoopLag, type LoopMonitor } from '../src/kit/index.ts'
import { SampleWindow } from '../src/kit/window.ts'
import { runScenario } from './fixtures/child.ts'
import { warningOf } from './fixtures/warning.ts'

function stall(milliseconds: number): void {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

async function samples(monitor: LoopMonitor, count: number): Promise<LoopLag> {
  while (monitor.lag().count < count) await sleep(1)
  return monitor.lag()
}

/** As NumPy words it. */
function naive(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const place = (values.length - 1) * share
  const [low = 0, high = low] = sorted.slice(Math.floor(place))
  return low + (high - low) * (place - Math.floor(place))
}

function windowOf(size: number, values: readonly number[]): SampleWindow {
  const window = new SampleWindow(size)
  for (const value of values) window.add(value)
  return window
}

function isNear(a: number, b: number): boolean {
  return Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a))
}

const VALUES = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 300, size: 'max' })
/** Of few different values, so that many stand where a limit is. */
const STEPS = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 400, size: 'max' })

test.serial('a stall of five seconds shows as a max of 4.9 or more, though no percentile may know', async (t) => {
  using monitor = monitorLoop({ intervalMs: 10 })
  await samples(monitor, 30)
  stall(5000)
  const { count } = monitor.lag()
  const lag = await samples(monitor, count + 1)
  t.true(lag.max >= 4900, `${lag.max}`)
  t.true(lag.min <= lag.median && lag.median <= lag.p90 && lag.p90 <= lag.p99 && lag.p99 <= lag.max)
})

test.serial('the max stays as long as its sample is in the window', async (t) => {
  using monitor = monitorLoop({ intervalMs: 1, window: 200 })
  await samples(monitor, 1)
  stall(300)
  await sleep(5)
  t.true((await samples(monitor, 100)).max >= 290)
})

test.serial('a reset forgets the samples, and a stall under way counts in what comes after', async (t) => {
  using monitor = monitorLoop({ intervalMs: 5 })
  await samples(monitor, 3)
  stall(100)
  monitor.reset()
  t.deepEqual(monitor.lag(), { count: 0, min: 0, mean: 0, median: 0, p90: 0, p99: 0, max: 0 })
  t.true((await samples(monitor, 1)).max >= 90)
})

test.serial('a monitor that is disposed samples no more, and still tells what it knows', async (t) => {
  const monitor = monitorLoop({ intervalMs: 1 })
  const { count } = await samples(monitor, 5)
  monitor[Symbol.dispose]()
  await sleep(50)
  t.is(monitor.lag().count, count)
  t.notThrows(() => monitor[Symbol.dispose]())
})

test.serial('a stall above the threshold is told once, with the lag', async (t) => {
  const told: LoopLag[] = []
  using monitor = monitorLoop({ intervalMs: 1, warn: { max: 200 }, onWarn: (lag) => told.push(lag) })
  await samples(monitor, 2)
  stall(250)
  while (told.length === 0) await sleep(1)
  stall(250)
  await sleep(20)
  t.is(told.length, 1)
  t.true((told[0]?.max ?? 0) > 200)
  monitor.reset()
  stall(250)
  while (told.length < 2) await sleep(1)
  t.is(told.length, 2)
})

test.serial('without onWarn the process is warned', async (t) => {
  const warning = warningOf(/the event loop is held/)
  using monitor = monitorLoop({ intervalMs: 1, warn: { max: 100 } })
  await samples(monitor, 2)
  stall(150)
  t.regex((await warning).message, /at p90, \d+ at p99, \d+ at most$/)
})

test.serial('what onWarn throws is a warning, and the monitor goes on', async (t) => {
  const warning = warningOf(/thrown by onWarn/)
  using monitor = monitorLoop({
    intervalMs: 1,
    warn: { max: 0 },
    onWarn: () => {
      throw new Error('thrown by onWarn')
    },
  })
  stall(10)
  await warning
  const { count } = monitor.lag()
  t.true((await samples(monitor, count + 3)).count > count)
})

test('percentiles are those of linear interpolation', (t) => {
  fc.assert(
    fc.property(VALUES, (values) => {
      const lag = windowOf(300, values).summarize()
      let sum = 0
      for (const value of values) sum += value
      t.is(lag.count, values.length)
      t.is(lag.min, Math.min(...values))
      t.is(lag.max, Math.max(...values))
      t.true(isNear(sum / values.length, lag.mean))
      t.true(isNear(naive(values, 0.5), lag.median))
      t.true(isNear(naive(values, 0.9), lag.p90))
      t.true(isNear(naive(values, 0.99), lag.p99))
      t.true(lag.min <= lag.median && lag.median <= lag.p90 && lag.p90 <= lag.p99 && lag.p99 <= lag.max)
    }),
  )
})

test('percentiles as NumPy prints them', (t) => {
  // numpy.percentile([15, 20, 35, 40, 50], [50, 90, 99])
  const { median, p90, p99 } = windowOf(9, [50, 15, 40, 20, 35]).summarize()
  t.deepEqual([median, p90, p99], [35, 46, 49.6])
})

test('a window keeps the latest samples and no others', (t) => {
  fc.assert(
    fc.property(VALUES, fc.integer({ min: 1, max: 40 }), (values, size) => {
      const window = new SampleWindow(size)
      for (const [index, value] of values.entries()) {
        t.is(window.add(value), size <= index ? values[index - size] : undefined)
      }
      const kept = values.slice(-size).toSorted((a, b) => a - b)
      t.deepEqual(
        Array.from(window.samples).toSorted((a, b) => a - b),
        kept,
      )
      t.is(window.count, kept.length)
    }),
  )
})

test('a limit is exceeded when the percentile is above it', (t) => {
  const limits = fc.integer({ min: 0, max: 16 }).map((quarters) => quarters / 4)
  fc.assert(
    fc.property(STEPS, limits, fc.constantFrom(13, 150), fc.constantFrom(0.9, 0.99), (values, most, size, share) => {
      const window = new SampleWindow(size)
      const limit = new Limit(window, share, most)
      const least = Math.min(size, share === 0.9 ? 11 : 101)
      for (const [index, value] of values.entries()) {
        limit.note(value, window.add(value))
        const seen = values.slice(Math.max(0, index + 1 - size), index + 1)
        t.is(limit.isExceeded, least <= seen.length && most < naive(seen, share))
      }
    }),
  )
})

test('warnings are at least a window of samples apart, and none is left out for longer', (t) => {
  fc.assert(
    fc.property(STEPS, (values) => {
      const window = new SampleWindow(20)
      const alarm = new Alarm(window, { p90: Infinity, p99: Infinity, max: 3 })
      let last = -Infinity
      for (const [index, value] of values.entries()) {
        const isDue = alarm.isDue(value, window.add(value))
        t.is(isDue, 3 < value && last + 20 <= index)
        if (isDue) last = index
      }
    }),
  )
})

test('a percentile is told when it is above its threshold', (t) => {
  const window = new SampleWindow(100)
  const alarm = new Alarm(window, { p90: 5, p99: Infinity, max: Infinity })
  const told: number[] = []
  for (let index = 0; index < 300; index += 1) {
    const sample = 50 <= index ? 9 : 1
    if (alarm.isDue(sample, window.add(sample))) told.push(index)
  }
  // Of 56 samples six are above, and the percentile is at the threshold, half between them and the others.
  t.deepEqual(told, [56, 156, 256])
})

const WRONG: readonly (readonly [what: string, options: unknown, code: string])[] = [
  ['null', null, 'ERR_INVALID_ARG_TYPE'],
  ['a number', 100, 'ERR_INVALID_ARG_TYPE'],
  ['an unknown option', { interval: 100 }, 'ERR_INVALID_ARG_VALUE'],
  ['an interval of zero', { intervalMs: 0 }, 'ERR_OUT_OF_RANGE'],
  ['half a millisecond', { intervalMs: 0.5 }, 'ERR_OUT_OF_RANGE'],
  ['an interval that timers do not take', { intervalMs: 2 ** 31 }, 'ERR_OUT_OF_RANGE'],
  ['an interval that is a string', { intervalMs: '100' }, 'ERR_INVALID_ARG_TYPE'],
  ['a window without samples', { window: 0 }, 'ERR_OUT_OF_RANGE'],
  ['an endless window', { window: Infinity }, 'ERR_OUT_OF_RANGE'],
  ['thresholds that are a number', { warn: 5 }, 'ERR_INVALID_ARG_TYPE'],
  ['an unknown threshold', { warn: { p95: 5 } }, 'ERR_INVALID_ARG_VALUE'],
  ['a negative threshold', { warn: { max: -1 } }, 'ERR_OUT_OF_RANGE'],
  ['a threshold that is no number', { warn: { p99: Number.NaN } }, 'ERR_OUT_OF_RANGE'],
  ['a threshold that is a string', { warn: { p90: '1' } }, 'ERR_INVALID_ARG_TYPE'],
  ['a listener that is none', { onWarn: 'warn' }, 'ERR_INVALID_ARG_TYPE'],
]

for (const [what, options, code] of WRONG) {
  test(`monitorLoop refuses ${what} with ${code}`, (t) => {
    t.throws(() => Reflect.apply(monitorLoop, undefined, [options]), { code })
  })
}

test('a monitor keeps no process alive', async (t) => {
  const { stdout, stderr } = await runScenario('kit', 'monitored')
  t.is(stdout, 'played\n', stderr)
})
