/** The step that `npm start` runs, a small one, as a process; and its page, in a browser. */

import { execFile, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { browser } from '../scripts/browser.mjs'
import { HEAD, rowsOf, type Result } from '../benchmark/step/figures.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
test.after.always(() => rmSync(folder, { recursive: true }))

const SMALL = ['--rollouts', '2', '--turns', '2', '--tokens', '500', '--json']

interface Place {
  readonly out: string
  readonly temporary: string
}

function placeFor(name: string): Place {
  const place = { out: join(folder, name, 'out'), temporary: join(folder, name, 'tmp') }
  mkdirSync(place.temporary, { recursive: true })
  return place
}

function command({ out, temporary }: Place, sizes = SMALL): [string[], { env: NodeJS.ProcessEnv; cwd: string }] {
  const args = ['--import', '@oxc-node/core/register', 'benchmark/step.ts', ...sizes, '--out', out]
  // What it writes, and which processes are its, is told by this folder.
  return [args, { cwd: root, env: { ...process.env, NODE_OPTIONS: '', TMPDIR: temporary } }]
}

/** One for all tests that look at it. */
let step: Promise<{ readonly place: Place; readonly printed: string; readonly result: Result }> | undefined

function runStep(): NonNullable<typeof step> {
  step ??= (async () => {
    const place = placeFor('whole')
    const [args, options] = command(place)
    const { stdout } = await promisify(execFile)(process.execPath, args, options)
    const result: Result = JSON.parse(readFileSync(join(place.out, 'step.json'), 'utf8'))
    return { place, printed: stdout, result }
  })()
  return step
}

test('a step both ways writes the same, prints the table, and leaves nothing but the page', async (t) => {
  const { place, printed, result } = await runStep()
  t.regex(printed, /Both wrote the same rows, batch and experts\./)
  const lines = printed.split('\n').map((line) => line.split('|').map((cell) => cell.trim()))
  const rows = lines.filter(({ length }) => length === HEAD.length + 2).map((cells) => cells.slice(1, -1))
  t.deepEqual([rows[0], ...rows.slice(2)], [[...HEAD], ...rowsOf(result.runs)])
  t.deepEqual(readdirSync(place.out).toSorted(), ['step.html', 'step.json'])
  t.deepEqual(readdirSync(place.temporary), [])
  t.deepEqual(processesOf(place), [])
})

test('the page is one file that loads nothing and runs nothing', async (t) => {
  const { place } = await runStep()
  const page = readFileSync(join(place.out, 'step.html'), 'utf8')
  t.notRegex(page, /<script|<link|<img|<iframe|@import|url\(|\bon\w+=|https?:/)
  t.regex(page, /<html lang="en">/)
  t.regex(page, /prefers-color-scheme: dark/)
})

const chromium = browser()

;(chromium === undefined ? test.skip : test)(
  'a browser draws both lines, and shows the numbers of the run',
  async (t) => {
    const { place, result } = await runStep()
    const url = pathToFileURL(join(place.out, 'step.html')).href
    const dom = drawn(chromium ?? '', url, place)
    const paths = [...dom.matchAll(/<path class="lag" d="([^"]+)"/g)].map(([, path = '']) => path)
    t.is(paths.length, 2)
    for (const path of paths) t.regex(path, /^M0 100(L[\d.]+ [\d.]+)+$/)
    t.is(dom.match(/<svg role="img" aria-labelledby="\w+-title \w+-desc"/g)?.length, 2)
    t.deepEqual(cellsOf(dom), [HEAD.slice(1), ...rowsOf(result.runs)])
  },
)

function drawn(path: string, url: string, { temporary }: Place): string {
  const profile = `--user-data-dir=${mkdtempSync(join(temporary, 'profile-'))}`
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', profile]
  const { stdout } = spawnSync(path, [...flags, '--dump-dom', url], { encoding: 'utf8' })
  return stdout
}

/** Of each row of the table. */
function cellsOf(dom: string): string[][] {
  return [...dom.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = '']) =>
    [...row.matchAll(/<t[hd][^>]*>([^<]+)<\/t[hd]>/g)].map(([, cell = '']) => cell),
  )
}

;(process.platform === 'linux' ? test : test.skip)('Ctrl-C ends every process, and leaves no file', async (t) => {
  const place = placeFor('stopped')
  const [args, options] = command(place, ['--rollouts', '4', '--turns', '4', '--tokens', '4000'])
  const child = spawn(process.execPath, args, { ...options, stdio: 'ignore' })
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  // Who prepares, who runs, who pings: in the middle of it.
  while (processesOf(place).length < 4 && child.exitCode === null) await sleep(20)
  t.is(processesOf(place).length, 4)
  child.kill('SIGINT')
  t.is(await ended, 130)
  t.deepEqual(processesOf(place), [])
  t.deepEqual(readdirSync(place.temporary), [])
  t.deepEqual(readdirSync(join(folder, 'stopped')), ['tmp'])
})

/** Those that were started with its folder in their environment, where the system tells. */
function processesOf({ temporary }: Place): string[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false
    try {
      return readFileSync(`/proc/${name}/environ`, 'latin1').includes(`TMPDIR=${temporary}\0`)
    } catch {
      // ESRCH, ENOENT, EACCES: it has ended, or is somebody else's.
      return false
    }
  })
}

test('sizes that are none are told in a sentence', (t) => {
  const [args, options] = command(placeFor('wrong'), ['--tokens', '0'])
  const { status, stderr } = spawnSync(process.execPath, args, { ...options, encoding: 'utf8' })
  t.is(status, 1)
  t.regex(stderr, /--tokens is a number of at least 1/)
})
