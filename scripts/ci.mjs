/** What `.ci/run` does: `npm test`, the rest of `ready`, the other Nodes; then one line with the sums of all tests. */

import { run } from './steps.mjs'

const PARTS = [
  'npm test',
  'node scripts/ready.mjs rest',
  'npm run --silent test:nodes -- --others',
  'npm run --silent test:arm64',
]
/** The closing lines of cargo test and ava. */
const COUNTS = [
  /^test result: \w+\. (?<passed>\d+) passed; (?<failed>\d+) failed/,
  /^\s*(?<passed>\d+) tests? passed$/,
  /^\s*(?<failed>\d+) (?:tests?|known failures?|hooks?|uncaught exceptions?|unhandled rejections?) failed$/,
  /^\s*(?<failed>\d+) (?:uncaught exceptions?|unhandled rejections?)$/,
]

const sums = { passed: 0, failed: 0 }
for (const part of PARTS) {
  console.log(`\n═══ ${part}`)
  const { code, output } = await run(part)
  const counted = count(output)
  sums.passed += counted.passed
  // A part that fails without a failed test, a lint for one, counts as one.
  sums.failed += Math.max(counted.failed, code === 0 ? 0 : 1)
}
console.log(`\n${sums.passed} passed, ${sums.failed} failed`)
process.exitCode = sums.failed === 0 && sums.passed > 0 ? 0 : 1

function count(output) {
  const counted = { passed: 0, failed: 0 }
  // oxlint-disable-next-line no-control-regex
  for (const line of output.replaceAll(/\u001B\[[\d;]*m/g, '').split(/\r?\n/)) {
    const groups = COUNTS.map((pattern) => pattern.exec(line)?.groups).find((match) => match !== undefined)
    counted.passed += Number(groups?.passed ?? 0)
    counted.failed += Number(groups?.failed ?? 0)
  }
  return counted
}
