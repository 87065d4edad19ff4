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

test.serial('a live heap has the size that was asked for, and goes when it is emptied', (t) => {
  for (const megabytes of [0, 1, 40]) {
    const before = usedBytes()
    const told = fillHeap(megabytes)
    const grownMb = (usedBytes() - before) / 1e6
    t.true(Math.abs(grownMb - megabytes) <= Math.max(megabytes * 0.05, 1), `${megabytes}: ${grownMb}`)
    t.true(Math.abs(grownMb - told) <= 1, `${grownMb}, told ${told}`)
    emptyHeap()
    t.true(usedBytes() - before < 1e6)
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
