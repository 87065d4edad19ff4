/** Tools from npm's registry, in cache folders. `install.mjs` and `tools.mjs` call it. */

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache.mjs'
import { run } from './steps.mjs'

/**
 * Installs packages, `{ name: version }`, into a cache folder unless they are there. Returns the folder; undefined, after one
 * line that says why, where they cannot be had.
 */
export async function installPackages(name, packages, { overrides = {}, env = process.env } = {}) {
  const folder = cacheFolder(name)
  const isReady = join(folder, 'ready')
  if (existsSync(isReady)) return folder
  const specs = Object.entries(packages).map(([of, version]) => `${of}@${version}`)
  console.log(`installing ${specs.join(' ')} …`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ private: true, overrides })}\n`)
  const line = `cd '${folder}' && npm install --no-audit --no-fund --silent ${specs.join(' ')}`
  const { code, output } = await run(line, { quiet: true, env })
  if (code !== 0) {
    console.log(`left out: ${name} (its packages cannot be had: ${output.trim().split('\n').at(-1)})`)
    return undefined
  }
  writeFileSync(isReady, '')
  return folder
}
