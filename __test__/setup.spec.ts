import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import ts from 'typescript'
import { triple } from '../scripts/machine.mjs'

const root = fileURLToPath(new URL('../', import.meta.url))
const addon = `offloop.${triple()}.node`

const SOURCES = [
  'Cargo.toml',
  'Cargo.lock',
  'build.rs',
  'crates/base64/src/lib.rs',
  'crates/base64/src/old.rs',
  'package.json',
  'package-lock.json',
  'src/index.ts',
  'src/old.ts',
  'tsconfig.json',
  'tsconfig.build.json',
  'binding.d.ts',
  // What cargo makes, which is copied.
  'target/hooks/liboffloop_binding.so',
]
const MADE = ['node_modules/.package-lock.json', addon, 'dist/index.js', 'target/hooks/offloop.hooks.node']
const TOOLS = { rustc: 'rustc 1.88.0 (x)', cargo: 'cargo 1.88.0 (x)', cc: 'cc 12', npm: 'npm was called' }

interface Given {
  /** What the tools on the PATH print; one that is undefined is not there. */
  readonly tools?: Readonly<Record<string, string | undefined>>
  /** What has been made, after its sources. @default all */
  readonly made?: readonly string[]
  /** A source that is deleted after that. */
  readonly deleted?: string
  /** What Node says it is. */
  readonly node?: string
}

/** Runs setup in a folder that looks like the project, with tools that only say that they were called. */
function setUp({ tools = {}, made = MADE, deleted, node = process.versions.node }: Given): [number | null, string[]] {
  const folder = mkdtempSync(join(tmpdir(), 'offloop-setup-'))
  try {
    cpSync(join(root, 'scripts'), join(folder, 'scripts'), { recursive: true })
    for (const path of [...SOURCES, ...made]) write(join(folder, path), '')
    for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      const time = Date.now() / 1000 - (made.includes(path) ? 100 : 200)
      utimesSync(join(folder, path), time, time)
    }
    if (deleted !== undefined) rmSync(join(folder, deleted))
    for (const [name, says] of Object.entries({ ...TOOLS, ...tools })) {
      if (says === undefined) continue
      write(join(folder, 'bin', name), `#!/bin/sh\necho "${says}"\n`)
      chmodSync(join(folder, 'bin', name), 0o755)
    }
    const versions = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${node}' } })`
    write(join(folder, 'versions.cjs'), versions)
    const argv = ['--require', join(folder, 'versions.cjs'), join(folder, 'scripts/setup.mjs'), '--hooks']
    const child = spawnSync(process.execPath, argv, { encoding: 'utf8', env: { PATH: join(folder, 'bin') } })
    return [child.status, `${child.stdout}${child.stderr}`.split('\n').filter((line) => line !== '')]
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

const INSTALL = 'install Rust 1.88 or newer'
const LINKER = 'install gcc or clang (Debian: build-essential; macOS: xcode-select --install)'

for (const [what, tools, sentence] of [
  ['no rustc', { rustc: undefined }, `Rust's rustc is missing: ${INSTALL} with rustup (rustup.rs).`],
  ['no cargo', { cargo: undefined }, `Rust's cargo is missing: ${INSTALL} with rustup (rustup.rs).`],
  [
    'a tool of another kind',
    { rustc: 'error: no toolchain' },
    `Rust's rustc is missing: ${INSTALL} with rustup (rustup.rs).`,
  ],
  ['an old rustc', { rustc: 'rustc 1.87.0 (x)' }, `Rust's rustc 1.87 is too old: ${INSTALL} (rustup update stable).`],
  ['an old cargo', { cargo: 'cargo 0.99.0 (x)' }, `Rust's cargo 0.99 is too old: ${INSTALL} (rustup update stable).`],
  ['no linker', { cc: undefined }, `A C linker is missing: ${LINKER}.`],
] as const) {
  test(`${what}: one sentence and exit code 1, before anything is installed`, (t) => {
    t.deepEqual(setUp({ tools, made: [] }), [1, [sentence]])
    t.deepEqual(setUp({ tools, made: MADE.slice(0, -1) }), [1, [sentence]])
    t.deepEqual(setUp({ tools }), [0, []])
  })
}

for (const [node, isKnown] of [
  ['12.22.12', false],
  ['18.20.8', false],
  ['20.18.3', false],
  ['20.19.0', true],
  ['21.7.3', false],
  ['22.11.0', false],
  ['22.12.0', true],
  ['23.0.0', true],
] as const) {
  test(`Node ${node} is ${isKnown ? 'new enough' : 'too old'}`, (t) => {
    const sentence = `Node ${node} is too old: install Node 20.19, 22.12 or newer.`
    t.deepEqual(setUp({ node }), isKnown ? [0, []] : [1, [sentence]])
  })
}

test('what says so is in a syntax that old Nodes read', (t) => {
  const source = readFileSync(new URL('../scripts/setup.mjs', import.meta.url), 'utf8')
  const inSyntaxOf = (target: ts.ScriptTarget): string => ts.transpile(source, { target, module: ts.ModuleKind.ESNext })
  t.is(inSyntaxOf(ts.ScriptTarget.ES2018), inSyntaxOf(ts.ScriptTarget.ESNext))
  t.notRegex(source, /\bawait\b|^import\b|\bnode:/m)
})

test('what is missing is made, in this order', (t) => {
  const [code, lines] = setUp({ made: MADE.slice(-1) })
  const called = 'npm was called'
  t.is(code, 0)
  t.deepEqual(lines, ['installing packages …', called, 'building the addon …', called, 'building dist …', called])
})

test('what is older than a source is made again, also where a source is gone', (t) => {
  const addons = ['building the addon …', 'npm was called', 'building the addon with test hooks …', 'cargo 1.88.0 (x)']
  t.deepEqual(setUp({ deleted: 'crates/base64/src/old.rs' }), [0, addons])
  t.deepEqual(setUp({ deleted: 'src/old.ts' }), [0, ['building dist …', 'npm was called']])
})
