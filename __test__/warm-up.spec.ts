/** The rehearsal of large calls, after the import. */

import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { warmWhenIdle } from '../src/encode/warm-up.ts'
import { tuning } from '../src/capture/tuning.ts'
import { stats } from '../src/index.ts'

// Other specs do without.
tuning.isRehearsed = true

test('the import is followed by calls that run tasks, though nothing was called', async (t) => {
  while (stats().completed < 3) await sleep(1)
  t.pass()
})

test('each sample has a turn of its own, after the one before is encoded', async (t) => {
  let running = 0
  const values: unknown[] = []
  const all = new Promise<void>((resolve) => {
    warmWhenIdle(() => async (value) => {
      running += 1
      t.is(running, 1)
      await sleep(1)
      running -= 1
      values.push(value)
      if (values.length === 4) resolve()
    })
  })
  await sleep(0)
  t.true(values.length < 4)
  await all
  t.is(new Set(values.map((value) => JSON.stringify(value))).size, 4)
})

test('a rehearsal that fails ends, and nobody hears of it', async (t) => {
  let count = 0
  const fail = (): never => {
    count += 1
    throw new Error('a replaced built-in')
  }
  warmWhenIdle(() => fail)
  warmWhenIdle(() => async () => fail())
  await sleep(50)
  t.is(count, 2)
})
