/**
 * No input makes a call take more steps than n log n of its size. Steps are the instructions of the whole process, which
 * callgrind counts: they do not depend on what else the machine does.
 */

import { execFile, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import test from 'ava'
import { leaveOut } from '../faults/leave-out.ts'
import { makeFile } from '../fixtures/folder.ts'
import { INPUTS } from './inputs.ts'

const run = promisify(execFile)
const ROOT = new URL('../../', import.meta.url)
const hasCallgrind =
  process.platform === 'linux' && process.arch === 'x64' && spawnSync('valgrind', ['--version']).status === 0

/** From four times the size to sixteen times it, steps grow 4 times as much as from one to four where they are linear, 16 times where they are quadratic. */
const MOST_GROWTH = 7
/** Less may be a collection. */
const FEWEST_STEPS = 4_000_000

test('steps grow no faster than n log n', async (t) => {
  if (!hasCallgrind) {
    leaveOut(t, 'counting steps needs Linux on x86-64 and valgrind (Debian: apt-get install valgrind)')
    return
  }
  t.timeout(20 * 60_000)
  for (const [name, [one = NaN, four = NaN, sixteen = NaN]] of await countAll()) {
    const what = `${name}: ${one}, ${four}, ${sixteen} steps`
    t.true(0 < sixteen, what)
    t.true(sixteen < FEWEST_STEPS || sixteen - four < MOST_GROWTH * (four - one), what)
  }
})

/** Of each input, the least that was counted for each size, in the order of sizes. */
async function countAll(): Promise<Map<string, number[]>> {
  const out = makeFile('')
  const loader = ['--import', '@oxc-node/core/register', '--import', './__test__/fixtures/use-hooks.mjs']
  // Without code that is compiled at run time, and with few collections.
  const flags = ['--expose-gc', '--jitless', '--no-expose-wasm', '--single-threaded', '--min-semi-space-size=128']
  const program = [process.execPath, ...flags, ...loader, '__test__/scenarios/steps.ts', 'count']
  await run('valgrind', ['--tool=callgrind', `--callgrind-out-file=${out}`, ...program], {
    cwd: ROOT,
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  const folder = dirname(out)
  const counts = new Map(INPUTS.map(({ name }) => [name, [] as number[]]))
  for (const name of readdirSync(folder)) {
    const text = readFileSync(join(folder, name), 'latin1')
    const [, size, input = ''] = /^desc: Trigger: Client Request: (\d+) (.*)$/m.exec(text) ?? []
    const [, total] = /^totals: (\d+)$/m.exec(text) ?? []
    const list = counts.get(input)
    if (size === undefined || total === undefined || list === undefined) continue
    const index = Math.log2(Number(size)) / 2
    list[index] = Math.min(list[index] ?? Infinity, Number(total))
  }
  return counts
}
