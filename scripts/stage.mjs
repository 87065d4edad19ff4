/**
 * Makes folders that can be published: `artifacts/npm/offloop`, whose optional dependencies are the packages of the platforms,
 * and one for each platform whose addon is in `artifacts`. `npm run stage -- [platforms]`: those alone, and each must be there.
 */

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { addonOf, PACKAGE, platformNamed, PLATFORMS } from './platforms.mjs'
import { ARTIFACTS } from './prebuild/folders.mjs'
import { isStarted, root } from './steps.mjs'

const STAGE = join(ARTIFACTS, 'npm')

/**
 * Makes the folders and returns their paths: those of the platforms, then that of the package itself. `pathOf` finds the addon
 * of a platform.
 */
export function stage(platforms, pathOf = prebuiltPathOf) {
  rmSync(STAGE, { recursive: true, force: true })
  const folders = platforms.map((platform) => stagePlatform(platform, pathOf(platform)))
  return [...folders, stageMain(platforms)]
}

function prebuiltPathOf(platform) {
  const path = join(ARTIFACTS, addonOf(platform))
  if (existsSync(path)) return path
  throw new Error(`${addonOf(platform)} is missing in artifacts: run \`npm run prebuild -- ${platform.name}\``)
}

/** Returns the path of the addon that was prebuilt; else that of the checkout, which tests of this machine may use. */
export function ownPathOf(platform) {
  const prebuilt = join(ARTIFACTS, addonOf(platform))
  return existsSync(prebuilt) ? prebuilt : join(root, addonOf(platform))
}

function stagePlatform(platform, addon) {
  const folder = join(STAGE, platform.name)
  cpSync(join(root, 'npm', platform.name), folder, { recursive: true })
  cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
  cpSync(addon, join(folder, addonOf(platform)))
  return folder
}

function stageMain(platforms) {
  const folder = join(STAGE, 'offloop')
  mkdirSync(folder, { recursive: true })
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  for (const name of [...manifest.files, 'LICENSE']) cpSync(join(root, name), join(folder, name), { recursive: true })
  writeFileSync(join(folder, 'README.md'), withAbsoluteLinks(readFileSync(join(root, 'README.md'), 'utf8'), manifest))
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifestOf(manifest, platforms), null, 2)}\n`)
  return folder
}

/** Fields that only a checkout needs. */
const OWN_FIELDS = new Set(['scripts', 'devDependencies', 'napi', 'ava'])

/** Returns the manifest that is published. */
function manifestOf(manifest, platforms) {
  const fields = Object.entries(manifest).filter(([name]) => !OWN_FIELDS.has(name))
  const dependencies = platforms.map(({ name }) => [`${PACKAGE}-${name}`, manifest.version])
  return { ...Object.fromEntries(fields), optionalDependencies: Object.fromEntries(dependencies) }
}

/** A registry shows README alone: its links and pictures must lead to the repository, at the tag of the version. */
export function withAbsoluteLinks(text, { homepage, version }) {
  const [repository] = homepage.split('#')
  return text
    .replaceAll(/\]\((?!https?:|#)([^)]+)\)/g, `](${repository}/blob/v${version}/$1)`)
    .replaceAll(/(src|srcset)="(?!https?:)([^"]+)"/g, `$1="${repository}/raw/v${version}/$2"`)
}

if (isStarted(import.meta)) {
  const names = process.argv.slice(2)
  const platforms = names.length === 0 ? PLATFORMS : names.map(platformNamed)
  for (const folder of stage(platforms)) console.log(folder)
}
