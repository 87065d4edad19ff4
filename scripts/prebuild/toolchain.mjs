/**
 * Toolchain for other platforms: zig as the linker, cargo-zigbuild, and Debian's rustc, which builds the standard library of
 * the target from its source. Where there is no Debian, a rustup that has the target serves.
 */

import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../steps.mjs'
import { unpack } from './debian.mjs'
import { DEBIAN, TOOLS, VENV, WORK } from './folders.mjs'

const PYTHON_PACKAGES = 'ziglang==0.15.2 cargo-zigbuild==0.24.0'
/** Folders of the C libraries of Debian's programs. */
const LIBRARIES = [join(DEBIAN, 'usr/lib/x86_64-linux-gnu'), join(DEBIAN, 'usr/lib')].join(':')

/** Returns the target as cargo-zigbuild takes it: with the glibc to link against. */
export function zigTargetOf({ target, glibc }) {
  return glibc === undefined ? target : `${target}.${glibc}`
}

/** Returns `{ env, flags }` for cargo, or `{ reason }`: one line that says what is missing. */
export async function toolchainFor({ target }) {
  const zig = await installZig()
  if (zig !== undefined) return { reason: zig }
  const path = `${join(VENV, 'bin')}:${process.env.PATH}`
  const reason = await unpack('rust')
  if (reason === undefined) {
    await wrapRust()
    const env = {
      ...process.env,
      PATH: `${TOOLS}:${path}`,
      RUSTC: join(TOOLS, 'rustc'),
      CARGO: join(TOOLS, 'cargo'),
      RUSTC_BOOTSTRAP: '1',
    }
    // Without the code that prints backtraces the addon is 60 kB smaller.
    return { env, flags: ['-Zbuild-std=std,panic_abort', '-Zbuild-std-features='] }
  }
  const { code, output } = await run('rustup target list --installed', { quiet: true })
  const isInstalled = code === 0 && output.split('\n').includes(target)
  return isInstalled ? { env: { ...process.env, PATH: path }, flags: [] } : { reason }
}

async function installZig() {
  if (existsSync(join(VENV, 'ready'))) return undefined
  mkdirSync(WORK, { recursive: true })
  console.log(`installing ${PYTHON_PACKAGES} …`)
  const line = `python3 -m venv '${VENV}' && '${VENV}/bin/pip' install --quiet --disable-pip-version-check ${PYTHON_PACKAGES}`
  const { code } = await run(line, { quiet: true })
  if (code !== 0) return `zig and cargo-zigbuild cannot be installed: python3 with venv and pip is needed`
  writeFileSync(join(VENV, 'ready'), '')
  return undefined
}

/** Debian's programs were unpacked, not installed: each needs to be told where its libraries are. */
async function wrapRust() {
  mkdirSync(TOOLS, { recursive: true })
  for (const name of ['cargo', 'rustc']) {
    write(
      name,
      `LD_LIBRARY_PATH=${LIBRARIES}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec ${join(DEBIAN, 'usr/bin', name)} "$@"`,
    )
  }
  // rustc strips Mach-O files with a program that only rustup has; without it they are larger.
  const { code, output } = await run('rustc +stable --print sysroot || rustc --print sysroot', { quiet: true })
  const objcopy = join(output.trim(), 'lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-objcopy')
  if (code === 0 && existsSync(objcopy))
    write('rust-objcopy', `LD_LIBRARY_PATH=${join(output.trim(), 'lib')} exec ${objcopy} "$@"`)
}

function write(name, line) {
  const path = join(TOOLS, name)
  writeFileSync(path, `#!/bin/sh\n${line}\n`)
  chmodSync(path, 0o755)
}
