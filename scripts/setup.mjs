/**
 * What `npm start` and `npm test` need, made when it is missing or older than what it is made of.
 * With `--hooks` also the addon that has the test hooks. Without dependencies; a second run takes well under a second.
 */

import { cpSync, existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { env, root, run } from './steps.mjs'

const OLDEST_RUST = [1, 88]
const ADDON_SOURCES = ['Cargo.toml', 'Cargo.lock', 'build.rs', 'crates', 'package.json']
const DIST_SOURCES = ['src', 'tsconfig.json', 'tsconfig.build.json', 'binding.d.ts', 'package.json']
const LIBRARY =
  { darwin: 'liboffloop_binding.dylib', win32: 'offloop_binding.dll' }[process.platform] ?? 'liboffloop_binding.so'

checkNode()
if (isOlder('node_modules/.package-lock.json', ['package-lock.json']))
  await make('installing packages', 'npm ci --include=dev --no-audit --no-fund')
if (isOlder(addonName(), ADDON_SOURCES)) {
  await checkRust()
  await make('building the addon', 'npm run --silent build:addon')
}
if (isOlder('dist/index.js', DIST_SOURCES)) await make('building dist', 'npm run --silent build:dist')
if (process.argv.includes('--hooks')) await makeHooks()

async function makeHooks() {
  const target = 'target/hooks/offloop.hooks.node'
  if (!isOlder(target, ADDON_SOURCES)) return
  await checkRust()
  await make(
    'building the addon with test hooks',
    'cargo build --quiet --profile hooks --features test-hooks --target-dir target',
  )
  cpSync(join(root, 'target/hooks', LIBRARY), join(root, target))
}

async function make(what, line) {
  console.log(`${what} …`)
  const { code } = await run(line, { env })
  if (code !== 0) giveUp(`${what} failed: the lines above say why.`)
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  const isKnown = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22
  if (!isKnown) giveUp(`Node ${process.versions.node} is too old: install Node 20.19, 22.12 or newer.`)
}

async function checkRust() {
  const rust = await run('rustc --version', { quiet: true })
  const found = /^rustc (\d+)\.(\d+)/.exec(rust.output)
  const wanted = OLDEST_RUST.join('.')
  if (rust.code !== 0 || found === null)
    giveUp(`Rust is missing: install Rust ${wanted} or newer with rustup (rustup.rs).`)
  const [major, minor] = found.slice(1).map(Number)
  if (major < OLDEST_RUST[0] || (major === OLDEST_RUST[0] && minor < OLDEST_RUST[1])) {
    giveUp(`Rust ${major}.${minor} is too old: install ${wanted} or newer (rustup update stable).`)
  }
  if (process.platform === 'win32') return
  const linker = await run('cc --version', { quiet: true })
  if (linker.code !== 0)
    giveUp('A C linker is missing: install gcc or clang (Debian: build-essential; macOS: xcode-select --install).')
}

/** The name the loader looks for first. */
function addonName() {
  const { platform, arch } = process
  const isMusl = platform === 'linux' && process.report.getReport().header.glibcVersionRuntime === undefined
  const abi = { linux: isMusl ? '-musl' : '-gnu', win32: '-msvc' }[platform] ?? ''
  return `offloop.${platform}-${arch}${abi}.node`
}

/** Missing, or older than the newest of its sources. */
function isOlder(target, sources) {
  const path = join(root, target)
  return !existsSync(path) || statSync(path).mtimeMs < Math.max(...sources.map((source) => newest(join(root, source))))
}

function newest(path) {
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.mtimeMs
  return Math.max(0, ...readdirSync(path).map((name) => newest(join(path, name))))
}

function giveUp(sentence) {
  console.error(sentence)
  process.exit(1)
}
