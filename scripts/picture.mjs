/** The pictures in `docs/` of the page that `npm start` drew last: its timelines, light and dark. */

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { browser } from './browser.mjs'
import { root } from './steps.mjs'

/** As wide as the page at most; as high as its timelines. */
const SIZE = '1000,690'
/** Blink's numbers of `prefers-color-scheme`. */
const SCHEMES = { dark: 0, light: 1 }

const path = browser()
if (path === undefined) throw new Error('no Chromium here')
const page = pathToFileURL(join(root, 'benchmark/results/step.html')).href
const profile = mkdtempSync(join(tmpdir(), 'offloop-'))
mkdirSync(join(root, 'docs'), { recursive: true })
for (const [name, scheme] of Object.entries(SCHEMES)) {
  execFileSync(
    path,
    [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--hide-scrollbars',
      '--force-device-scale-factor=2',
      `--user-data-dir=${profile}`,
      `--blink-settings=preferredColorScheme=${scheme}`,
      `--window-size=${SIZE}`,
      `--screenshot=${join(root, `docs/step-${name}.png`)}`,
      page,
    ],
    { stdio: 'ignore' },
  )
}
rmSync(profile, { recursive: true, maxRetries: 5 })
