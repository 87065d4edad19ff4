/**
 * `npm run bench -- base64`, `-- json`, `-- options`, `-- msgpack`, `-- body`, `-- experts`, `-- jsonl`, `-- memory`, `-- kit` or `-- clients`: a benchmark on this Node; with `--nodes` on Node 20, 24 and 26. `-- kernels`: cargo's.
 * `-- json --quick`, `-- base64 --quick`, `-- clients --quick`: few rounds, printed only.
 */

import { writeFileSync } from 'node:fs'
import { origin } from './machine.mjs'
import { install } from './node.mjs'
import { env, root, run } from './steps.mjs'

const [noun = 'base64', ...flags] = process.argv.slice(2)
if (noun === 'kernels') await kernels()
else
  for (const node of flags.includes('--nodes') ? ['20.20.2', '24.21.0', '26.10.0'].map(install) : [process.execPath])
    await measure(node)

async function measure(node) {
  const quick = flags.includes('--quick') ? { OFFLOOP_BENCH_QUICK: '1' } : {}
  const { code } = await run(`"${node}" --expose-gc --import @oxc-node/core/register benchmark/${noun}.ts`, {
    env: { ...env, ...quick },
  })
  if (code !== 0) process.exit(code)
}

async function kernels() {
  const { code, output } = await run('cargo bench --quiet --package offloop-base64 --bench base64', { env })
  if (code !== 0) process.exit(code)
  const { output: rust } = await run('rustc --version', { quiet: true })
  const results = output.slice(output.indexOf('1024 characters'))
  writeFileSync(`${root}benchmark/results/base64-kernels.txt`, `${origin(rust.trim())}\n\n${results}`)
}
