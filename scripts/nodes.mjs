/**
 * The ava suite on every supported Node: the npm package `node`, in a cache folder outside the project.
 * `--others` leaves out the major that runs this.
 */

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache.mjs'
import { env, run } from './steps.mjs'

const VERSIONS = ['20.20.2', '22.23.3', '24.21.0', '26.10.0']

let failed = 0
for (const version of VERSIONS) {
  const isThis = version.split('.')[0] === process.versions.node.split('.')[0]
  if (isThis && process.argv.includes('--others')) continue
  console.log(`\n── ava on Node ${version}`)
  const node = isThis ? process.execPath : install(version)
  const { code } = await run(`"${node}" node_modules/ava/entrypoints/cli.mjs`, { env })
  if (code !== 0) failed += 1
}
process.exitCode = failed === 0 ? 0 : 1

/** The path of that Node's executable. */
export function install(version) {
  const folder = cacheFolder(`node-${version}`)
  const name = process.platform === 'win32' ? 'node.exe' : 'node'
  const executable = join(folder, 'node_modules/node/bin', name)
  if (existsSync(executable)) return executable
  console.log(`installing Node ${version} …`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const options = ['--no-audit', '--no-fund', '--ignore-scripts=false']
  execFileSync(npm, ['install', ...options, `node@${version}`], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  return executable
}
