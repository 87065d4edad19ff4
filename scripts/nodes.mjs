/**
 * The ava suite on every supported Node. `--others` leaves out the major that runs this. Random values are fewer on the
 * others: what they find is mostly ours, not the engine's, and this one looks for all of it. So are the faults of disks.
 */

import { install, VERSIONS } from './node.mjs'
import { env, run } from './steps.mjs'

/** A quarter. */
const OTHERS = { OFFLOOP_FUZZ: '50000', OFFLOOP_TESTS: 'full', ...env }
const SPECS = '"__test__/*.spec.ts" "__test__/clients/*.spec.ts"'

const here = process.versions.node.split('.')[0]

for (const version of VERSIONS) {
  const isHere = version.split('.')[0] === here
  if (isHere && process.argv.includes('--others')) continue
  console.log(`\n── ava on Node ${version}`)
  const node = isHere ? process.execPath : install(version)
  const { code } = await run(`"${node}" node_modules/ava/entrypoints/cli.mjs${isHere ? '' : ` ${SPECS}`}`, {
    env: isHere ? env : OTHERS,
  })
  if (code !== 0) process.exitCode = 1
}
