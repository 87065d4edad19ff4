/**
 * Runs test262's tests of JSON.stringify with `encodeSync` in its place. `TEST262` names the folder of a checkout; where
 * it is not set, nothing runs. `docs/conformance.md` has the counts.
 */

import { join } from 'node:path'
import test from 'ava'
import { runScenario } from './fixtures/child.ts'
import { missingFeatures, NOT_APPLICABLE, readTests, type ConformanceTest, type Mode } from './fixtures/test262.ts'

const folder = process.env['TEST262'] ?? ''
const tests = folder === '' ? [] : readTests(folder)
const counts = { passed: 0, failed: 0, skipped: 0, 'not applicable': 0 }

if (folder === '') {
  test.skip('test262 is not run: TEST262 does not name the folder of a checkout', (t) => t.fail())
}

for (const one of tests) {
  const { name, modes } = one
  const reason = NOT_APPLICABLE[name]
  const missing = missingFeatures(one)
  if (reason !== undefined) {
    counts['not applicable'] += 1
    test.skip(`${name} is not applicable: it ${reason}`, (t) => t.fail())
  } else if (missing.length !== 0) {
    counts.skipped += 1
    test.skip(`${name} is skipped: this Node lacks ${missing.join(', ')}`, (t) => t.fail())
  } else {
    test.serial(name, async (t) => {
      counts.failed += 1
      for (const failure of await Promise.all(modes.map((mode) => failureOf(one, mode)))) t.is(failure, undefined)
      counts.failed -= 1
      counts.passed += 1
    })
  }
}

if (folder !== '') {
  test('every test that is not applicable exists', (t) => {
    const names = new Set(tests.map(({ name }) => name))
    t.deepEqual(
      Object.keys(NOT_APPLICABLE).filter((name) => !names.has(name)),
      [],
    )
  })

  test.after.always('counts', () => {
    const shown = Object.entries(counts).map(([what, count]) => `${count} ${what}`)
    console.log(`test262 on Node ${process.versions.node}: ${tests.length} tests, ${shown.join(', ')}`)
  })
}

/** Returns how a test fails in a mode; undefined if it passes. */
async function failureOf({ path, includes }: ConformanceTest, mode: Mode): Promise<string | undefined> {
  const files = [...new Set(includes)].map((include) => join(folder, 'harness', include))
  const variables = { TEST262_FILES: [...files, path].join('\n'), TEST262_MODE: mode }
  const { stdout, stderr } = await runScenario('test262', 'run', variables)
  return stdout === 'played\n' ? undefined : `${mode}: ${stderr}`
}
