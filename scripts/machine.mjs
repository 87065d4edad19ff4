/** What a benchmark's results are of. */

import { execFileSync } from 'node:child_process'
import { cpus, totalmem } from 'node:os'

/** The day, what was measured (a version) and the commit; and the machine. Two lines. */
export function origin(what) {
  const [processor] = cpus()
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`
  const machine = [processor?.model.trim(), `${cpus().length} cores`, memory, `${process.platform} ${process.arch}`]
  return `${new Date().toISOString().slice(0, 10)}, ${what}, ${revision()}\n${machine.join(', ')}`
}

function revision() {
  try {
    return `commit ${execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()}`
  } catch {
    return 'no commit'
  }
}
