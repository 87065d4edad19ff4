/** Graphs that JSON.stringify gives up on at once must cost no more here, whatever is learned of them. */

import test from 'ava'
import { runScenario } from './fixtures/child.ts'
import { GRAPHS } from './fixtures/graphs.ts'
import type { GraphReads } from './scenarios/graphs.ts'

const ENTRIES = 8
const SETTINGS = 2
/** Looking at a value costs at most so many times what JSON.stringify reads of it. */
const MOST = 10

test('a graph costs at most ten times what JSON.stringify reads of it', async (t) => {
  const { code, stdout, stderr } = await runScenario('graphs', 'measure', { NODE_OPTIONS: '--max-old-space-size=256' })
  t.is(stderr, '')
  t.is(code, 0)
  const lines = stdout.split('\n').filter((line) => line.startsWith('{'))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each line is one that the scenario printed
  const all = lines.map((line) => JSON.parse(line) as GraphReads)
  t.is(all.length, GRAPHS.length * ENTRIES * SETTINGS)
  for (const { graph, isCircular, entry, isSafe, reads, lookups, calls, refused } of all) {
    const what = `${entry} of ${graph}`
    t.true(lookups <= reads * MOST, `${what}: ${lookups} lookups, ${reads} reads`)
    t.is(refused, isCircular && !isSafe ? calls : 0, what)
  }
})
