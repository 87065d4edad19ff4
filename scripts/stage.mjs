/**
 * Makes folders that can be published: `artifacts/npm/offloop`, whose optional dependencies are the packages of the platforms,
 * and one for each platform whose addon is in `artifacts`. `npm run stage -- [platforms]`: those alone, and each must be there.
 */

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { addonOf, PACKAGE, platformNamed, PLATFORMS } from './platforms.mjs'
import { root } from './steps.mjs'

const STAGE = join(root, 'artifacts/npm')

/** Makes the folders and returns their paths: those of the platforms, then that of the package itself. */
export function stage(platforms) {
  rmSync(STAGE, { recursive: true, force: true })
  const folders = platforms.map(stagePlatform)
  return [...folders, stageMain(platforms)]
}

function stagePlatform(platform) {
  const addon = join(root, 'artifacts', addonOf(platform))
  if (!existsSync(addon))
    throw new Error(`${addonOf(platform)} is missing in artifacts: run \`npm run prebuild -- ${platform.name}\``)
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

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const names = process.argv.slice(2)
  const platforms = names.length === 0 ? PLATFORMS : names.map(platformNamed)
  for (const folder of stage(platforms)) console.log(folder)
}
