/**
 * `npm run prebuild -- [platforms]`: builds addons for other platforms on one Debian machine, into `artifacts`. Without
 * arguments all of them. Checks each: its size, that it names no folder of this machine, and the oldest glibc it runs with.
 */

import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { addonOf, platformNamed, PLATFORMS } from '../platforms.mjs'
import { isStarted, root, run } from '../steps.mjs'
import { faultsOf } from './checks.mjs'
import { ARTIFACTS, DEBIAN, WORK } from './folders.mjs'
import { toolchainFor, zigTargetOf } from './toolchain.mjs'

/** Name of the library that cargo builds, by system. */
const LIBRARY = { darwin: 'liboffloop_binding.dylib', win32: 'offloop_binding.dll' }

/** Builds an addon. Returns its path, or undefined where the tools are missing; throws if it cannot be built. */
export async function build(platform, { features = [], folder = ARTIFACTS } = {}) {
  const { env, flags, reason } = await toolchainFor(platform)
  if (reason !== undefined) {
    console.log(`left out: the addon for ${platform.name} (${reason})`)
    return undefined
  }
  console.log(`building ${addonOf(platform)} …`)
  const started = Date.now()
  const { target, os } = platform
  const targetFolder = join(WORK, 'target')
  const all = [...features, ...(os === 'win32' ? ['napi/dyn-symbols'] : [])]
  const line = [
    'cargo-zigbuild zigbuild --release --lib --locked',
    `--target ${zigTargetOf(platform)} --target-dir '${targetFolder}'`,
    all.length === 0 ? '' : `--features ${all.join(',')}`,
    ...flags,
  ].join(' ')
  const built = await run(line, { env: { ...env, ...settingsOf(platform) } })
  if (built.code !== 0) throw new Error(`the addon for ${platform.name} cannot be built: the lines above say why`)
  mkdirSync(folder, { recursive: true })
  const addon = join(folder, addonOf(platform))
  copyFileSync(join(targetFolder, target, 'release', LIBRARY[os] ?? 'liboffloop_binding.so'), addon)
  const seconds = Math.round((Date.now() - started) / 1000)
  console.log(`${addonOf(platform)}: ${statSync(addon).size} bytes, ${seconds} s`)
  return addon
}

/** Variables that rustc and the linker read. */
function settingsOf(platform) {
  const flags = pathsOf().map(([path, name]) => `--remap-path-prefix=${path}=${name}`)
  if (platform.libc === 'musl') flags.push('-Ctarget-feature=-crt-static')
  if (platform.os === 'darwin') flags.push(`-Clink-arg=-Wl,-install_name,@rpath/${addonOf(platform)}`)
  return {
    RUSTFLAGS: flags.join(' '),
    CARGO_TERM_COLOR: 'never',
    MACOSX_DEPLOYMENT_TARGET: '11.0',
    // napi-build asks for Node's import library, of which an addon with `dyn-symbols` imports nothing.
    LIBNODE_PATH: emptyLibnode(),
  }
}

/** Returns folders of this machine, and what an addon calls them. */
export function pathsOf() {
  const { CARGO_HOME = join(homedir(), '.cargo'), RUSTUP_HOME = join(homedir(), '.rustup') } = process.env
  return [
    [CARGO_HOME, '/cargo'],
    [RUSTUP_HOME, '/rustup'],
    [join(DEBIAN, 'usr'), '/usr'],
    [WORK, '/work'],
    [root.replace(/\/$/, ''), '/offloop'],
  ]
}

function emptyLibnode() {
  const folder = join(WORK, 'libnode')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'libnode.dll'), '')
  writeFileSync(join(folder, 'libnode.a'), '!<arch>\n')
  return folder
}

/** Builds one addon after the other. One that fails does not keep the others from being built. */
async function main(names) {
  const folders = pathsOf().map(([path]) => path)
  for (const platform of names.length === 0 ? PLATFORMS : names.map(platformNamed)) {
    for (const fault of await faultsOfBuild(platform, folders)) {
      console.error(`${addonOf(platform)}: ${fault}`)
      process.exitCode = 1
    }
  }
}

async function faultsOfBuild(platform, folders) {
  try {
    const addon = await build(platform)
    return addon === undefined ? [] : faultsOf(platform, readFileSync(addon), folders)
  } catch (error) {
    return [error.message]
  }
}

if (isStarted(import.meta)) await main(process.argv.slice(2))
