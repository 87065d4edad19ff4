/** What `.ci/run` does: set up, `npm test`, the rest of `ready`, `npm run test:full`; then one line with the sums of all tests. */

import { count, failuresOf } from './count.mjs'
import { run } from './steps.mjs'

const PARTS = [
  'node scripts/setup.mjs --hooks --browser',
  'npm test',
  'node scripts/ready.mjs rest',
  'npm run --silent test:full',
]

const sums = { passed: 0, failed: 0 }
const failures = []
for (const part of PARTS) {
  console.log(`\n═══ ${part}`)
  const { code, output } = await run(part, { env: { ...process.env, OFFLOOP_CI: '1' } })
  const counted = count(output)
  sums.passed += counted.passed
  // A part that fails without a failed test, a lint for one, counts as one.
  sums.failed += Math.max(counted.failed, code === 0 ? 0 : 1)
  if (code !== 0) failures.push(`\n═══ failures of ${part}`, ...failuresOf(output))
}
// At the end, as logs lose their middle.
for (const line of failures) console.log(line)
console.log(`\n${sums.passed} passed, ${sums.failed} failed`)
process.exitCode = sums.failed === 0 && sums.passed > 0 ? 0 : 1
