/**
 * `npm run test:full`: all tests at full length on this Node, with faults of disks and counted steps; the other Nodes; arm64;
 * addons of other platforms.
 * `npm test` is the short form. A failure stops nothing; the exit code tells of it.
 */

import { env, run } from './steps.mjs'

const full = { ...env, OFFLOOP_TESTS: 'full' }
const PARTS = {
  // Too long without optimisation.
  'cargo test, long': 'cargo test --quiet --no-fail-fast --release --package offloop-jsonl -- --ignored',
  ava: 'ava',
  'other Nodes': 'node scripts/nodes.mjs --others',
  arm64: 'node scripts/arm64.mjs',
  'addons of other platforms': 'node scripts/prebuild/turn.mjs',
}

for (const [name, line] of Object.entries(PARTS)) {
  console.log(`\n── ${name}`)
  const { code } = await run(line, { env: full })
  if (code !== 0) process.exitCode = 1
}
