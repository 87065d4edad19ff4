/** Benchmarks: what is run, what is kept, the live heap beside them, and the quick form of `gc`. */

import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import test from 'ava'
import { emptyHeap, fillHeap, usedBytes } from '../benchmark/heap.ts'
import type { Figures } from '../benchmark/step/figures.ts'
import type { CallReport, CallRow } from '../benchmark/json/report.ts'
import { callSections, goalsOf, mergedReport, missesOf, withCallTables } from '../scripts/calls-table.mjs'
import { withStepTable } from '../scripts/readme.mjs'
import { keep } from '../scripts/results.mjs'
import { lineOf, NODES, runsOf } from '../scripts/runs.mjs'

const root = fileURLToPath(new URL('../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
test.after.always(() => rmSync(folder, { recursive: true }))

const OUTPUT = `a warning

# Snails

2026-01-02, Node v24.0.0, commit 1234567
A machine, 2 cores

What they do.

## Races

| way | ms |
| --- | ---: |
| uphill | 3 (1.0) |
| downhill | |
`

function section(noun: string, node: string, output = OUTPUT, code = 0): Parameters<typeof keep>[2][0] {
  return { noun, node, commit: 'commit 1234567', machine: 'A machine', code, output }
}

function kept(name: string): { readonly text: string; readonly sections: readonly string[] } {
  const text = readFileSync(join(folder, `${name}.md`), 'utf8')
  return { text, sections: [...text.matchAll(/^## (.+)$/gm)].map(([, title = '']) => title) }
}

test('a report is kept with its origin', (t) => {
  keep(folder, 'one', [section('snails', 'Node v24.0.0')])
  const { text } = kept('one')
  t.is(
    text,
    `# Benchmarks of one

## snails, Node v24.0.0

commit 1234567, A machine

What they do.

### Races

| way | ms |
| --- | ---: |
| uphill | 3 (1.0) |
| downhill | |
`,
  )
})

test('a later run takes the place of one of the same benchmark and Node, and leaves the others', (t) => {
  keep(folder, 'two', [section('snails', 'Node v24.0.0'), section('ants', 'Node v24.0.0')])
  keep(folder, 'two', [section('snails', 'Node v20.0.0'), section('ants', 'Node v24.0.0', 'none ran')])
  const { text, sections } = kept('two')
  t.deepEqual(sections, ['ants, Node v24.0.0', 'snails, Node v20.0.0', 'snails, Node v24.0.0'])
  t.regex(text, /## ants, Node v24\.0\.0\n\ncommit 1234567, A machine\n\nnone ran\n\n## snails/)
})

test('what failed is said to have failed', (t) => {
  keep(folder, 'three', [section('snails', 'Node v24.0.0', 'Error: no snails', 1)])
  const { text, sections } = kept('three')
  t.regex(text, /It failed, with code 1\./)
  t.deepEqual(sections, ['snails, Node v24.0.0'])
})

test('runs of a step with other heaps are kept side by side, by Node and size', (t) => {
  const run = (node: string, heap: number): ReturnType<typeof section> =>
    section('step', `Node ${node}, ${heap} MB live`, `heap ${heap}`)
  keep(folder, 'four', [run('v24.0.0', 1024), run('v24.0.0', 0), run('v20.0.0', 256)])
  keep(folder, 'four', [run('v24.0.0', 256), run('v24.0.0', 0)])
  t.deepEqual(kept('four').sections, [
    'step, Node v20.0.0, 256 MB live',
    'step, Node v24.0.0, 0 MB live',
    'step, Node v24.0.0, 256 MB live',
    'step, Node v24.0.0, 1024 MB live',
  ])
})

test('the step runs on all Nodes with three heaps, other benchmarks on one Node unless all are asked for', (t) => {
  const heapsOf = (runs: ReturnType<typeof runsOf>): string[] =>
    runs.map(({ version, args, label }) => `${version ?? 'this'} ${args.slice(0, 2).join(' ')}${label}`)
  const heaps = ['--heap 0, 0 MB live', '--heap 256, 256 MB live', '--heap 1024, 1024 MB live']
  t.deepEqual(
    heapsOf(runsOf('step')),
    NODES.flatMap((node) => heaps.map((heap) => `${node} ${heap}`)),
  )
  t.deepEqual(
    heapsOf(runsOf('step', { isQuick: true })),
    heaps.map((heap) => `this ${heap}`),
  )
  t.deepEqual(runsOf('json'), [{ version: undefined, args: [], label: '' }])
  t.deepEqual(
    runsOf('gc', { areAllNodes: true }).map(({ version }) => version),
    NODES,
  )
})

const FIGURES: Figures = {
  blockedMs: 8123,
  lagP50Ms: 0.84,
  lagP99Ms: 12.3,
  lagMaxMs: 99.6,
  pingP99Ms: 421,
  stepMs: 2000,
  cpuMs: 3000,
  peakBytes: 1.5e9,
}

test("README's table of a step takes the figures of the second step, and the rest of README stays", (t) => {
  const ratios = { ...FIGURES, blockedMs: 27.4, lagP50Ms: null, lagP99Ms: 4.25 }
  const report = {
    node: 'v24.1.0',
    heapMb: 256,
    second: { plain: FIGURES, offloop: { ...FIGURES, blockedMs: 9 }, ratios },
  }
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  const changed = withStepTable(readme, report)
  const isOfTable = (line: string): boolean => line.startsWith('| ') || line.startsWith('| --')
  const restOf = (text: string): string[] => text.split('\n').filter((line) => !isOfTable(line))
  t.deepEqual(restOf(changed), restOf(readme))
  t.regex(changed, /^\| `npm run bench -- step`, Node 24, 256 MB live \| plain \| offloop \| plain ÷ offloop \|$/m)
  t.regex(changed, /^\| event loop blocked, in all \| 8\.12 s \| 9\.0 ms \| 27× \|$/m)
  t.regex(changed, /^\| lag of the event loop, p50 \| 0\.8 ms \| 0\.8 ms \| – \|$/m)
  t.regex(changed, /^\| lag of the event loop, p99 \| 12 ms \| 12 ms \| 4\.3× \|$/m)
  t.regex(changed, /^\| peak resident memory \| 1500 MB \| 1500 MB \|/m)
  t.is(withStepTable(changed, report), changed)
  t.throws(() => withStepTable('# nothing\n', report), { message: /README\.md has no table/ })
})

const ROW: CallRow = {
  sink: 'bytes',
  baseline: 'plain',
  shape: 'dictionaries',
  size: 1_234_567,
  heapMb: 256,
  plain: { first: 8, twenty: 4, warm: 2 },
  offloop: { first: 8.5, twenty: 5, warm: 1 },
}
const CALL_REPORT: CallReport = { node: '24.1.0', day: '2026-01-02', commit: 'commit 1', machine: 'M', rows: [ROW] }

test('goals of calls depend on the value, on what is compared, and on Node', (t) => {
  const goals = (row: Partial<CallRow>, node = '24.1.0'): readonly number[] => {
    const { first, twenty, warm } = goalsOf({ ...ROW, ...row }, node)
    return [first, twenty, warm]
  }
  t.deepEqual(goals({}), [0.8, 0.95, 0.98])
  t.deepEqual(goals({ shape: '20k dates' }), [0.9, 2, 14])
  t.deepEqual(goals({ shape: '20k dates' }, '26.1.0'), [0.9, 2, 12])
  t.deepEqual(goals({ shape: '20k dates', baseline: 'worker' }), [0.8, 0.95, 0.98])
  t.deepEqual(goals({ shape: '20k dates', sink: 'file' }), [0.8, 0.95, 0.98])
  t.deepEqual(goals({ shape: 'a log line', sink: 'sync' }), [0.9, 0.95, 1])
  t.deepEqual(goals({ shape: '500 floats', sink: 'sync' }, '26.1.0'), [0.9, 0.95, 2])
})

test('a goal is missed below it; a first call of a value without a larger goal may take 1 ms more', (t) => {
  const times = (first: number, twenty: number, warm: number): CallRow['offloop'] => ({ first, twenty, warm })
  const misses = (row: Partial<CallRow>): string[] => missesOf({ ...ROW, ...row }, '24.1.0')
  t.deepEqual(misses({}), ['twenty'])
  t.deepEqual(misses({ plain: times(1, 1, 1), offloop: times(2, 1, 1) }), [])
  t.deepEqual(misses({ plain: times(1, 1, 1), offloop: times(2.01, 1, 1.1) }), ['first', 'warm'])
  t.deepEqual(misses({ plain: times(1, 4, 9), offloop: times(1.5, 1, 1), shape: '100 spans' }), ['first'])
  t.deepEqual(misses({ plain: null }), [])
})

test('tables of calls show every number beside its goal, and stand between the marks of a document', (t) => {
  const other = { ...ROW, baseline: 'worker', plain: null, size: 40 } as const
  const report: CallReport = { ...CALL_REPORT, rows: [ROW, other] }
  const lines = callSections([report]).join('\n').split('\n')
  const shown = '| 256 | 8.00, 4.00, 2.00 | 8.50, 5.00, 1.00 | 0.94 | ≥ 0.8 | 0.80 ✘ | ≥ 0.95 | 2.00 | ≥ 0.98 |'
  t.true(lines.includes(`| dictionaries | 1.2 MB ${shown}`))
  t.true(lines.some((line) => line.startsWith('| dictionaries | 40 B | 256 | – |') && line.includes('other bytes')))
  t.true(lines.includes('| 24.1.0 | `encode`: `Buffer.from(JSON.stringify(value))` | 3 | 2 | 1 |'))
  const document = readFileSync(join(root, 'docs/performance.md'), 'utf8')
  const changed = withCallTables(document, [report])
  const [head = ''] = document.split('<!-- json-calls: begin -->')
  t.true(changed.startsWith(head))
  t.true(changed.includes(`| dictionaries | 1.2 MB ${shown}`))
  t.is(withCallTables(changed, [report]), changed)
  t.throws(() => withCallTables('# nothing\n', [report]), { message: /the document has no/ })
})

test('figures of a later run replace those of the same measurement, and leave the others', (t) => {
  const rows = [ROW, { ...ROW, heapMb: 0 }, { ...ROW, sink: 'file' }] as const
  const later = {
    ...CALL_REPORT,
    day: '2026-01-03',
    commit: 'commit 2',
    rows: [
      { ...ROW, size: 7 },
      { ...ROW, shape: 'other' },
    ],
  }
  const merged = mergedReport({ ...CALL_REPORT, rows }, later)
  t.deepEqual([merged.day, merged.commit], ['2026-01-03', 'commit 1, commit 2'])
  t.is(mergedReport(merged, later).commit, merged.commit)
  t.deepEqual(
    merged.rows.map(({ sink, shape, size, heapMb }) => [sink, shape, size, heapMb]),
    [
      ['bytes', 'dictionaries', 7, 256],
      ['bytes', 'dictionaries', ROW.size, 0],
      ['file', 'dictionaries', ROW.size, 256],
      ['bytes', 'other', ROW.size, 256],
    ],
  )
})

test('the benchmark json-calls, quick and of one value, compares, measures and prints all ways', async (t) => {
  const line = lineOf(process.execPath, 'json-calls')
  const variables = { OFFLOOP_BENCH_QUICK: '1', OFFLOOP_BENCH_ONLY: 'one small object', OFFLOOP_BENCH_HEAPS: '0' }
  const env = { ...process.env, NODE_OPTIONS: '', ...variables }
  const { stdout } = await promisify(execFile)(line, { cwd: root, env, shell: true })
  const rows = stdout.split('\n').filter((text) => text.startsWith('| one small object |'))
  t.is(rows.length, 5)
  for (const row of rows) t.notRegex(row, /NaN|undefined|Infinity|other bytes/)
})

test.serial('a live heap has the size that was asked for, and goes when it is emptied', (t) => {
  // Code that V8 compiles meanwhile may hold the pool of `fillHeap` for a while, which has 1 MB.
  const elseMb = 2
  for (const megabytes of [0, 8, 40]) {
    const before = usedBytes()
    const told = fillHeap(megabytes)
    const grownMb = (usedBytes() - before) / 1e6
    t.true(Math.abs(grownMb - megabytes) <= elseMb, `${megabytes}: ${grownMb}`)
    t.true(Math.abs(grownMb - told) <= elseMb, `${grownMb}, told ${told}`)
    emptyHeap()
    const leftMb = (usedBytes() - before) / 1e6
    t.true(leftMb <= elseMb, `${megabytes}: ${leftMb} left`)
  }
})

test('every page of a live heap is resident', async (t) => {
  const script = `
    import { fillHeap } from './benchmark/heap.ts'
    const before = process.memoryUsage().rss
    fillHeap(128)
    console.log(process.memoryUsage().rss - before)`
  const args = ['--import', '@oxc-node/core/register', '--input-type=module', '--eval', script]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root })
  t.true(128e6 * 0.95 <= Number(stdout), stdout)
})

test.serial('a case is made and measured beside the live heap, then stopped', async (t) => {
  // Read when the module is loaded: 16 MB, and few rounds.
  process.env['OFFLOOP_BENCH_QUICK'] = '1'
  const { besideHeap } = await import('../benchmark/measure.ts')
  const before = usedBytes()
  const seen: string[] = []
  const see = (name: string): void => {
    if (!seen.includes(name)) seen.push(name)
  }
  const contender = (name: string): { name: string; run: () => void } => ({ name, run: () => see(name) })
  const [text = '', rows = ''] = await besideHeap([
    {
      name: 'a case',
      make: () => {
        see(16e6 * 0.95 <= usedBytes() - before ? 'made beside the heap' : 'made without a heap')
        return { plain: contender('theirs'), ours: contender('ours'), stop: () => see('stopped') }
      },
    },
    {
      name: 'with inputs',
      make: () => ({
        plain: { ...contender('other'), prepare: () => 1 },
        ours: { name: 'own', prepare: () => 2, run: (input) => see(`own ${String(input)}`) },
      }),
    },
  ])
  t.regex(text, /^## With 16 MB of live objects/)
  const cells = rows.split('\n').map((line) => line.split('|').map((cell) => cell.trim()))
  t.deepEqual(
    cells.slice(2).map(([, what, plain, , , ours]) => [what, plain, ours]),
    [
      ['a case', 'theirs', 'ours'],
      ['with inputs', 'other', 'own'],
    ],
  )
  t.deepEqual(seen, ['made beside the heap', 'theirs', 'ours', 'stopped', 'other', 'own 2'])
  t.true(usedBytes() - before < 8e6)
})

const GC_PARTS: readonly (readonly [only: string, head: string, firstCells: readonly string[]])[] = [
  ['pipeline', '| live MB | loop ms of a round | ÷ without a heap | new ArrayBuffers |', ['0', '16']],
  ['bodies', '| live MB | fetch, loop ms | client, loop ms | fetch ÷ client |', ['0', '16']],
  [
    'chat',
    '| value | MB | live MB | plain, loop ms | encode, loop ms | plain ÷ encode |',
    ['300 chat messages', '300 chat messages'],
  ],
]

for (const [only, head, firstCells] of GC_PARTS) {
  test(`the benchmark gc, quick and only of ${only}, prints one table`, async (t) => {
    const line = lineOf(process.execPath, 'gc')
    const env = { ...process.env, NODE_OPTIONS: '', OFFLOOP_BENCH_QUICK: '1', OFFLOOP_BENCH_ONLY: only }
    const { stdout } = await promisify(execFile)(line, { cwd: root, env, shell: true })
    const [first = '', , ...rows] = stdout.split('\n').filter((text) => text.startsWith('|'))
    t.is(first, head)
    t.deepEqual(
      rows.map((row) => row.split('|')[1]?.trim()),
      firstCells,
    )
    for (const row of rows) t.notRegex(row, /NaN|undefined|Infinity/)
  })
}
