/**
 * Everything that proves the project, in this order: `npm run ready`. `npm test` is the part that tests; `.ci/run` calls
 * that, then the `rest`. Goes on after a failure, and says at the end what failed.
 */

import { env, run } from './steps.mjs'

const TESTS = {
  'cargo test': [
    'cargo test --quiet --no-fail-fast --workspace --exclude offloop-binding',
    // What takes too long without optimisation.
    'cargo test --quiet --no-fail-fast --release --package offloop-jsonl -- --ignored',
  ],
  ava: ['ava'],
}
const CHECKS = {
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
  build: ['npm run --silent build'],
  docs: ['typedoc'],
  publint: ['publint --strict'],
  'generated files are fresh': ['git diff --exit-code -- binding.js binding.d.ts Cargo.lock package-lock.json'],
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
