/** `offloop scan --stats`: counts of fields, compared with a naive twin on random files. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import * as fc from 'fast-check'
import { statsOf } from '../src/cli/counts.ts'
import { countRows, unwrap } from '../src/runtime/native.ts'

const folder = mkdtempSync(join(tmpdir(), 'offloop-stats-'))
test.after.always(() => rmSync(folder, { recursive: true }))

let files = 0
async function scanned(content: string | Buffer): Promise<object> {
  files += 1
  const path = join(folder, `${files}.jsonl`)
  writeFileSync(path, content)
  return statsOf(unwrap(await countRows(path, true))).counts
}

// ───────────────────────────── the twin ─────────────────────────────

const [MOST_FIELDS, MOST_LEVELS, LONGEST_KEY] = [1000, 32, 256]

/** A value and its JSON. `next` is the offset behind it. */
interface Parsed {
  readonly type: string
  readonly value: unknown
  readonly size: number
  readonly next: number
  readonly items: readonly Parsed[]
  /** Values by key. A later key replaces an earlier one, and takes its own place. */
  readonly entries: ReadonlyMap<string, Parsed>
}

const SPACE = /[ \t\r]*/y
const SCALAR = /"(?:[^"\\]|\\.)*"|-?Infinity|NaN|true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y

function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0]
}

function skip(text: string, at: number): number {
  return at + (match(SPACE, text, at) ?? '').length
}

/** Parses the value at `at`. Throws at the first wrong character. */
function parse(text: string, at: number): Parsed {
  const bracket = text[at]
  if (bracket !== '{' && bracket !== '[') return parseScalar(text, at)
  const [items, entries] = [[] as Parsed[], new Map<string, Parsed>()]
  const end = bracket === '{' ? '}' : ']'
  let next = skip(text, at + 1)
  while (text[next] !== end) {
    if (items.length + entries.size !== 0 || text[next] === ',') {
      if (text[next] !== ',') throw new SyntaxError(`comma at ${next}`)
      next = skip(text, next + 1)
    }
    let key: Parsed | undefined
    if (bracket === '{') {
      key = parseScalar(text, next)
      next = skip(text, key.next)
      if (key.type !== 'string' || text[next] !== ':') throw new SyntaxError(`key at ${next}`)
      next = skip(text, next + 1)
    }
    const item = parse(text, next)
    next = skip(text, item.next)
    if (key === undefined) items.push(item)
    else {
      entries.delete(String(key.value))
      entries.set(String(key.value), item)
    }
  }
  next += 1
  const object = (): object => {
    const made = {}
    for (const [key, { value }] of entries) {
      Object.defineProperty(made, key, { value, enumerable: true, configurable: true, writable: true })
    }
    return made
  }
  const value = bracket === '{' ? object() : items.map((item) => item.value)
  const size = Buffer.byteLength(text.slice(at, next))
  return { type: bracket === '{' ? 'object' : 'array', value, size, next, items, entries }
}

function parseScalar(text: string, at: number): Parsed {
  const token = match(SCALAR, text, at)
  if (token === undefined) throw new SyntaxError(`nothing at ${at}`)
  const isWord = /^(?:NaN|-?Infinity)$/.test(token)
  const value: unknown = isWord ? Number(token) : JSON.parse(token)
  let type: string = typeof value
  if (value === null) type = 'null'
  else if (type === 'number') type = isWord || /[.eE]/.test(token) ? 'float' : 'integer'
  const next = at + token.length
  return { type, value, size: Buffer.byteLength(token), next, items: [], entries: new Map() }
}

/** Returns the records of a row: one value, or several objects and arrays. */
function recordsOf(row: string): Parsed[] {
  const records: Parsed[] = []
  for (let at = skip(row, 0); at !== row.length; at = skip(row, records.at(-1)?.next ?? 0)) {
    if (records.some(({ type }) => type !== 'object' && type !== 'array')) throw new SyntaxError('glued scalars')
    records.push(parse(row, at))
  }
  return records
}

class TwinField {
  rows = 0
  values = 0
  types: Record<string, number> = {}
  sizes: number[] = []

  add({ type, size }: Parsed): void {
    this.values += 1
    this.types[type] = (this.types[type] ?? 0) + 1
    this.sizes.push(size)
  }

  report(): object {
    const { rows, values, types, sizes } = this
    const sum = sizes.reduce((total, size) => total + size, 0)
    const [min, max] = [sizes.reduce((a, b) => Math.min(a, b)), sizes.reduce((a, b) => Math.max(a, b))]
    const bytes = { min, mean: sum / values, max, sum }
    return { rows, values, types, bytes }
  }
}

/** Counts the fields of records, one after the other. */
class Twin {
  readonly fields = new Map<string, TwinField>()
  readonly others = new TwinField()

  addRow(record: Parsed): void {
    const touched = new Set<TwinField>()
    this.#visit(record, '', 0, touched)
    for (const field of touched) field.rows += 1
  }

  #visit(value: Parsed, pointer: string | undefined, level: number, touched: Set<TwinField>): void {
    const field = this.#fieldOf(pointer, level)
    field.add(value)
    touched.add(field)
    if (field === this.others) return
    for (const item of value.items) this.#visit(item, `${pointer}/*`, level + 1, touched)
    for (const [key, item] of value.entries) {
      const isLong = LONGEST_KEY < Buffer.byteLength(key)
      const segment = key === '*' ? '~2' : key.replaceAll('~', '~0').replaceAll('/', '~1')
      this.#visit(item, isLong ? undefined : `${pointer}/${segment}`, level + 1, touched)
    }
  }

  #fieldOf(pointer: string | undefined, level: number): TwinField {
    const found = pointer === undefined ? undefined : this.fields.get(pointer)
    if (found !== undefined) return found
    if (pointer === undefined || MOST_LEVELS < level || this.fields.size === MOST_FIELDS) return this.others
    const field = new TwinField()
    this.fields.set(pointer, field)
    return field
  }
}

/** Returns the rows of a file with their offsets, without blank ones. */
function rowsOf(content: Buffer): { readonly offset: number; readonly bytes: Buffer }[] {
  const rows: { offset: number; bytes: Buffer }[] = []
  for (let offset = 0; offset < content.length;) {
    const end = content.indexOf(10, offset)
    rows.push({ offset, bytes: content.subarray(offset, end) })
    offset = end + 1
  }
  return rows
}

function twinOf(content: Buffer): { rows: number; badRows: number; fields: unknown[]; others: unknown } {
  const twin = new Twin()
  let [rows, badRows] = [0, 0]
  for (const { bytes } of rowsOf(content)) {
    const text = bytes.toString()
    try {
      const records = recordsOf(text)
      for (const record of records) twin.addRow(record)
      rows += records.length
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      badRows += 1
    }
  }
  const fields = [...twin.fields].map(([pointer, field]) => Object.assign({ pointer }, field.report()))
  return { rows, badRows, fields, others: twin.others.rows === 0 ? null : twin.others.report() }
}

interface Scanned {
  readonly bytes: number
  readonly rows: number
  readonly badRows: number
  readonly stats: { readonly fields: readonly { readonly pointer: string }[]; readonly others: unknown }
}

/** Asserts that a file has the counts of the twin. Fields are compared in the order of their pointers. */
async function compare(t: ExecutionContext, content: string | Buffer): Promise<Scanned> {
  const bytes = Buffer.from(content)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the test says what it expects
  const counts = (await scanned(bytes)) as Scanned
  const twin = twinOf(bytes)
  const byPointer = (a: { pointer: string }, b: { pointer: string }): number => (a.pointer < b.pointer ? -1 : 1)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each has a pointer
  const expected = (twin.fields as { pointer: string }[]).toSorted(byPointer)
  t.deepEqual([counts.bytes, counts.rows, counts.badRows], [bytes.length, twin.rows, twin.badRows])
  t.deepEqual(counts.stats.fields.toSorted(byPointer), expected)
  t.deepEqual(counts.stats.others, twin.others)
  return counts
}

// ───────────────────────────── random rows ─────────────────────────────

/** Makes random JSON: with white space, escapes, duplicate and hostile keys. */
class RowMaker {
  readonly #next: () => number
  readonly #hasWords: boolean

  constructor(seed: number, hasWords: boolean) {
    let state = seed | 1
    this.#next = () => {
      state ^= state << 13
      state ^= state >>> 17
      state ^= state << 5
      return state >>> 0
    }
    this.#hasWords = hasWords
  }

  pick<T>(...choices: readonly [T, ...T[]]): T {
    return choices[this.#next() % choices.length] ?? choices[0]
  }

  #space(): string {
    return this.pick('', '', '', '', ' ', ' \t', '\r')
  }

  #key(): string {
    return this.pick(
      '"a"',
      '"b"',
      '"a"',
      '"id"',
      '"*"',
      '""',
      '"/"',
      '"~"',
      '"~2"',
      '"a/b"',
      '"__proto__"',
      '"\\u0061"',
      '"constructor"',
      '"é"',
      '"\\ud800"',
      '"\\ud83d\\ude00"',
      '"1"',
      '"0"',
      '"\\n\\""',
      `"${'k'.repeat(256)}"`,
      `"${'k'.repeat(257)}"`,
    )
  }

  #scalar(): string {
    const scalars = [
      '0',
      '-0',
      '1',
      '12345',
      '-7',
      '1.0',
      '0.5',
      '1e3',
      '-2E-5',
      '1e400',
      '123456789012345678901',
      'true',
      'false',
      'null',
      '""',
      '"text"',
      '"é中😀"',
      '"\\n\\u00e9\\\\"',
      '"NaN"',
      '"\\udfff"',
      '"[{"',
    ] as const
    if (this.#hasWords && this.#next() % 3 === 0) return this.pick('NaN', 'Infinity', '-Infinity')
    return this.pick(...scalars)
  }

  value(depth: number): string {
    const kind = depth === 0 ? 0 : this.#next() % 4
    if (kind < 2) return this.#scalar()
    return this.container(depth, kind === 2)
  }

  container(depth: number, isObject = true): string {
    const items = Array.from({ length: this.#next() % 6 }, () => {
      const value = `${this.#space()}${this.value(depth - 1)}${this.#space()}`
      return isObject ? `${this.#space()}${this.#key()}${this.#space()}:${value}` : value
    })
    const text = items.length === 0 ? this.#space() : items.join(',')
    return isObject ? `{${text}}` : `[${text}]`
  }

  row(): string {
    switch (this.#next() % 10) {
      case 0:
        return this.value(3)
      case 1:
        return `${this.container(3)}${this.#space()}${this.container(2, false)}`
      case 2:
        return this.container(4).slice(0, -1)
      case 3:
        return this.pick('', 'x', '   ', '{"a":1}}', '{"a":1,}', '{"new":1,"a"')
      default:
        return `${this.#space()}${this.container(4)}${this.#space()}`
    }
  }
}

function fileOf(seed: number, hasWords: boolean): string {
  const maker = new RowMaker(seed, hasWords)
  return `${Array.from({ length: 1 + (seed % 30) }, () => maker.row()).join('\n')}\n`
}

test('the twin parses as JSON.parse does', (t) => {
  for (let seed = 1; seed < 2000; seed += 1) {
    const text = new RowMaker(seed, false).value(4)
    t.deepEqual(parse(text, 0).value, JSON.parse(text))
  }
})

test('random files have the counts of the twin', async (t) => {
  const property = fc.asyncProperty(fc.integer({ min: 1 }), fc.boolean(), async (seed, hasWords) => {
    await compare(t, fileOf(seed, hasWords))
  })
  await fc.assert(property, { numRuns: 400 })
})

test('the last of several equal keys counts, with all that is in it', async (t) => {
  const { stats } = await compare(t, '{"a":{"b":1},"a":[2,3],"\\u0061":4,"c":{"d":1,"d":{"e":1,"e":2}}}\n{"a":5}\n')
  t.deepEqual(
    stats.fields.map(({ pointer }) => pointer),
    ['', '/a', '/c', '/c/d', '/c/d/e'],
  )
})

test('each hostile key is a field of its own', async (t) => {
  const keys = [
    '',
    '/',
    '~',
    '*',
    '**',
    '~0',
    '~1',
    '~2',
    '__proto__',
    'constructor',
    'a"b',
    '\\',
    '\n',
    '\u0000',
    '\ud800',
    '\udfff',
    '\ufffd',
    '😀',
  ]
  const row = `{${keys.map((key) => `${JSON.stringify(key)}:[1]`).join(',')}}\n[[2]]\n`
  const { stats } = await compare(t, row)
  t.is(stats.fields.length, 1 + 2 * keys.length + 2)
})

test('fields beyond a thousand are summed up; torn rows take no place', async (t) => {
  const wide = (from: number, count: number): string =>
    `{${Array.from({ length: count }, (_, index) => `"k${from + index}":{"x":[${index}]}`).join(',')}}`
  const { stats } = await compare(
    t,
    `${wide(5000, 400).slice(0, -1)}\n${wide(0, 200)}\n${wide(100, 400)}\n${wide(0, 10)}\n`,
  )
  t.is(stats.fields.length, MOST_FIELDS)
  t.not(stats.others, null)
  await compare(t, `${wide(0, 400)}\n{"new":1,"new":2,"other":{"new":1},"new":[3]}\n`)
})

test('deep rows and huge rows', async (t) => {
  const nested = (depth: number): string => `${'{"a":['.repeat(depth)}1${']}'.repeat(depth)}`
  for (const depth of [1, 15, 16, 17, 200]) await compare(t, `${nested(depth)}\n${nested(2)}\n`)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the test says what it expects
  const deep = (await scanned(`${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}\n`)) as Scanned
  t.is(deep.stats.fields.length, MOST_LEVELS + 1)
  const ids = Array.from({ length: 300_000 }, (_, id) => id)
  await compare(t, `${JSON.stringify({ ids, text: 'é'.repeat(3_000_000) })}\n{"ids":[]}\n`)
})

test('bytes that are not UTF-8 count as U+FFFD, three bytes each', async (t) => {
  const rows = ['{"a":"x', '","\xe9":[NaN,"\xf0\x9f\x98"]}\n', '{"\xff":1,"\xff":2}\n']
  await compare(t, Buffer.from(`${rows[0]}\xc3${rows[1]}${rows[2]}`, 'latin1'))
})

test('an empty file, a blank one, one of bad rows', async (t) => {
  for (const content of ['', '\n\n', 'x\n{"a"\n']) {
    const { stats } = await compare(t, content)
    t.deepEqual(stats, { fields: [], others: null })
  }
})
