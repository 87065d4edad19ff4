/**
 * `npm run prebuild:test -- [platforms]`: loads each addon of `artifacts` in a real Node of its platform and runs the smoke test,
 * once as it is published and once with test hooks, whose panics must be caught. On s390x, whose byte order is another,
 * also the tests of the crates. Platforms that this machine cannot run are left out with one line.
 */

import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { addonOf, platformNamed, PLATFORMS } from '../platforms.mjs'
import { root, run } from '../steps.mjs'
import { build } from './build.mjs'
import { ARTIFACTS, WORK } from './folders.mjs'
import { cross, qemu, runtimeOf } from './runtimes.mjs'
import { toolchainFor, zigTargetOf } from './toolchain.mjs'

const SMOKE = join(root, 'scripts/smoke/smoke.mjs')
const ENTRY = join(root, 'dist/index.js')
const HOOKS = join(WORK, 'hooks')
const BIG_ENDIAN = 'linux-s390x-gnu'

/** `--short` leaves out the addons with test hooks, which have to be built. */
const isShort = process.argv.includes('--short')
const names = process.argv.slice(2).filter((name) => name !== '--short')
for (const platform of names.length === 0 ? PLATFORMS : names.map(platformNamed)) await test(platform)

async function test(platform) {
  const addon = join(ARTIFACTS, addonOf(platform))
  if (!existsSync(addon)) return leaveOut(platform, `${addonOf(platform)} is not in artifacts`)
  const runtime = await runtimeOf(platform)
  if (runtime.reason !== undefined) return leaveOut(platform, runtime.reason)
  for (const line of runtime.lines) await smoke(platform, runtime, line, { OFFLOOP_ADDON: addon })
  const withHooks = isShort ? undefined : await build(platform, { features: ['test-hooks'], folder: HOOKS })
  if (withHooks !== undefined) {
    await smoke(platform, runtime, runtime.lines.at(-1), { OFFLOOP_ADDON: withHooks, OFFLOOP_SMOKE_HOOKS: '1' })
  }
  if (platform.name === BIG_ENDIAN) await testCrates(platform)
}

function leaveOut({ name }, reason) {
  console.log(`left out: ${name} (${reason})`)
}

async function smoke({ name }, { isSlow = false, isWine = false }, line, settings) {
  const out = join(WORK, 'smoke.txt')
  rmSync(out, { force: true })
  const path = (file) => (isWine ? `Z:${file}` : file)
  const env = {
    ...process.env,
    ...settings,
    OFFLOOP_ADDON: path(settings.OFFLOOP_ADDON),
    OFFLOOP_SMOKE_OUT: path(out),
    ...(isSlow ? { OFFLOOP_SMOKE_BYTES: '400000' } : {}),
  }
  const { code, output } = await run(`${line} '${path(SMOKE)}' '${path(ENTRY)}'`, { env, quiet: true })
  const lines = existsSync(out) ? readFileSync(out, 'utf8').trimEnd().split('\n') : []
  const last = lines.at(-1) ?? ''
  console.log(`${name}: ${last || `no result, exit code ${code}`}`)
  if (last.startsWith('SMOKE OK')) return
  process.exitCode = 1
  for (const failed of lines.filter((text) => !text.startsWith('ok'))) console.error(failed)
  console.error(output.slice(-4000))
}

/** Runs the tests of the crates under qemu. */
async function testCrates(platform) {
  const { env, flags, reason } = await toolchainFor(platform)
  if (reason !== undefined) return leaveOut(platform, reason)
  const runner = `${qemu('s390x')} -L ${cross('s390x-linux-gnu')}`
  const standard = flags.length === 0 ? '' : '-Zbuild-std=std,panic_abort,test'
  const { code } = await run(
    `cargo-zigbuild test --quiet --locked --tests --no-fail-fast --workspace --exclude offloop-binding --target ${zigTargetOf(platform)} --target-dir '${join(WORK, 'target-tests')}' ${standard}`,
    { env: { ...env, CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER: runner, PROPTEST_CASES: '32' } },
  )
  if (code !== 0) process.exitCode = 1
}
