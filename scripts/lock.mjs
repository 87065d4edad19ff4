/**
 * Run after `npm install` has changed package-lock.json: adds the optional packages of other platforms that npm left out
 * because the registry at hand does not hold them (yet). Without them `npm ci` calls the lockfile out of sync, everywhere.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './steps.mjs'

const SYSTEMS = new Set(['aix', 'android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32'])
const PROCESSORS = {
  arm64: 'arm64',
  arm: 'arm',
  x64: 'x64',
  x86_64: 'x64',
  ia32: 'ia32',
  riscv64: 'riscv64',
  ppc64le: 'ppc64',
  ppc64: 'ppc64',
  s390x: 's390x',
  loong64: 'loong64',
  wasm32: 'wasm32',
}

const path = join(root, 'package-lock.json')
const lock = JSON.parse(readFileSync(path, 'utf8'))
for (const { dev, optionalDependencies = {} } of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    const platform = platformOf(name)
    if (lock.packages[`node_modules/${name}`] !== undefined || platform === undefined || !/^\d/.test(version)) continue
    console.log(`added ${name}@${version}`)
    lock.packages[`node_modules/${name}`] = { version, ...platform, ...(dev === true && { dev }), optional: true }
  }
}
const sorted = Object.entries(lock.packages).toSorted(([a], [b]) => a.localeCompare(b, 'en'))
lock.packages = Object.fromEntries(sorted)
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`)

/** What a package is for, from its name: `@scope/name-linux-arm64-gnu`. Undefined where the name does not say. */
function platformOf(name) {
  const words = name.split(/[-/]/)
  const os = words.find((word) => SYSTEMS.has(word))
  const cpu = PROCESSORS[words.find((word) => word in PROCESSORS)]
  if (cpu === undefined) return undefined
  return { cpu: [cpu], ...(os !== undefined && { os: [os] }) }
}
