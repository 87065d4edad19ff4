/**
 * Writes the folders of `npm`: a package.json and a README for each platform, with the version and fields of the root's.
 * Run it after a change of either; a test compares what is committed with what this makes.
 */

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { addonOf, PACKAGE, PLATFORMS } from './platforms.mjs'
import { isStarted, root } from './steps.mjs'

/** Returns the files of all folders, by path. */
export function filesOfPackages() {
  const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return Object.fromEntries(
    PLATFORMS.flatMap((platform) => [
      [`npm/${platform.name}/package.json`, `${JSON.stringify(manifestOf(platform, own), null, 2)}\n`],
      [`npm/${platform.name}/README.md`, readmeOf(platform)],
    ]),
  )
}

function manifestOf(platform, { version, license, homepage, bugs, repository, engines, publishConfig }) {
  const { name, os, cpu, libc } = platform
  return {
    name: `${PACKAGE}-${name}`,
    version,
    description: `The addon of offloop for ${name}.`,
    homepage,
    bugs,
    license,
    repository: { ...repository, directory: `npm/${name}` },
    files: [addonOf(platform)],
    os: [os],
    cpu: [cpu],
    ...(libc === undefined ? {} : { libc: [libc] }),
    main: addonOf(platform),
    publishConfig,
    // Addons cannot be loaded from an archive, which Yarn's Plug'n'Play makes of packages.
    preferUnplugged: true,
    engines,
  }
}

function readmeOf({ name, target }) {
  return `# ${PACKAGE}-${name}

The addon of [offloop](https://github.com/offloop/offloop) for ${name}, built for Rust's target \`${target}\`.

Install \`offloop\`: npm, pnpm, Yarn and Bun add this package where it fits. It does nothing alone.
`
}

if (isStarted(import.meta)) {
  rmSync(join(root, 'npm'), { recursive: true, force: true })
  for (const [path, text] of Object.entries(filesOfPackages())) {
    mkdirSync(join(root, path, '..'), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}
