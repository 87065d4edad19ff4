/**
 * Platforms that have a package with an addon. `npm-packages.mjs` writes the folders of `npm` from this table, `prebuild`
 * builds what it lists, and `stage.mjs` makes the packages optional dependencies.
 */

export const PACKAGE = '@offloop/binding'

/**
 * Each platform is `{ name, target, os, cpu, libc, glibc }`: the name as in Node's `process.platform` and `process.arch`,
 * Rust's target, npm's fields, and the oldest glibc that the addon runs on.
 */
export const PLATFORMS = [
  linux('linux-x64-gnu', 'x86_64-unknown-linux-gnu', { glibc: '2.17' }),
  linux('linux-arm64-gnu', 'aarch64-unknown-linux-gnu', { glibc: '2.17' }),
  linux('linux-x64-musl', 'x86_64-unknown-linux-musl'),
  linux('linux-arm64-musl', 'aarch64-unknown-linux-musl'),
  linux('linux-arm-gnueabihf', 'armv7-unknown-linux-gnueabihf', { glibc: '2.17' }),
  linux('linux-s390x-gnu', 's390x-unknown-linux-gnu', { glibc: '2.28' }),
  linux('linux-ppc64le-gnu', 'powerpc64le-unknown-linux-gnu', { glibc: '2.17', cpu: 'ppc64' }),
  linux('linux-riscv64-gnu', 'riscv64gc-unknown-linux-gnu', { glibc: '2.27' }),
  { name: 'darwin-arm64', target: 'aarch64-apple-darwin', os: 'darwin', cpu: 'arm64' },
  { name: 'darwin-x64', target: 'x86_64-apple-darwin', os: 'darwin', cpu: 'x64' },
  // Built with the universal CRT. Loaders ask for `msvc`, which stands for Windows.
  { name: 'win32-x64-msvc', target: 'x86_64-pc-windows-gnullvm', os: 'win32', cpu: 'x64' },
  { name: 'win32-arm64-msvc', target: 'aarch64-pc-windows-gnullvm', os: 'win32', cpu: 'arm64' },
  { name: 'freebsd-x64', target: 'x86_64-unknown-freebsd', os: 'freebsd', cpu: 'x64' },
]

function linux(name, target, { glibc, cpu = name.split('-')[1] } = {}) {
  return { name, target, os: 'linux', cpu, libc: glibc === undefined ? 'musl' : 'glibc', glibc }
}

/** Returns the platform of that name. */
export function platformNamed(name) {
  const found = PLATFORMS.find((platform) => platform.name === name)
  if (found !== undefined) return found
  throw new Error(`no platform '${name}'. Platforms: ${PLATFORMS.map((platform) => platform.name).join(', ')}`)
}

/** Name of a platform's addon file. */
export function addonOf({ name }) {
  return `offloop.${name}.node`
}
