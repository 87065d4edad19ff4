/**
 * `node scripts/performance.mjs`: runs the benchmark of first and warm calls on every supported Node, and writes its tables
 * into docs/performance.md. On an idle machine only. `--nodes 24,26`: on those Nodes alone. `--quick`: few calls.
 *
 * The figures of each Node are kept in `target/json-calls`. A run of some values (OFFLOOP_BENCH_ONLY), sinks
 * (OFFLOOP_BENCH_SINKS) or heaps (OFFLOOP_BENCH_HEAPS) replaces those figures and leaves the others. `--fresh` forgets them.
 */

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { mergedReport, withCallTables } from './calls-table.mjs'
import { install, VERSIONS } from './node.mjs'
import { lineOf } from './runs.mjs'
import { env, root, run } from './steps.mjs'

const { values } = parseArgs({
  options: { nodes: { type: 'string' }, quick: { type: 'boolean' }, fresh: { type: 'boolean' } },
})
const majors = values.nodes?.split(',')
const folder = join(root, 'target/json-calls')
const document = join(root, 'docs/performance.md')
const benchEnv = values.quick ? { ...env, OFFLOOP_BENCH_QUICK: '1' } : env

if (values.fresh) rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
for (const version of VERSIONS) {
  if (majors === undefined || majors.includes(version.split('.')[0])) await measure(version)
}

/** Measures on one Node and writes the document at once: what fails later takes nothing of it away. */
async function measure(version) {
  const made = join(folder, 'latest.json')
  const { code } = await run(lineOf(install(version), 'json-calls', ['--report', `"${made}"`]), { env: benchEnv })
  if (code !== 0) {
    process.exitCode = code
    return
  }
  const kept = pathOf(version)
  const latest = read(made)
  writeFileSync(kept, JSON.stringify(existsSync(kept) ? mergedReport(read(kept), latest) : latest))
  const reports = VERSIONS.map(pathOf).filter(existsSync).map(read)
  writeFileSync(document, withCallTables(readFileSync(document, 'utf8'), reports))
  await run('oxfmt docs/performance.md', { env, quiet: true })
}

function pathOf(version) {
  return join(folder, `${version}.json`)
}

function read(path) {
  return JSON.parse(readFileSync(path, 'utf8'))
}
