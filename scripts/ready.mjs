/**
 * Checks and short tests: `npm run ready`. `npm test` runs the tests alone, two minutes once everything is built. `.ci/run`
 * runs these, then `test:full`. A failure stops nothing; the end says what failed.
 */

import { env, run } from './steps.mjs'

/** Specs that mostly start processes. `npm run test:full` runs them, with faults and counted steps. */
const LONG = ['checkpoint', 'crash', 'http-servers', 'interop', 'pool', 'setup', 'step']
const SPECS = [
  '"__test__/*.spec.ts"',
  '"__test__/clients/*.spec.ts"',
  ...LONG.map((name) => `"!__test__/${name}.spec.ts"`),
].join(' ')
const TESTS = {
  'cargo test': ['cargo test --quiet --no-fail-fast --workspace --exclude offloop-binding'],
  ava: [`ava ${SPECS}`],
}
const CHECKS = {
  house: ['node scripts/house.mjs'],
  format: ['oxfmt --check', 'cargo fmt --all --check'],
  lint: ['oxlint'],
  types: ['tsc'],
  clippy: [
    'cargo clippy --quiet --workspace -- -D warnings',
    'cargo clippy --quiet --workspace --features test-hooks -- -D warnings',
    'cargo clippy --quiet --workspace --exclude offloop-binding --all-targets -- -D warnings',
  ],
}
const PACKAGE = {
  build: ['npm run --silent build:all'],
  docs: ['typedoc'],
  publint: ['publint --strict'],
  'generated files are fresh': ['git diff --exit-code -- binding.d.ts Cargo.lock package-lock.json'],
}
const PARTS = {
  all: { ...CHECKS, build: PACKAGE.build, ...TESTS, ...PACKAGE },
  test: TESTS,
  rest: { ...CHECKS, ...PACKAGE },
}

const failed = []
for (const [name, lines] of Object.entries(PARTS[process.argv[2] ?? 'all'])) {
  console.log(`\n── ${name}`)
  for (const line of lines) {
    const { code } = await run(line, { env })
    if (code !== 0) failed.push(`${name}: ${line}`)
  }
}
if (failed.length !== 0) {
  console.error(`\nfailed:\n${failed.join('\n')}`)
  process.exitCode = 1
}
