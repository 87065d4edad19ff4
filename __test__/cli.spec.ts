/** The command line, as a process. */

import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import { version } from '../src/index.ts'
import { Bar, barLine, sizeOf } from '../src/cli/bar.ts'

const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
test.after.always(() => rmSync(folder, { recursive: true }))
const cli = fileURLToPath(new URL('../dist/cli/cli.js', import.meta.url))

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

async function offloop(
  args: readonly string[],
  onStart?: (kill: (signal: NodeJS.Signals) => void) => void,
): Promise<Ended> {
  const child = spawn(process.execPath, [cli, ...args], { cwd: folder, env: { ...process.env, NODE_OPTIONS: '' } })
  let [out, err] = ['', '']
  child.stdout.on('data', (text: Buffer) => (out += text.toString()))
  child.stderr.on('data', (text: Buffer) => (err += text.toString()))
  onStart?.((signal) => child.kill(signal))
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, out, err }
}

function file(name: string, content: string): string {
  writeFileSync(join(folder, name), content)
  return name
}

test('check: clean, torn, with bad rows; a line of JSON for each file', async (t) => {
  const clean = file('clean.jsonl', '{"a":1}\n')
  const torn = file('torn.jsonl', '{"a":1}\n{"a"')
  const bad = file('bad.jsonl', 'x\n{"a":1}\n')
  t.deepEqual(await offloop(['check', clean]), { code: 0, out: 'clean.jsonl: clean, 8 B\n', err: '' })
  t.deepEqual(await offloop(['check', torn]), {
    code: 1,
    out: 'torn.jsonl: torn from byte 8 on (partial), 4 bytes\n',
    err: '',
  })
  t.deepEqual(await offloop(['check', clean, bad]), {
    code: 1,
    out: 'clean.jsonl: clean, 8 B\nbad.jsonl: 1 bad row\n  byte 0: garbage, 1 bytes\n',
    err: '',
  })
  const { code, out } = await offloop(['check', '--json', clean, torn])
  t.is(code, 1)
  const reports = out.trimEnd().split('\n')
  t.deepEqual(
    reports.map((line) => Reflect.get(Object(JSON.parse(line)), 'action')),
    ['none', 'quarantined'],
  )
  t.is(readFileSync(join(folder, torn), 'utf8'), '{"a":1}\n{"a"')
})

test('repair: to a sidecar, by cutting, by a newline', async (t) => {
  const torn = '{"a":1}\n{"a"'
  const moved = await offloop(['repair', file('one.jsonl', torn)])
  t.is(moved.code, 0)
  t.regex(moved.out, /moved 4 torn bytes \(partial\) from byte 8 on to .*one\.jsonl\.torn-8-0\n/)
  t.is(readFileSync(join(folder, 'one.jsonl.torn-8-0'), 'utf8'), '{"a"')
  t.is((await offloop(['repair', '--policy', 'truncate', '--durability', 'none', file('two.jsonl', torn)])).code, 0)
  t.is(readFileSync(join(folder, 'two.jsonl'), 'utf8'), '{"a":1}\n')
  t.is((await offloop(['repair', '--policy', 'isolate', file('three.jsonl', torn)])).code, 0)
  t.is(readFileSync(join(folder, 'three.jsonl'), 'utf8'), `${torn}\n`)
  t.regex((await offloop(['repair', 'one.jsonl'])).out, /: clean\n/)
})

test('tail: rows as they stand, or fields of them', async (t) => {
  const rows = Array.from({ length: 30 }, (_, id) => `{"id": ${id}, "é": "ü"}`)
  const name = file('rows.jsonl', `${rows.join('\n')}\n`)
  t.is((await offloop(['tail', name])).out, `${rows.slice(-10).join('\n')}\n`)
  t.is((await offloop(['tail', '-n', '2', name])).out, `${rows.slice(-2).join('\n')}\n`)
  t.is((await offloop(['tail', '-n', '1', '-f', '/id', '--field', '/é', name])).out, '{"/id":29,"/é":"ü"}\n')
})

test('scan: a table, or JSON', async (t) => {
  const name = file('scan.jsonl', '{"a":1,"b":2}\n{"a":"long"}\nx\n[1]\n')
  const { code, out, err } = await offloop(['scan', '--json', name])
  t.deepEqual([code, err], [1, ''])
  t.deepEqual(JSON.parse(out), {
    path: name,
    bytes: 33,
    rows: 3,
    badRows: 1,
    bad: { garbage: 1 },
    biggest: { offset: 0, length: 13 },
    fields: { a: 2, b: 1 },
  })
  const table = await offloop(['scan', name])
  t.regex(
    table.out,
    /^rows +3\nbad rows +1 \(1 garbage\)\nbytes +33\nbiggest row +13 bytes, at byte 0\n {2}"a" +2\n {2}"b" +1\n$/m,
  )
})

test('scan --stats: types and sizes of each field', async (t) => {
  const name = file('stats.jsonl', '{"a":1,"b":[2,"x"]}\n{"a":null,"b":[]}\nx\n')
  const { code, out, err } = await offloop(['scan', '--stats', '--json', name])
  t.deepEqual([code, err], [1, ''])
  const bytes = (min: number, mean: number, max: number, sum: number): object => ({ min, mean, max, sum })
  t.deepEqual(JSON.parse(out), {
    path: name,
    bytes: 40,
    rows: 2,
    badRows: 1,
    bad: { garbage: 1 },
    biggest: { offset: 0, length: 19 },
    stats: {
      fields: [
        { pointer: '', rows: 2, values: 2, types: { object: 2 }, bytes: bytes(17, 18, 19, 36) },
        { pointer: '/a', rows: 2, values: 2, types: { null: 1, integer: 1 }, bytes: bytes(1, 2.5, 4, 5) },
        { pointer: '/b', rows: 2, values: 2, types: { array: 2 }, bytes: bytes(2, 4.5, 7, 9) },
        { pointer: '/b/*', rows: 1, values: 2, types: { integer: 1, string: 1 }, bytes: bytes(1, 2, 3, 4) },
      ],
      others: null,
    },
  })
  const table = await offloop(['scan', '--stats', name])
  t.regex(table.out, /^rows +2\nbad rows +1 \(1 garbage\)\nbytes +40\nbiggest row +19 bytes, at byte 0\n\nfield +rows/m)
  t.regex(table.out, /^"\/b\/\*" +1 \(50 %\) +2 +integer 1, string 1 +1 +2 +3 +4$/m)
  t.regex((await offloop(['scan', '--stats', file('empty.jsonl', '')])).out, /^rows +0\n[^]*\nfield {2}rows/m)
})

test('what cannot run says why in one line, and ends with 2', async (t) => {
  const cases: [string[], RegExp][] = [
    [['check', 'none.jsonl'], /^offloop: ENOENT: .*none\.jsonl'\n$/],
    [['check', '.'], /^offloop: EISDIR: .*\n$/],
    [['check'], /^offloop: check needs a file \(offloop --help\)\n$/],
    [['mend', 'x'], /^offloop: there is no command mend \(offloop --help\)\n$/],
    [['constructor', 'x'], /^offloop: there is no command constructor/],
    [['check', '--policy', 'truncate', 'x'], /^offloop: check has no option --policy/],
    [['check', '--stats', 'x'], /^offloop: check has no option --stats/],
    [['check', '--colour', 'x'], /^offloop: .*--colour.*\n$/],
    [['repair', '--policy', 'report', file('p.jsonl', '')], /^offloop: --policy must be one of/],
    [['tail', '-n', 'x', file('n.jsonl', '')], /^offloop: --rows must be a number/],
    [['tail', '-f', 'a', file('f.jsonl', '')], /^offloop: .*is no JSON Pointer.*\n$/],
  ]
  for (const [args, message] of cases) {
    const { code, out, err } = await offloop(args)
    t.deepEqual([code, out], [2, ''], args.join(' '))
    t.regex(err, message)
  }
})

test('help and version', async (t) => {
  for (const args of [[], ['--help'], ['check', '-h']]) {
    const { code, out } = await offloop(args)
    t.is(code, 0)
    t.regex(out, /^Usage: offloop[^]*Examples:/)
  }
  t.is((await offloop(['--version'])).out, `${version}\n`)
})

test('an interrupt ends it at once, and breaks nothing', async (t) => {
  const content = `${JSON.stringify({ a: 'x'.repeat(1000) })}\n`.repeat(300_000)
  const name = file('long.jsonl', content)
  for (const args of [
    ['scan', name],
    ['scan', '--stats', name],
  ]) {
    // oxlint-disable-next-line no-await-in-loop -- one process after the other
    const { code } = await offloop(args, (kill) => setTimeout(() => kill('SIGINT'), 300))
    // Where the machine is quick it is done by then.
    t.true(code === 130 || code === 0 || code === null)
  }
  t.is(readFileSync(join(folder, name)).length, content.length)
})

/** What a terminal would get. */
function terminal(isTTY: boolean): { readonly stream: NodeJS.WriteStream; readonly text: () => string } {
  let text = ''
  const write = (part: string): boolean => {
    text += part
    return true
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the bar uses these members alone
  return { stream: { isTTY, columns: 120, write } as unknown as NodeJS.WriteStream, text: () => text }
}

test('a bar on a terminal, in colour or not; nothing in a pipe', (t) => {
  const line = barLine('x.jsonl', { bytes: 25e8, total: 1e10, rows: 1000 }, 10)
  t.is(line, 'x.jsonl ██████░░░░░░░░░░░░░░░░░░ 25 % of 10.0 GB, 100 rows/s, 30 s left')
  t.is(barLine('x', { bytes: 0, total: 0 }, 1), 'x ████████████████████████ 100 % of 0 B, 0 B/s, 0 s left')
  t.is(sizeOf(999), '999 B')
  for (const hasColor of [true, false]) {
    const { stream, text } = terminal(true)
    const bar = new Bar(stream, 'x', hasColor)
    bar.show({ bytes: 1, total: 2 })
    bar.show({ bytes: 2, total: 2 })
    bar.clear()
    t.is(text().includes('\u001B[2m'), hasColor)
    t.is(text().split('%').length, 2, 'ten times a second at most')
    t.true(text().endsWith('\r\u001B[K'))
  }
  const pipe = terminal(false)
  const bar = new Bar(pipe.stream, 'x', true)
  bar.show({ bytes: 1, total: 2 })
  bar.clear()
  t.is(pipe.text(), '')
})
