/** The example of checkpoints: an evaluation that is killed again and again. */

import { readFileSync } from 'node:fs'
import test from 'ava'
import { runScenario } from './fixtures/child.ts'
import { makeFile } from './fixtures/folder.ts'
import { Random } from './fixtures/values.ts'

const ITEMS = 1000
const KILLS = 8

interface Ended {
  /** Items that were run, by their numbers. */
  readonly runs: readonly number[]
  readonly summary: string | undefined
}

/** An evaluation that kills itself when it has run so many items; or its end. */
async function evaluateUntil(path: string, most: number): Promise<Ended> {
  const ended = await runScenario('checkpoint', 'evaluation', { OFFLOOP_FILE: path, OFFLOOP_RUNS: String(most) })
  if (ended.code !== 0 && ended.signal !== 'SIGKILL') throw new Error(ended.stderr)
  const runs = [...ended.stdout.matchAll(/^run (\d+)$/gm)].map(([, number]) => Number(number))
  return { runs, summary: /^resumed .*$/m.exec(ended.stdout)?.[0] }
}

function rowsIn(path: string): readonly { readonly id: string; readonly reward: number }[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.slice(0, -1).map((line) => JSON.parse(line))
}

test('an evaluation of 1,000 items killed at random loses no row and repeats none', async (t) => {
  const path = makeFile('')
  const random = new Random(7)
  const runs = new Map<number, number>()
  const evaluateAndCount = async (most: number): Promise<Ended> => {
    const ended = await evaluateUntil(path, most)
    for (const index of ended.runs) runs.set(index, (runs.get(index) ?? 0) + 1)
    return ended
  }
  for (let kill = 0; kill < KILLS; kill += 1) {
    const { summary } = await evaluateAndCount(1 + random.int(ITEMS / KILLS - 1))
    t.is(summary, undefined)
  }
  const ended = await evaluateAndCount(Infinity)
  t.regex(ended.summary ?? '', /^resumed [1-9]\d* evaluated [1-9]\d*$/)
  const rows = rowsIn(path)
  const ids = rows.map(({ id }) => id)
  t.is(rows.length, ITEMS)
  t.is(new Set(ids).size, ITEMS)
  t.is(runs.size, ITEMS)
  for (const { id, reward } of rows) t.is(id, `item-${reward * 1000}`)
  // 32 at most are under way at a kill.
  const repeated = [...runs.values()].reduce((sum, count) => sum + count - 1, 0)
  t.true(repeated <= KILLS * 32, `${repeated} runs in vain`)
  t.deepEqual(
    rowsIn(`${path}.sorted`).map(({ id }) => id),
    Array.from({ length: ITEMS }, (_, index) => `item-${index}`),
  )
})
