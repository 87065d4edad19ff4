/** The tests that the output of cargo test and ava tells of. */

/** Cargo's closing lines; of ava a line for each test that passed, as it sums those up only where none failed. */
const COUNTS = [
  /^test result: \w+\. (?<passed>\d+) passed; (?<failed>\d+) failed/,
  /^ {2}✔ (?<title>.)/,
  /^\s*(?<failed>\d+) (?:tests?|hooks?) failed$/,
  /^\s*(?<failed>\d+) (?:uncaught exceptions?|unhandled rejections?)$/,
]

export function count(output) {
  const counted = { passed: 0, failed: 0 }
  // oxlint-disable-next-line no-control-regex -- an escape sequence begins with a control character
  for (const line of output.replaceAll(/\u001B\[[\d;]*m/g, '').split(/\r?\n/)) {
    const groups = COUNTS.map((pattern) => pattern.exec(line)?.groups).find((match) => match !== undefined)
    counted.passed += Number(groups?.passed ?? (groups?.title === undefined ? 0 : 1))
    counted.failed += Number(groups?.failed ?? 0)
  }
  return counted
}
