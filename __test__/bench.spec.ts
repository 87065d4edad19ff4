/** What is kept of benchmarks. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { keep } from '../scripts/results.mjs'

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
