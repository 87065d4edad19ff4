/**
 * What `npm start` and `npm test` need, made when it is missing or older than what it is made of.
 * With `--hooks` also the addon that has the test hooks, with `--browser` a browser for the tests of pages. Without dependencies; a second run takes well under a second.
 */

import { cpSync, existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { installBrowser } from './browser.mjs'
import { triple } from './machine.mjs'
import { env, root, run } from './steps.mjs'

const OLDEST_RUST = [1, 88]
const ADDON_SOURCES = ['Cargo.toml', 'Cargo.lock', 'build.rs', 'crates', 'package.json']
const DIST_SOURCES = ['src', 'scripts/dist.mjs', 'tsconfig.json', 'tsconfig.build.json', 'binding.d.ts', 'package.json']
const LIBRARY =
  { darwin: 'liboffloop_binding.dylib', win32: 'offloop_binding.dll' }[process.platform] ?? 'liboffloop_binding.so'

const HOOKS = 'target/hooks/offloop.hooks.node'

// The name the loader looks for first.
const isAddonOld = isOlder(`offloop.${triple()}.node`, ADDON_SOURCES)
const areHooksOld = process.argv.includes('--hooks') && isOlder(HOOKS, ADDON_SOURCES)
// Before anything is installed.
if (isAddonOld || areHooksOld) await checkTools()
if (isOlder('node_modules/.package-lock.json', ['package-lock.json']))
  await make('installing packages', 'npm ci --include=dev --no-audit --no-fund')
if (isAddonOld) await make('building the addon', 'npm run --silent build:addon')
if (isOlder('dist/index.js', DIST_SOURCES)) await make('building dist', 'npm run --silent build:dist')
if (areHooksOld) await makeHooks()
if (process.argv.includes('--browser')) installBrowser()

async function makeHooks() {
  await make(
    'building the addon with test hooks',
    'cargo build --quiet --profile hooks --features test-hooks --target-dir target',
  )
  cpSync(join(root, 'target/hooks', LIBRARY), join(root, HOOKS))
}

async function make(what, line) {
  console.log(`${what} …`)
  const { code } = await run(line, { env })
  if (code !== 0) giveUp(`${what} failed: the lines above say why.`)
}

async function checkTools() {
  for (const tool of ['rustc', 'cargo']) await checkRust(tool)
  if (process.platform === 'win32') return
  const { code } = await run('cc --version', { quiet: true })
  if (code !== 0)
    giveUp('A C linker is missing: install gcc or clang (Debian: build-essential; macOS: xcode-select --install).')
}

async function checkRust(tool) {
  const { code, output } = await run(`${tool} --version`, { quiet: true })
  const wanted = OLDEST_RUST.join('.')
  const [, major, minor] = /^\w+ (\d+)\.(\d+)/.exec(output)?.map(Number) ?? []
  if (code !== 0 || major === undefined)
    giveUp(`Rust's ${tool} is missing: install Rust ${wanted} or newer with rustup (rustup.rs).`)
  if (major < OLDEST_RUST[0] || (major === OLDEST_RUST[0] && minor < OLDEST_RUST[1]))
    giveUp(`Rust's ${tool} ${major}.${minor} is too old: install Rust ${wanted} or newer (rustup update stable).`)
}

/** Missing, or older than the newest of its sources. */
function isOlder(target, sources) {
  const path = join(root, target)
  return !existsSync(path) || statSync(path).mtimeMs < Math.max(...sources.map((source) => newest(join(root, source))))
}

/** A folder is as new as the last file that came to it or went. */
function newest(path) {
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.mtimeMs
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))))
}

function giveUp(sentence) {
  console.error(sentence)
  process.exit(1)
}
