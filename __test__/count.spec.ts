import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import { count, failuresOf } from '../scripts/count.mjs'

const modules = fileURLToPath(new URL('../node_modules', import.meta.url))

/** What ava prints of such test files. */
function outputOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'offloop-count-'))
  try {
    symlinkSync(modules, join(folder, 'node_modules'), 'junction')
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    for (const [name, code] of Object.entries(files))
      writeFileSync(join(folder, `${name}.test.js`), `import test from 'ava'\n${code}`)
    const argv = [join(modules, 'ava/entrypoints/cli.mjs')]
    const { stdout, stderr } = spawnSync(process.execPath, argv, { cwd: folder, encoding: 'utf8' })
    return stdout + stderr
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const PASSING = "test('one', (t) => t.pass())\ntest('two', (t) => t.pass())\n"

test('ava’s tests are counted whether others fail or not', (t) => {
  t.deepEqual(count(outputOf({ a: PASSING })), { passed: 2, failed: 0 })
  const failing = `${PASSING}test('three', (t) => t.fail())\ntest('four', (t) => t.fail())\n`
  t.deepEqual(count(outputOf({ a: failing, b: PASSING })), { passed: 4, failed: 2 })
  t.deepEqual(count(outputOf({ a: `${PASSING}test.after(() => { throw new Error('mine') })` })), {
    passed: 2,
    failed: 1,
  })
  const throwing = "test('five', (t) => { t.pass(); setTimeout(() => { throw new Error('mine') }) })"
  t.is(
    count(outputOf({ a: `${throwing}\ntest('six', () => new Promise((end) => setTimeout(end, 60_000)))` })).failed,
    1,
  )
})

test('cargo’s are, of each binary', (t) => {
  const lines = [
    'running 13 tests',
    'test result: ok. 13 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.26s',
    'test result: \u001B[31mFAILED\u001B[0m. 11 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.6s',
  ]
  t.deepEqual(count(lines.join('\n')), { passed: 24, failed: 2 })
})

test('what failed is shown again, with its reasons', (t) => {
  const failing = `${PASSING}test('three', (t) => t.is(1, 2))\n`
  const shown = failuresOf(outputOf({ a: failing, b: PASSING })).join('\n')
  t.regex(shown, /✘.*three/)
  t.regex(shown, /a\.test\.js:4/)
  t.notRegex(shown, /✔ .*one/)
  t.deepEqual(failuresOf(outputOf({ a: PASSING })), [])
  t.deepEqual(failuresOf('test a ... ok\ntest b ... FAILED'), ['test b ... FAILED'])
})
