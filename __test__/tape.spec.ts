/**
 * The words of a tape: capture (`src/capture`, on the JS thread) writes them, `crates/json` reads them in tasks. Both have
 * tables of their own, which must be equal. Reads the constants from both sources.
 */

import { readFileSync } from 'node:fs'
import test from 'ava'

type Table = Readonly<Record<string, number>>

const capture = read('../src/capture/opcodes.ts')
const typed = read('../src/capture/typed-array.ts')
const crate = read('../crates/json/src/tape.rs')

/** Names of the crate, where capture has other ones. */
const CAPTURE_NAMES: Readonly<Record<string, string>> = { BOTH: 'IN_BOTH' }

test('capture and crate have the same words', (t) => {
  const words = wordsOfCrate(crate)
  t.is(Object.keys(words).length, 15 + 3 + 6 + 7 + 4, 'every word is found')
  t.deepEqual(wordsOfCapture(capture), words)
})

test('capture and crate have the same types of elements', (t) => {
  const types = variantsOf(crate, 'ElementKind')
  t.is(types.length, 12, 'every type is found')
  const expected = Object.fromEntries(types.map((name, index) => [`${name}Array`, index]))
  t.deepEqual(elementsOfCapture(typed), expected)
})

test('the crate reads each tag as it is declared', (t) => {
  const arms = armsOf(crate, 'Tag')
  const { Extra: last, ...others } = tagsOfCrate(crate)
  t.is(last, 15, 'the last tag is read as every other number')
  t.deepEqual(arms, others)
})

for (const [what, from, to] of [
  ['a tag has another number', 'const ROPE = 4', 'const ROPE = 5'],
  ['a tag is gone', /^export const UTF16 = .*\n/m, ''],
  ['a tag has another name', 'const LONG = 12', 'const LENGTHY = 12'],
  ['a tag is new', /^export const LATIN1 = .*\n/m, '$&export const LATIN2 = 16\n'],
  ['a payload has another number', '(3 << 4) | EXTRA', '(7 << 4) | EXTRA'],
  ['a payload has another tag', '(2 << 4) | OPEN', '(2 << 4) | CLOSE'],
  ['a text is elsewhere', 'const IN_ROPE = 2', 'const IN_ROPE = 3'],
] as const) {
  test(`a changed capture differs: ${what}`, (t) => {
    const changed = capture.replace(from, to)
    t.not(changed, capture)
    t.notDeepEqual(wordsOfCapture(changed), wordsOfCrate(crate))
  })
}

for (const [what, from, to] of [
  ['a tag has another number', 'Rope = 4,', 'Rope = 16,'],
  ['a tag is new', 'Rope = 4,', 'Rope = 4,\n    Cord = 16,'],
  ['a tag is gone', /^ {4}Rope = 4,\n/m, ''],
  ['a literal has another number', 'const FALSE: usize = 2', 'const FALSE: usize = 3'],
  ['a container has another number', 'const MAP: usize = 2', 'const MAP: usize = 3'],
  ['a text is elsewhere', '2 => Some(Self::Rope)', '4 => Some(Self::Rope)'],
  ['a payload has another number', '4 => Some(Self::OnlyJson)', '7 => Some(Self::OnlyJson)'],
] as const) {
  test(`a changed crate differs: ${what}`, (t) => {
    const changed = crate.replace(from, to)
    t.not(changed, crate)
    t.notDeepEqual(wordsOfCrate(changed), wordsOfCapture(capture))
  })
}

test('a changed order of the types of elements differs', (t) => {
  const changed = typed.replace('Int8Array: 0', 'Int8Array: 1')
  t.not(changed, typed)
  t.notDeepEqual(elementsOfCapture(changed), elementsOfCapture(typed))
})

function read(path: string): string {
  return readFileSync(new URL(path, import.meta.url), 'utf8')
}

/** Constants whose value is a number, a tag, or `(payload << 4) | tag`: all from `DOUBLE` to the first of another form. */
function wordsOfCapture(source: string): Table {
  const words: Record<string, number> = {}
  const constants = source.slice(source.indexOf('export const DOUBLE')).matchAll(/^(?:export )?const (\w+).* = (.*)$/gm)
  for (const [, name = '', value = ''] of constants) {
    const { payload = '0', tag = '' } = /^(?:\((?<payload>\d+) << 4\) \| )?(?<tag>\w+)$/.exec(value)?.groups ?? {}
    const low = words[tag] ?? Number(tag || Number.NaN)
    if (Number.isNaN(low)) break
    words[name] = (Number(payload) << 4) | low
  }
  return words
}

/** Words by the names that capture gives them. The tag of an integer is zero and has no name there. */
function wordsOfCrate(source: string): Table {
  const tags = tagsOfCrate(source)
  const { Literal = Number.NaN, Open = Number.NaN, Close = Number.NaN, Extra = Number.NaN } = tags
  const payloads = constantsOf(source)
  const words: Record<string, number> = {}
  for (const [name, tag] of Object.entries(tags)) if (name !== 'Int') words[screaming(name)] = tag
  for (const name of ['NULL', 'TRUE', 'FALSE']) words[name] = wordOf(payloads[name], Literal)
  for (const name of ['ARRAY', 'OBJECT', 'MAP']) {
    words[`OPEN_${name}`] = wordOf(payloads[name], Open)
    words[`CLOSE_${name}`] = wordOf(payloads[name], Close)
  }
  for (const [name, payload] of Object.entries(armsOf(source, 'Extra'))) words[screaming(name)] = wordOf(payload, Extra)
  for (const [name, place] of Object.entries(armsOf(source, 'TextLocation'))) words[`IN_${screaming(name)}`] = place
  return words
}

function wordOf(payload: number | undefined, tag: number): number {
  return ((payload ?? Number.NaN) << 4) | tag
}

function tagsOfCrate(source: string): Table {
  return tableOf(blockOf(source, /^pub enum Tag \{$/m), /^ {4}(?<name>\w+) = (?<value>\d+),$/gm)
}

function constantsOf(source: string): Table {
  return tableOf(source, /^pub const (?<name>\w+): usize = (?<value>\d+);$/gm)
}

/** Numbers that `of` makes a variant of. */
function armsOf(source: string, type: string): Table {
  const block = blockOf(source, new RegExp(`^impl ${type} \\{$`, 'm'))
  return tableOf(block, /^ +(?<value>\d+) => (?:Some\()?Self::(?<name>\w+)\)?,$/gm)
}

function variantsOf(source: string, type: string): string[] {
  const block = blockOf(source, new RegExp(`^ {4}const ALL: \\[Self; \\d+\\] = \\[$`, 'm'))
  if (!source.includes(`pub enum ${type} {`)) return []
  return [...block.matchAll(/Self::(\w+),/g)].map(([, name = '']) => name)
}

function elementsOfCapture(source: string): Table {
  return tableOf(source, /^ {2}(?<name>\w+Array): (?<value>\d+),$/gm)
}

/** Text from the line that matches to the next that closes a block at its indentation. */
function blockOf(source: string, start: RegExp): string {
  const from = source.search(start)
  if (from === -1) return ''
  const indent = /^ */.exec(source.slice(from))?.[0] ?? ''
  const end = source.slice(from).search(new RegExp(`^${indent}[\\]}]`, 'm'))
  return source.slice(from, from + end)
}

function tableOf(text: string, entries: RegExp): Table {
  const table: Record<string, number> = {}
  for (const { groups } of text.matchAll(entries)) {
    if (groups !== undefined) table[groups['name'] ?? ''] = Number(groups['value'])
  }
  return table
}

/** `OnlyJson` as `ONLY_JSON`. */
function screaming(name: string): string {
  const words = name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase()
  return CAPTURE_NAMES[words] ?? words
}
