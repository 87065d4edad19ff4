/** A browser for the tests of pages: one that is there, or Debian's Chromium where it can be installed. */

import { execFileSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'chrome']

/** Its path; undefined where there is none. */
export function browser() {
  for (const name of NAMES) {
    const found = (process.env.PATH ?? '')
      .split(delimiter)
      .map((folder) => join(folder, name))
      .find(isExecutable)
    if (found !== undefined) return found
  }
  return undefined
}

/** For tests, where this is root of a machine with apt. Says in a line what is left out where it is not. */
export function installBrowser() {
  if (browser() !== undefined) return
  if (process.platform === 'linux' && process.getuid?.() === 0) {
    console.log('installing Chromium …')
    try {
      const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
      const options = { env, stdio: 'ignore' }
      execFileSync('apt-get', ['update', '-qq'], options)
      execFileSync('apt-get', ['install', '-qq', '--no-install-recommends', 'chromium'], options)
      return
    } catch {
      // No apt, no network, or another distribution: as below.
    }
  }
  console.log('left out: pages in a browser (no Chromium here, and none that this could install)')
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
