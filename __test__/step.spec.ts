/** The step that `npm start` runs, a small one, as a process; and its page, in a browser. */

import { execFile, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { setTimeout as sleep } from 'node:timers/promises'
import { getHeapStatistics } from 'node:v8'
import test from 'ava'
import { browser } from '../scripts/browser.mjs'
import { headOf, rowsOf, type StepReport } from '../benchmark/step/figures.ts'
import { memoryFlags, readOptions } from '../benchmark/step/options.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
test.after.always(() => rmSync(folder, { recursive: true }))

const SMALL = ['--rollouts', '2', '--turns', '2', '--tokens', '500', '--heap', '8']

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

interface Printed {
  readonly place: Place
  readonly stdout: string
}

async function runIn(name: string, args: readonly string[]): Promise<Printed> {
  const place = placeFor(name)
  const [line, options] = command(place, [...args])
  const { stdout } = await promisify(execFile)(process.execPath, line, options)
  return { place, stdout }
}

/** One step with a table, for all tests that look at it, and one with JSON. */
let table: Promise<Printed> | undefined
let json: Promise<Printed & { readonly report: StepReport }> | undefined

function runTable(): Promise<Printed> {
  return (table ??= runIn('table', SMALL))
}

function runJson(): NonNullable<typeof json> {
  json ??= runIn('json', [...SMALL, '--json']).then((printed) => ({ ...printed, report: JSON.parse(printed.stdout) }))
  return json
}

const HEAD = headOf({ node: process.version, heapMb: 8 })
const NAMES = [
  'blocked, in all',
  'loop lag, p50',
  'loop lag, p99',
  'loop lag, max',
  'ping, p99',
  'step time',
  'CPU time',
  'peak RSS',
]

/** The cells of each table, without the rules below the heads. */
function tablesIn(text: string): string[][][] {
  const tables = text.split('\n\n').filter((part) => part.startsWith('| '))
  return tables.map((part) => {
    const [head = '', , ...rows] = part.trim().split('\n')
    return [head, ...rows].map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
  })
}

test('a step both ways prints two tables that begin with Node and the heap, and leaves nothing but the page', async (t) => {
  const { place, stdout } = await runTable()
  t.regex(stdout, /beside 8 MB of live objects\. Each way runs one step to warm up and one that counts\./)
  t.regex(stdout, /All steps wrote the same rows, batch and experts\./)
  t.true(stdout.indexOf('The step that counts:') < stdout.indexOf('The first step, which warms up:'))
  const tables = tablesIn(stdout)
  t.is(tables.length, 2)
  for (const [head, ...rows] of tables) {
    t.deepEqual(head, [`Node ${process.version}, 8 MB live`, 'plain', 'offloop', 'plain ÷ offloop'])
    t.deepEqual(
      rows.map(([name]) => name),
      NAMES,
    )
    for (const [, plain = '', offloop = '', ratio = ''] of rows) {
      t.regex(plain, /^[\d.]+ (ms|s|MB)$/)
      t.regex(offloop, /^[\d.]+ (ms|s|MB)$/)
      t.regex(ratio, /^([\d.]+×|–)$/)
    }
  }
  t.deepEqual(readdirSync(place.out), ['step.html'])
  t.deepEqual(readdirSync(place.temporary), [])
  t.deepEqual(processesOf(place), [])
})

test('--json prints one object with the figures of both steps, and nothing else', async (t) => {
  const { place, stdout, report } = await runJson()
  t.is(stdout, `${JSON.stringify(report)}\n`)
  const { node, heapMb, rollouts, turns, tokens } = report
  t.deepEqual(
    { node, heapMb, rollouts, turns, tokens },
    { node: process.version, heapMb: 8, rollouts: 2, turns: 2, tokens: 500 },
  )
  t.true(0 < report.bytes)
  for (const { plain, offloop, ratios } of [report.first, report.second]) {
    t.deepEqual(Object.keys(plain), Object.keys(ratios))
    t.deepEqual(Object.keys(offloop), Object.keys(ratios))
    t.is(ratios.stepMs, plain.stepMs / offloop.stepMs)
    t.is(ratios.peakBytes, plain.peakBytes / offloop.peakBytes)
    for (const { stepMs, lagP50Ms, lagP99Ms, lagMaxMs, peakBytes } of [plain, offloop]) {
      t.true(0 < stepMs && 0 < peakBytes)
      t.true(lagP50Ms <= lagP99Ms && lagP99Ms <= lagMaxMs)
    }
  }
  // Resident memory only grows: the first step comes before the second in one process.
  t.true(report.first.plain.peakBytes <= report.second.plain.peakBytes)
  t.deepEqual(readdirSync(place.out), ['step.html'])
  t.deepEqual(readdirSync(place.temporary), [])
})

test('the page is one file that loads nothing and runs nothing', async (t) => {
  const { place } = await runTable()
  const page = readFileSync(join(place.out, 'step.html'), 'utf8')
  t.notRegex(page, /<script|<link|<img|<iframe|@import|url\(|\bon\w+=|https?:/)
  t.regex(page, /<html lang="en">/)
  t.regex(page, /prefers-color-scheme: dark/)
})

const chromium = browser()

;(chromium === undefined ? test.skip : test)(
  'a browser draws both lines, and shows the numbers of the run',
  async (t) => {
    const { place, report } = await runJson()
    const url = pathToFileURL(join(place.out, 'step.html')).href
    const dom = drawn(chromium ?? '', url, place)
    const paths = [...dom.matchAll(/<path class="lag" d="([^"]+)"/g)].map(([, path = '']) => path)
    t.is(paths.length, 2)
    for (const path of paths) t.regex(path, /^M0 100(L[\d.]+ [\d.]+)+$/)
    t.is(dom.match(/<svg role="img" aria-labelledby="\w+-title \w+-desc"/g)?.length, 2)
    t.deepEqual(cellsOf(dom), [HEAD, ...rowsOf(report.second)])
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
  const [args, options] = command(place, ['--rollouts', '4', '--turns', '4', '--tokens', '4000', '--heap', '8'])
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

const INVALID: readonly (readonly [args: string[], sentence: string])[] = [
  [['--tokens', '0'], '--tokens is an integer of at least 1'],
  [['--rollouts', '1.5'], '--rollouts is an integer of at least 1'],
  [['--turns', 'many'], '--turns is an integer of at least 1'],
  [['--heap', ''], '--heap is an integer of at least 0'],
  [['--heap', '0x10'], '--heap is an integer of at least 0'],
  [['--heap=-1'], '--heap is an integer of at least 0'],
  [['--heap', '1000000000'], '--heap 1000000000 (MB) does not fit in the memory of this machine'],
]

for (const [args, sentence] of INVALID) {
  test(`${args.join(' ')} is refused in a sentence`, (t) => {
    t.throws(() => readOptions(args), { message: sentence })
  })
}

test('an invalid option ends the process with the sentence alone', (t) => {
  const place = placeFor('wrong')
  const [args, options] = command(place, ['--heap', '1.5'])
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { ...options, encoding: 'utf8' })
  t.deepEqual({ status, stdout, stderr }, { status: 1, stdout: '', stderr: '--heap is an integer of at least 0\n' })
  t.deepEqual(readdirSync(place.temporary), [])
})

test('the live heap is 256 MB unless another is given', (t) => {
  t.is(readOptions([]).heapMb, 256)
  t.is(readOptions(['--heap', '0']).heapMb, 0)
  t.is(readOptions(['--heap', '1024']).heapMb, 1024)
})

test('V8 may use as much beside a live heap as without one', (t) => {
  const limitMb = Math.ceil(getHeapStatistics().heap_size_limit / 2 ** 20)
  t.deepEqual(memoryFlags(0), [])
  t.deepEqual(memoryFlags(1024), [`--max-old-space-size=${limitMb + 1024}`])
})
