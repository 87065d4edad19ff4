/**
 * `npm run test:tools`: runs the published form of the package with bundlers, test runners, other runtimes and flags of Node.
 * Each tool comes from a registry. docs/platforms.md has the table of what works.
 */

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cacheFolder } from './cache.mjs'
import { triple } from './machine.mjs'
import { install, VERSIONS } from './node.mjs'
import { PACKAGE, platformNamed } from './platforms.mjs'
import { installPackages } from './registry.mjs'
import { ownPathOf, stage } from './stage.mjs'
import { run } from './steps.mjs'

const TOOLS_FOLDER = 'tools-1'
const PACKAGES = {
  esbuild: '0.28.2',
  rollup: '4',
  '@rollup/plugin-node-resolve': '16',
  vite: '7',
  webpack: '5',
  'webpack-cli': '6',
  '@vercel/ncc': '0.38',
  tsx: '4',
  jest: '30',
  vitest: '4',
  bun: '1.4.4',
  deno: '2.9.6',
}

const TEST = `expect((await decodeBase64('QUJD')).toString()).toBe('ABC')`
/** Files of the project, by name. */
const FILES = {
  'package.json': '{ "name": "project", "private": true, "type": "module" }',
  'entry.mjs': `import { decodeBase64, encode } from 'offloop'
import { monitorLoop } from 'offloop/kit'
const make = async () => \`TOOL OK \${await decodeBase64('QUJD')} \${await encode({ a: [1, 2.5] })} \${typeof monitorLoop}\`
make().then(console.log)
`,
  'entry.ts': `import { decodeBase64, type Bytes } from 'offloop'
const bytes: Bytes = await decodeBase64('QUJD')
console.log('TOOL OK', bytes.toString())
`,
  'worker.mjs': `import { Worker, isMainThread } from 'node:worker_threads'
if (isMainThread) new Worker(new URL(import.meta.url))
else await import('./entry.mjs')
`,
  'vite.config.mjs': `export default { build: { ssr: 'entry.mjs', outDir: 'out/vite', emptyOutDir: true }, ssr: { noExternal: true } }`,
  'offloop.test.mjs': `import { decodeBase64 } from 'offloop'
test('decodes', async () => { ${TEST} })
`,
  'offloop.vitest.mjs': `import { expect, test } from 'vitest'
import { decodeBase64 } from 'offloop'
test('decodes', async () => { ${TEST} })
`,
  'vitest.config.mjs': `export default { test: { include: ['*.vitest.mjs'] } }`,
  'jest.config.mjs': `export default { testMatch: ['**/*.test.mjs'], transform: {} }`,
}

const PASSED = /^TOOL OK ABC/m
/** Command lines by name of the tool. The last one prints that it passed. */
const RUNS = {
  'ES module': ['node entry.mjs'],
  CommonJS: [`node -e "require('offloop').decodeBase64('QUJD').then((bytes) => console.log('TOOL OK ' + bytes))"`],
  'esbuild, ES module': [
    'esbuild entry.mjs --bundle --platform=node --format=esm --outfile=out/esbuild.mjs',
    'node out/esbuild.mjs',
  ],
  'esbuild, CommonJS': [
    'esbuild entry.mjs --bundle --platform=node --format=cjs --outfile=out/esbuild.cjs',
    'node out/esbuild.cjs',
  ],
  rollup: ['rollup entry.mjs --plugin node-resolve --format es --file out/rollup.mjs', 'node out/rollup.mjs'],
  'vite, SSR': ['vite build', 'node out/vite/entry.js'],
  'webpack 5': [
    'webpack --target node --mode production --entry ./entry.mjs --output-path out/webpack --output-filename main.cjs --no-devtool',
    'node out/webpack/main.cjs',
  ],
  ncc: ['ncc build entry.mjs --out out/ncc', 'node out/ncc/index.mjs || node out/ncc/index.js'],
  tsx: ['tsx entry.ts'],
  jest: ['node --experimental-vm-modules --no-warnings ../node_modules/jest/bin/jest.js --ci 2>&1 && echo TOOL OK ABC'],
  vitest: ['vitest run && echo TOOL OK ABC'],
  Bun: ['bun entry.mjs'],
  Deno: ['deno run --allow-all --node-modules-dir=manual entry.mjs'],
  'worker threads': ['node worker.mjs'],
  '--permission --allow-addons': [`node --permission --allow-addons --allow-fs-read=* entry.mjs`],
  '--frozen-intrinsics': ['node --frozen-intrinsics --no-warnings entry.mjs'],
  '--disallow-code-generation-from-strings': ['node --disallow-code-generation-from-strings entry.mjs'],
}

const node = install(VERSIONS[2])
const folder = cacheFolder(TOOLS_FOLDER)
const isInstalled = (await installPackages(TOOLS_FOLDER, PACKAGES, { env: environment() })) !== undefined
if (isInstalled) await testAll()

async function testAll() {
  const project = mkdtempSync(join(folder, 'project-'))
  try {
    await makeProject(project)
    for (const [name, lines] of Object.entries(RUNS)) await test(name, project, lines)
    await testReadOnly(project)
  } finally {
    rmSync(project, { recursive: true, force: true })
  }
}

/** Installs the package as users have it. */
async function makeProject(project) {
  const platform = platformNamed(triple())
  const [binding, main] = stage([platform], ownPathOf)
  cpSync(main, join(project, 'node_modules/offloop'), { recursive: true })
  cpSync(binding, join(project, 'node_modules', `${PACKAGE}-${platform.name}`), { recursive: true })
  for (const [path, text] of Object.entries(FILES)) writeFileSync(join(project, path), text)
}

async function test(name, project, lines) {
  let result
  for (const line of lines) {
    result = await run(`cd '${project}' && ${line}`, { quiet: true, env: environment() })
    if (result.code !== 0) break
  }
  const { code, output } = result
  const isPassed = code === 0 && PASSED.test(output)
  console.log(`${isPassed ? '✔' : '✘'} ${name}`)
  if (isPassed) return
  process.exitCode = 1
  console.error(output.slice(-3000))
}

/** A folder that may not be written, by somebody who is not root. */
async function testReadOnly(project) {
  const copy = mkdtempSync(join(tmpdir(), 'offloop-read-only-'))
  try {
    cpSync(join(project, 'node_modules'), join(copy, 'node_modules'), { recursive: true })
    writeFileSync(join(copy, 'entry.mjs'), readFileSync(join(project, 'entry.mjs')))
    cpSync(node, join(copy, 'node'))
    await run(`chmod -R a+rX,a-w '${copy}'`)
    const isRoot = process.getuid?.() === 0
    await test('a read-only folder', copy, [
      `${isRoot ? 'setpriv --reuid=65534 --regid=65534 --clear-groups ' : ''}./node entry.mjs`,
    ])
  } finally {
    await run(`chmod -R u+w '${copy}'`)
    rmSync(copy, { recursive: true, force: true })
  }
}

function environment() {
  return {
    ...process.env,
    PATH: `${join(node, '..')}:${join(folder, 'node_modules/.bin')}:${process.env.PATH}`,
    NODE_OPTIONS: '',
  }
}
