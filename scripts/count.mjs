/** The tests that the output of cargo test and ava tells of. */

/** Cargo's closing lines; of ava a line for each test that passed, as it sums those up only where none failed. */
const COUNTS = [
  /^test result: \w+\. (?<passed>\d+) passed; (?<failed>\d+) failed/,
  /^ {2}✔ (?<title>.)/,
  /^\s*(?<failed>\d+) (?:tests?|hooks?) failed$/,
  /^\s*(?<failed>\d+) (?:uncaught exceptions?|unhandled rejections?)$/,
]

/** Lines that tell of a failure: of ava, of cargo, of the checks of `house.mjs`, and the closing lines of `ready.mjs`. */
const FAILURES = /^\s*✘|^test .* FAILED$|^---- .* stdout ----$| panicked at |^failed:$|^error/
/** Lines behind such a line that say more. */
const CONTEXT = 4

/** Returns the lines that tell of failures: logs are cut, and their ends remain. */
export function failuresOf(output) {
  const lines = linesOf(output)
  const shown = new Set()
  for (const [index, line] of lines.entries()) {
    if (FAILURES.test(line)) for (let at = index; at <= index + CONTEXT; at += 1) shown.add(at)
    // Ava says what failed behind the titles, which end with a line.
    if (/^\s*─+$/.test(line) && !/^\s*\d+ tests? passed$/.test(lines[index + 2] ?? '')) {
      for (let at = index + 1; at <= index + DETAILS && !/tests? failed$/.test(lines[at] ?? ''); at += 1) shown.add(at)
    }
  }
  const inOrder = [...shown].toSorted((a, b) => a - b).flatMap((index) => lines[index] ?? [])
  return inOrder.filter((line) => !/^\s*✔/.test(line))
}

/** Most lines of ava's details. */
const DETAILS = 80

function linesOf(output) {
  // oxlint-disable-next-line no-control-regex -- an escape sequence begins with a control character
  return output.replaceAll(/\u001B\[[\d;]*m/g, '').split(/\r?\n/)
}

export function count(output) {
  const counted = { passed: 0, failed: 0 }
  for (const line of linesOf(output)) {
    const groups = COUNTS.map((pattern) => pattern.exec(line)?.groups).find((match) => match !== undefined)
    counted.passed += Number(groups?.passed ?? (groups?.title === undefined ? 0 : 1))
    counted.failed += Number(groups?.failed ?? 0)
  }
  return counted
}
