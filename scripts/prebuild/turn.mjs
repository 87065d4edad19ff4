/**
 * `node scripts/prebuild/turn.mjs`: builds and loads the addon for linux-x64-gnu and for one other platform, which changes from
 * commit to commit. CI runs it. What this machine lacks is left out with one line.
 */

import { run } from '../steps.mjs'

const ALWAYS = 'linux-x64-gnu'
const OTHERS = ['linux-x64-musl', 'linux-arm64-gnu', 'win32-x64-msvc']

const { output } = await run('git rev-list --count HEAD', { quiet: true })
const platforms = `${ALWAYS} ${OTHERS[(Number.parseInt(output, 10) || 0) % OTHERS.length]}`
for (const line of [
  `node scripts/prebuild/build.mjs ${platforms}`,
  `node scripts/prebuild/test.mjs --short ${platforms}`,
]) {
  const { code } = await run(line)
  if (code !== 0) process.exitCode = 1
}
