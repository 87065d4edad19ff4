/**
 * Unpacks Debian packages into the cache: a rustc with the source of its standard library, qemu, wine, mingw, and C libraries
 * of other processors. Nothing is installed and no dpkg architecture is added. Needs apt-get, curl and dpkg-deb.
 */

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../steps.mjs'
import { DEBIAN, WORK } from './folders.mjs'

const FOREIGN = ['arm64', 'armhf']
const LIBRARIES = ['libc6', 'libstdc++6', 'libgcc-s1', 'libatomic1']
const CROSS = ['s390x', 'ppc64el', 'riscv64']
/** Packages by what they are for. Each set comes with what it depends on. */
const SETS = {
  rust: ['rustc-web', 'cargo-web', 'rust-web-src', 'binutils'],
  qemu: [
    'qemu-user-static',
    ...FOREIGN.flatMap((arch) => LIBRARIES.map((name) => `${name}:${arch}`)),
    ...CROSS.flatMap((arch) => LIBRARIES.map((name) => `${name}-${arch}-cross`)),
  ],
  wine: ['wine64', 'gcc-mingw-w64-x86-64-posix', 'libz-mingw-w64'],
}

/** Unpacks the sets that are missing. Returns undefined, or one line that says why a set cannot be had. */
export async function unpack(...sets) {
  for (const set of sets) {
    if (existsSync(markOf(set))) continue
    const reason = await unpackSet(set)
    if (reason !== undefined) return reason
    writeFileSync(markOf(set), '')
  }
  return undefined
}

function markOf(set) {
  return join(WORK, `${set}.unpacked`)
}

async function unpackSet(set) {
  const { code } = await run('command -v apt-get && command -v curl && command -v dpkg-deb', { quiet: true })
  if (code !== 0) return 'it needs a Debian with apt-get, curl and dpkg-deb'
  console.log(`unpacking Debian packages: ${SETS[set].join(' ')} …`)
  const apt = prepareApt()
  // A mirror in the middle of a sync fails an update now and then.
  let updated = 1
  for (let attempt = 0; attempt < 4 && updated !== 0; attempt += 1) {
    const result = await run(`apt-get ${apt} update -qq`, { quiet: true })
    updated = result.code
  }
  const listed = await run(`apt-get ${apt} install -y --no-install-recommends --print-uris ${SETS[set].join(' ')}`, {
    quiet: true,
  })
  const packages = [...listed.output.matchAll(/^'([^']+)' (\S+) /gm)].map(([, uri, file]) => ({ uri, file }))
  if (listed.code !== 0 || packages.length === 0) return `apt-get finds no packages for ${set}`
  for (const { uri, file } of packages) {
    const path = join(WORK, 'packages', file)
    const fetched = existsSync(path)
      ? { code: 0 }
      : await run(`curl -fsS --retry 5 -o '${path}.part' '${uri}' && mv '${path}.part' '${path}'`)
    const unpacked = fetched.code === 0 ? await run(`dpkg-deb -x '${path}' '${DEBIAN}'`, { quiet: true }) : fetched
    if (unpacked.code !== 0) return `${file} cannot be fetched or unpacked`
  }
  return undefined
}

/** Makes a state of apt's own, with the sources that this machine is set up with. Returns its options. */
function prepareApt() {
  const state = join(WORK, 'apt')
  for (const folder of [
    join(state, 'lists/partial'),
    join(state, 'archives/partial'),
    join(WORK, 'packages'),
    DEBIAN,
  ]) {
    mkdirSync(folder, { recursive: true })
  }
  const mirror = mirrorOfSystem()
  const key = '/usr/share/keyrings/debian-archive-keyring.gpg'
  const [, suite = 'bookworm'] = /VERSION_CODENAME=(\S+)/.exec(readFileSync('/etc/os-release', 'utf8')) ?? []
  const list = join(state, 'sources.list')
  writeFileSync(
    list,
    `deb [signed-by=${key}] ${mirror} ${suite} main\ndeb [arch=amd64 signed-by=${key}] ${mirror}-security ${suite}-security main\n`,
  )
  const options = {
    'Dir::State::lists': join(state, 'lists'),
    'Dir::Cache::archives': join(state, 'archives'),
    'Dir::Etc::sourcelist': list,
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::Cache::pkgcache': '',
    'Dir::Cache::srcpkgcache': '',
    'APT::Sandbox::User': 'root',
    'Debug::NoLocking': '1',
  }
  const architectures = ['amd64', ...FOREIGN].map((arch) => `-o APT::Architectures::=${arch}`)
  return [...Object.entries(options).map(([name, value]) => `-o ${name}=${value}`), ...architectures].join(' ')
}

/** Returns the mirror of this machine's own sources. */
export function mirrorOfSystem() {
  const folder = '/etc/apt/sources.list.d'
  const files = [
    '/etc/apt/sources.list',
    ...(existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []),
  ]
  const text = files
    .filter(existsSync)
    .map((path) => readFileSync(path, 'utf8'))
    .join('\n')
  const [mirror] = /https?:\/\/\S+\/debian(?=\/?\s)/.exec(text.replaceAll(/^#.*$/gm, '')) ?? ['']
  return mirror
}
