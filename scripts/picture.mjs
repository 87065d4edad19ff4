/**
 * `node scripts/picture.mjs`: runs the step on the headline's Node with the default heap, draws its timelines into `docs/`, light
 * and dark, and puts its figures into README.md. On an idle machine only; it takes a minute.
 */

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { browser } from './browser.mjs'
import { install } from './node.mjs'
import { withStepTable } from './readme.mjs'
import { HEADLINE_NODE, lineOf } from './runs.mjs'
import { env, root, run } from './steps.mjs'

/** As wide as the page at most; as high as its timelines. */
const SIZE = '1000,690'
/** Blink's numbers of `prefers-color-scheme`. */
const SCHEMES = { dark: 0, light: 1 }

const path = browser()
if (path === undefined) throw new Error('no Chromium here')
const { code, output } = await run(lineOf(install(HEADLINE_NODE), 'step', ['--json']), { env })
if (code !== 0) throw new Error(`the step failed, with code ${code}`)
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

const readme = join(root, 'README.md')
writeFileSync(readme, withStepTable(readFileSync(readme, 'utf8'), reportIn(output)))
await run('oxfmt README.md', { env })

/** The object that `--json` prints is the only line of stdout; `run` gives stderr with it. */
function reportIn(text) {
  const line = text.split('\n').find((one) => one.startsWith('{'))
  if (line === undefined) throw new Error('the step printed no figures')
  return JSON.parse(line)
}
