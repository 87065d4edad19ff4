/**
 * The pure crates' tests on arm64, under qemu: what covers the NEON kernels on another machine. Needs a cross linker, qemu
 * and a rustc with the source of its std (Debian has all of them); says so in one line where they are missing.
 */

import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from './steps.mjs'

const TARGET = 'aarch64-unknown-linux-gnu'
const TOOLS = ['/usr/bin/rustc', '/usr/bin/cargo', 'aarch64-linux-gnu-gcc', 'qemu-aarch64-static']
const PACKAGES = 'rustc-web cargo-web rust-web-src gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static'
const STD_SOURCE = 'test -d "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library/std"'

const { code } = await run([...TOOLS.map((tool) => `command -v ${tool}`), STD_SOURCE].join(' && '), { quiet: true })
if (code === 0) await test()
else console.log(`left out: tests on arm64 (Debian: apt-get install ${PACKAGES})`)

async function test() {
  const env = {
    ...process.env,
    // Cargo calls what stands beside it, rustdoc among others.
    PATH: `/usr/bin:${process.env.PATH}`,
    RUSTC: '/usr/bin/rustc',
    RUSTC_BOOTSTRAP: '1',
    CARGO_TARGET_DIR: join(tmpdir(), 'offloop-arm64'),
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER: 'aarch64-linux-gnu-gcc',
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER: 'qemu-aarch64-static -L /usr/aarch64-linux-gnu',
  }
  const crates = '--workspace --exclude offloop-binding'
  const flags = `-Zbuild-std=std,panic_abort,test --target ${TARGET} ${crates} --tests`
  const tested = await run(`/usr/bin/cargo test --quiet ${flags}`, { env })
  process.exitCode = tested.code
}
