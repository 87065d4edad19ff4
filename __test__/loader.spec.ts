/** The loader of the addon: where it looks, what it refuses, and what its error says. */

import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import { triple } from '../scripts/machine.mjs'
import { filesOfPackages } from '../scripts/npm-packages.mjs'
import { withAbsoluteLinks } from '../scripts/stage.mjs'
import { addonOf, PACKAGE, PLATFORMS, platformNamed } from '../scripts/platforms.mjs'

const root = fileURLToPath(new URL('../', import.meta.url))
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const source = readFileSync(join(root, 'binding.js'), 'utf8')

interface Failed {
  readonly code: string
  readonly lines: readonly string[]
}

/** Imports the loader in a process of its own, and returns the error of that. */
function failureOf(env: NodeJS.ProcessEnv, flags: readonly string[] = [], before = ''): Failed {
  const code = `${before}; import('./binding.js').then(() => console.log('null'), (error) => console.log(JSON.stringify({ code: error.code, lines: error.message.split('\\n') })))`
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '--input-type=module', '-e', code], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '', ...env },
  })
  const failed: Failed | null = JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
  if (failed === null) throw new Error(`the import succeeded: ${stderr}`)
  return failed
}

test('the loader exports what the types of the addon declare, and the addon has all of it', (t) => {
  const addon: Record<string, unknown> = createRequire(import.meta.url)(join(root, `offloop.${triple()}.node`))
  const types = readFileSync(join(root, 'binding.d.ts'), 'utf8')
  const declaration = /^export declare (?:function|class|const|enum|const enum) (\w+)/gm
  const declared = Array.from(types.matchAll(declaration), (found) => String(found[1]))
  const [, list = ''] = /^export const \{\n([^}]*)\}/m.exec(source) ?? []
  const names: readonly string[] = list.match(/\w+/g) ?? []
  t.deepEqual(names.toSorted(), declared.toSorted())
  for (const name of names) t.true(name in addon, name)
})

test('the loader has the version of the package, and every platform', (t) => {
  t.true(source.includes(`const EXPECTED = '${version}'`))
  t.true(source.includes(`const PACKAGE = '${PACKAGE}'`))
  const [, list = ''] = /^const PLATFORMS = new Set\(\[\n([^\]]*)\]/m.exec(source) ?? []
  t.deepEqual(
    list.match(/[\w-]+/g),
    PLATFORMS.map(({ name }) => name),
  )
  t.is(readFileSync(join(root, 'Cargo.toml'), 'utf8').match(/^version = "(.*)"$/m)?.[1], version)
})

test('the folders of the platforms are what the script makes', (t) => {
  const files = filesOfPackages()
  for (const [path, text] of Object.entries(files)) t.is(readFileSync(join(root, path), 'utf8'), text, path)
  const folders = readdirSync(join(root, 'npm'))
  t.deepEqual(folders.toSorted(), PLATFORMS.map(({ name }) => name).toSorted())
})

test('packages name their platform in the fields that package managers read', (t) => {
  for (const { name, os, cpu, libc } of PLATFORMS) {
    const manifest = JSON.parse(readFileSync(join(root, 'npm', name, 'package.json'), 'utf8'))
    t.is(manifest.name, `${PACKAGE}-${name}`)
    t.is(manifest.version, version)
    t.deepEqual([manifest.os, manifest.cpu, manifest.libc], [[os], [cpu], libc === undefined ? undefined : [libc]])
    t.deepEqual([manifest.main, manifest.files], [addonOf(platformNamed(name)), [addonOf(platformNamed(name))]])
    t.is(manifest.scripts, undefined)
    t.is(libc === undefined, os !== 'linux')
  }
})

test('OFFLOOP_ADDON names the only file that is tried', (t) => {
  const path = join(root, 'no-such.node')
  const { code, lines } = failureOf({ OFFLOOP_ADDON: path })
  t.is(code, 'ERR_OFFLOOP_NO_ADDON')
  t.true(
    lines[0]?.startsWith(`offloop ${version} has no addon for ${triple()} (${process.platform}, ${process.arch}, `),
  )
  t.deepEqual(lines.slice(1), [
    `  ${path}: not there`,
    'OFFLOOP_ADDON names this file: correct the variable, or unset it.',
  ])
})

test('nothing but an addon is loaded', (t) => {
  const path = join(root, 'src/index.ts')
  t.is(failureOf({ OFFLOOP_ADDON: path }).lines[1], `  ${path}: not a .node file`)
})

test('an addon of another version is refused', (t) => {
  // The addon of another package.
  const folder = join(root, 'node_modules/@oxc-node')
  const other = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith('.node'))
  const path = join(folder, other ?? 'no addon')
  t.is(failureOf({ OFFLOOP_ADDON: path }).lines[1], `  ${path}: version unknown, not ${version}`)
})

test('variables of other packages change nothing', (t) => {
  const env = { NAPI_RS_NATIVE_LIBRARY_PATH: '/no/such.node', NAPI_RS_FORCE_WASI: 'error', NAPI_RS_WASI_FLAVOR: 'x' }
  const code = `import('./binding.js').then(({ VERSION }) => console.log(VERSION))`
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '', ...env },
  })
  t.is(printed, `${version}\n`)
})

test('a process that may load no addons is told how', (t) => {
  const { code, lines } = failureOf({}, ['--no-addons'])
  t.is(code, 'ERR_OFFLOOP_NO_ADDON')
  t.is(
    lines.at(-1),
    'Node may load no addons: start it with --allow-addons beside --permission, or without --no-addons.',
  )
})

test('a platform without a package is told to build, and one with a package what to install', (t) => {
  const pretend = (platform: string, arch: string): string =>
    `for (const [name, value] of Object.entries({ platform: '${platform}', arch: '${arch}' })) Object.defineProperty(process, name, { value })`
  const aix = failureOf({}, [], pretend('aix', 'ppc64'))
  t.true(aix.lines.at(-1)?.startsWith('No package is published for this platform: build offloop from its sources'))
  const mac = failureOf({}, [], pretend('darwin', 'arm64'))
  t.deepEqual(mac.lines.slice(1, 3), [
    '  ./offloop.darwin-arm64.node: not there',
    `  ${PACKAGE}-darwin-arm64: not there`,
  ])
  t.true(mac.lines.at(-1)?.startsWith(`Install ${PACKAGE}-darwin-arm64@${version}. `))
  const linux = failureOf({}, [], pretend('linux', 'riscv64'))
  t.deepEqual(
    linux.lines.slice(1, -1).map((line) => line.split(':')[0]),
    ['gnu', 'musl'].flatMap((library) => [
      `  ./offloop.linux-riscv64-${library}.node`,
      `  ${PACKAGE}-linux-riscv64-${library}`,
    ]),
  )
})

test('links of README lead to the repository where a registry shows it', (t) => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const links = withAbsoluteLinks(
    '[a](docs/a.md) [b](https://b.test) [c](#c) <img src="d.png"><source srcset="e.png">',
    manifest,
  )
  const base = manifest.homepage.split('#')[0]
  const at = `v${manifest.version}`
  t.is(
    links,
    `[a](${base}/blob/${at}/docs/a.md) [b](https://b.test) [c](#c) <img src="${base}/raw/${at}/d.png"><source srcset="${base}/raw/${at}/e.png">`,
  )
  const readme = withAbsoluteLinks(readFileSync(join(root, 'README.md'), 'utf8'), manifest)
  for (const [, target = ''] of readme.matchAll(/(?:\]\(|(?:src|srcset)=")([^)"]+)/g)) t.regex(target, /^(https:|#)/)
})
