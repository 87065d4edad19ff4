/**
 * `npm run bench`: every benchmark in turn, kept in `benchmark/results/<triple>/<date>.md`. `npm run bench -- json body`:
 * those alone. With `--nodes` on Node 20, 24 and 26, on which `step` always runs, with 0, 256 and 1024 MB of live objects.
 * With `--quick` few rounds, printed only. `-- kernels`, `-- simd-json`, `-- fields`: benchmarks of crates, by cargo.
 */

import { join } from 'node:path'
import { day, machine, revision, triple } from './machine.mjs'
import { install } from './node.mjs'
import { keep } from './results.mjs'
import { lineOf, runsOf } from './runs.mjs'
import { env, root, run } from './steps.mjs'

const NOUNS = [
  'base64',
  'json',
  'json-calls',
  'options',
  'msgpack',
  'body',
  'events',
  'experts',
  'jsonl',
  'clients',
  'memory',
  'kit',
  'gc',
  'step',
]

/** Benchmarks of crates. */
const CARGO_BENCHES = {
  kernels: '--package offloop-base64 --bench base64',
  'simd-json': '--package offloop-json --bench simd_json',
  fields: '--package offloop-jsonl --bench fields',
}

const args = process.argv.slice(2)
const named = args.filter((arg) => !arg.startsWith('--'))
const isQuick = args.includes('--quick')
const areAllNodes = args.includes('--nodes')
/** Not of all of a benchmark. */
const isPart = isQuick || process.env.OFFLOOP_BENCH_ONLY !== undefined
for (const noun of named.length === 0 ? NOUNS : named) {
  if (Object.hasOwn(CARGO_BENCHES, noun)) await measure(noun, 'rustc', `cargo bench --quiet ${CARGO_BENCHES[noun]}`)
  else await measureRuns(noun)
}

async function measureRuns(noun) {
  for (const { version, args: own, label } of runsOf(noun, { isQuick, areAllNodes })) {
    const node = version === undefined ? process.execPath : install(version)
    await measure(noun, `"${node}"`, lineOf(node, noun, own), label)
  }
}

/** Kept at once: what fails later, or is stopped, takes nothing of it away. */
async function measure(noun, program, line, label = '') {
  const { code, output } = await run(line, { env: isQuick ? { ...env, OFFLOOP_BENCH_QUICK: '1' } : env })
  if (code !== 0) process.exitCode = code
  if (isPart) return
  const { output: version } = await run(`${program} --version`, { quiet: true, env })
  const isCargo = Object.hasOwn(CARGO_BENCHES, noun)
  const node = isCargo ? version.trim() : `Node ${version.trim()}${label}`
  const report = isCargo ? `\`\`\`\n${output.trim()}\n\`\`\`` : output
  const section = { noun, node, commit: revision(), machine: machine(), code, output: report }
  keep(join(root, 'benchmark/results', triple()), day(), [section])
}
