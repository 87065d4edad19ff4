/**
 * `npm run test:install`: publishes the packages to a registry on loopback, installs them in empty projects with every package
 * manager, and runs the smoke test there, as ES module and as CommonJS. Without optional dependencies the import must say
 * what is missing. Addons of other platforms are empty files unless they are in `artifacts`: nothing may install them.
 */

import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { triple } from './machine.mjs'
import { install as installNode, VERSIONS } from './node.mjs'
import { PACKAGE, PLATFORMS } from './platforms.mjs'
import { installPackages } from './registry.mjs'
import { ownPathOf, stage } from './stage.mjs'
import { root, run } from './steps.mjs'

const TOOLS = { verdaccio: '6.10.4', pnpm: '12.21.0', yarn: '1.22.22', '@yarnpkg/cli-dist': '4.18.1', bun: '1.4.4' }
const SMOKE = join(root, 'scripts/smoke/smoke.mjs')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** Package managers: their commands, how they leave optional dependencies out, and how they run Node. */
const MANAGERS = {
  npm: { install: 'npm install --no-audit --no-fund', without: '--omit=optional' },
  pnpm: { install: '@pnpm install --ignore-workspace', without: '--no-optional' },
  'yarn 1': { install: '@yarn install --no-progress', without: '--ignore-optional' },
  'yarn 4, node_modules': { install: '@yarn4 install', settings: yarnSettings('node-modules') },
  "yarn 4, Plug'n'Play": { install: '@yarn4 install', settings: yarnSettings('pnp'), node: '@yarn4 node' },
  bun: { install: '@bun install', without: '--omit=optional' },
}

/** The package managers of today need a newer Node than the package does. */
const node24 = installNode(VERSIONS[2])
// verdaccio asks for a tag of node-fetch, which not every mirror of the registry has.
const cache = await installPackages('install-tools-1', TOOLS, { overrides: { 'node-fetch': '^2.7.0' } })
if (cache === undefined) process.exit()
const tools = join(cache, 'node_modules')
const commands = {
  '@pnpm': `node '${join(tools, 'pnpm/bin/pnpm.mjs')}'`,
  '@yarn4': `node '${join(tools, '@yarnpkg/cli-dist/bin/yarn.js')}'`,
  '@yarn': `node '${join(tools, 'yarn/bin/yarn.js')}'`,
  '@bun': `'${join(tools, 'bun/bin/bun.exe')}'`,
}
const work = mkdtempSync(join(tmpdir(), 'offloop-install-'))
const registry = await startRegistry()
const failures = []
try {
  await publishAll()
  for (const [name, manager] of Object.entries(MANAGERS)) await testManager(name, manager)
} finally {
  registry.child.kill()
  rmSync(work, { recursive: true, force: true })
}
for (const failure of failures) console.error(`✘ ${failure}`)
console.log(`installs: ${failures.length === 0 ? 'all passed' : `${failures.length} failed`}`)
if (failures.length !== 0) process.exitCode = 1

async function startRegistry() {
  const port = await freePort()
  const storage = join(work, 'storage')
  writeFileSync(
    join(work, 'verdaccio.json'),
    JSON.stringify({
      storage,
      packages: { '**': { access: '$all', publish: '$all', unpublish: '$all' } },
      log: { type: 'stdout', level: 'error' },
      max_body_size: '100mb',
    }),
  )
  const child = spawn(
    node24,
    [join(tools, 'verdaccio/bin/verdaccio'), '--config', join(work, 'verdaccio.json'), '--listen', `127.0.0.1:${port}`],
    { stdio: 'ignore' },
  )
  const url = `http://127.0.0.1:${port}/`
  for (let attempt = 0; attempt < 200; attempt += 1) {
    try {
      await fetch(`${url}-/ping`)
      return { child, url, host: `127.0.0.1:${port}` }
    } catch {
      // It does not listen yet.
      await new Promise((next) => setTimeout(next, 100))
    }
  }
  throw new Error('the registry does not start')
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

/** Publishes this machine's addon, and empty files for the other platforms unless they were prebuilt. */
async function publishAll() {
  const empty = join(work, 'empty.node')
  writeFileSync(empty, '')
  const pathOf = (platform) => {
    const path = ownPathOf(platform)
    return existsSync(path) ? path : empty
  }
  for (const folder of stage(PLATFORMS, pathOf)) await publish(folder)
}

async function publish(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (manifest.scripts !== undefined) failures.push(`${manifest.name} has scripts`)
  writeFileSync(join(folder, '.npmrc'), npmrc())
  const { code, output } = await run(
    `cd '${folder}' && npm publish --access public --provenance=false --registry ${registry.url}`,
    { quiet: true },
  )
  rmSync(join(folder, '.npmrc'))
  if (code !== 0) throw new Error(`${manifest.name} cannot be published:\n${output}`)
}

function npmrc() {
  return `registry=${registry.url}\n//${registry.host}/:_authToken=loopback\n`
}

function yarnSettings(linker) {
  return () => ({
    '.yarnrc.yml': `nodeLinker: ${linker}\nnpmRegistryServer: ${registry.url}\nunsafeHttpWhitelist: ['127.0.0.1']\nnpmMinimalAgeGate: 0\nenableTelemetry: false\nenableGlobalCache: false\nenableImmutableInstalls: false\n`,
    'yarn.lock': '',
  })
}

async function testManager(name, { install, without, settings, node = 'node' }) {
  const folder = makeProject(`${name} with`, settings?.() ?? {})
  const done = await inProject(folder, install)
  if (done.code !== 0) {
    failures.push(`${name}: the installation fails: ${done.output.trim()}`)
    return
  }
  checkInstalled(name, folder)
  for (const file of ['smoke.mjs', 'require.cjs']) {
    const { code, output } = await inProject(folder, `${node} ${file}`)
    const passed = code === 0 && /^(SMOKE OK|REQUIRE OK)/m.test(output)
    console.log(`${passed ? '✔' : '✘'} ${name}: ${file}`)
    if (!passed) failures.push(`${name}: ${file}: ${output.trim()}`)
  }
  if (without !== undefined) await testWithout(name, `${install} ${without}`)
}

/** Without the package of the platform, the import must fail with its code and an advice. */
async function testWithout(name, install) {
  const folder = makeProject(`${name} without`, {})
  await inProject(folder, install)
  const { output } = await inProject(folder, 'node missing.mjs')
  const passed = output.includes('ERR_OFFLOOP_NO_ADDON') && output.includes(`Install ${PACKAGE}-${triple()}@${version}`)
  console.log(`${passed ? '✔' : '✘'} ${name}: without optional dependencies`)
  if (!passed) failures.push(`${name}: without optional dependencies: ${output.trim()}`)
}

/** Only addons that fit this machine may be there. */
function checkInstalled(name, folder) {
  const modules = join(folder, 'node_modules/@offloop')
  if (!existsSync(modules)) return
  const strangers = readdirSync(modules).filter((found) => !found.includes(`${process.platform}-${process.arch}`))
  if (strangers.length !== 0) failures.push(`${name} installs ${strangers.join(', ')}`)
}

function makeProject(name, settings) {
  const folder = join(work, name.replaceAll(/\W+/g, '-'))
  const files = {
    'package.json': JSON.stringify({ name: 'project', private: true, dependencies: { offloop: version } }),
    '.npmrc': npmrc(),
    'bunfig.toml': `[install]\nregistry = "${registry.url}"\ncache = false\n`,
    'smoke.mjs': readFileSync(SMOKE, 'utf8'),
    'require.cjs': `require('offloop').decodeBase64('QUJD').then((bytes) => console.log('REQUIRE OK', bytes.toString()))`,
    'missing.mjs': `import('offloop').catch(({ code, message }) => console.log(code, message))`,
    ...settings,
  }
  mkdirSync(folder)
  for (const [path, text] of Object.entries(files)) writeFileSync(join(folder, path), text)
  return folder
}

function inProject(folder, line) {
  const [first] = line.split(' ')
  const command = first in commands ? line.replace(first, commands[first]) : line
  return run(`cd '${folder}' && ${command}`, {
    quiet: true,
    env: {
      ...process.env,
      PATH: `${join(node24, '..')}:${process.env.PATH}`,
      npm_config_registry: registry.url,
      npm_config_cache: join(work, 'npm-cache'),
      YARN_CACHE_FOLDER: join(work, 'yarn-cache'),
      YARN_GLOBAL_FOLDER: join(work, 'yarn-global'),
      npm_config_store_dir: join(work, 'pnpm-store'),
      CI: '',
    },
  })
}
