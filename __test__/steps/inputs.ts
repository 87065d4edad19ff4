/** Inputs that grow, one list for each entry point: what somebody would send to make a call take longer than it may. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  capture,
  concatExperts,
  createEncoder,
  decodeBase64,
  decodeExperts,
  encode,
  encodeLines,
  encodeMsgpack,
  encodeSync,
  openJsonl,
  parse,
  rawJson,
  readJsonl,
  repair,
  saveFile,
  split,
} from '../../src/index.ts'
import { createBatcher, createDeferQueue } from '../../src/kit/index.ts'

/** Work on an input that grows: `steps` must grow no faster than n log n with `size`. */
export interface Growing {
  readonly name: string
  /** The least size. */
  readonly size: number
  /** Makes the input, which is not counted, and returns the work, which is. */
  readonly make: (size: number) => () => unknown
}

function list<T>(length: number, make: (index: number) => T): T[] {
  return Array.from({ length }, (_, index) => make(index))
}

function nestedArrays(levels: number): unknown {
  let value: unknown = []
  for (let level = 1; level < levels; level += 1) value = [value]
  return value
}

function nestedObjects(levels: number): unknown {
  let value: unknown = {}
  for (let level = 1; level < levels; level += 1) value = { b: 1, a: value }
  return value
}

function keysOf(count: number): Record<string, number> {
  return Object.fromEntries(list(count, (index) => [`k${count - index}`, index]))
}

function bodyOf(count: number): Buffer {
  return Buffer.from(JSON.stringify(keysOf(count)))
}

function lifts<T>(count: number, pointer: (index: number) => string, lift: T): Record<string, T> {
  return Object.fromEntries(list(count, (index) => [pointer(index), lift]))
}

async function* byteByByte(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (const byte of bytes) yield Uint8Array.of(byte)
}

async function drain(rows: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of rows);
}

const folder = mkdtempSync(join(tmpdir(), 'offloop-steps-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
let files = 0

function newPath(): string {
  files += 1
  return join(folder, `${files}.jsonl`)
}

function fileOf(text: string): string {
  const path = newPath()
  writeFileSync(path, text)
  return path
}

/** Options under which JSON.stringify gets nothing. */
const WALKED = { maxDepth: 99_999 }

const ENCODING: readonly Growing[] = [
  // JSON.stringify compares each level with all others, down to the end of its stack at 4,200 levels. With a bound of its
  // own, a value is walked.
  { name: 'encode: nested arrays', size: 600, make: (n) => workOn(nestedArrays(n), (value) => encode(value, WALKED)) },
  {
    name: 'encode: nested objects',
    size: 300,
    make: (n) => workOn(nestedObjects(n), (value) => encode(value, WALKED)),
  },
  {
    name: 'encode: nested objects, sorted',
    size: 300,
    make: (n) => workOn(nestedObjects(n), (value) => encode(value, { ...WALKED, sortKeys: true })),
  },
  {
    name: 'digest: nested objects',
    size: 300,
    make: (n) => workOn(nestedObjects(n), (value) => capture(value).digest()),
  },
  { name: 'encode: one object of many keys', size: 1000, make: (n) => workOn(keysOf(n), (value) => encode(value)) },
  {
    name: 'encode: many keys in reverse, sorted',
    size: 1000,
    make: (n) => workOn(keysOf(n), (value) => encode(value, { sortKeys: true })),
  },
  {
    name: 'encode: objects of one key each, all distinct',
    size: 500,
    make: (n) =>
      workOn(
        list(n, (index) => ({ [`k${index}`]: 1 })),
        (value) => encode(value),
      ),
  },
  {
    name: 'encode: objects of ten keys each, all distinct',
    size: 200,
    make: (n) =>
      workOn(
        list(n, (row) => Object.fromEntries(list(10, (key) => [`k${row}_${key}`, key]))),
        (value) => encode(value),
      ),
  },
  {
    name: 'encode: the same keys in changing order',
    size: 200,
    make: (n) =>
      workOn(
        list(n, (row) => Object.fromEntries(list(20, (key) => [`k${(key * 7 + row * 13) % 97}`, key]))),
        (value) => encode(value),
      ),
  },
  {
    name: 'encodeSync: an object of objects of distinct keys',
    size: 1000,
    make: (n) =>
      workOn(Object.fromEntries(list(n, (row) => [`o${row}`, { [`k${row}`]: row }])), (value) => encodeSync(value)),
  },
  {
    name: 'encode: a list of keys to keep',
    size: 500,
    make: (n) =>
      workOn(
        list(n, (index) => `z${index}`),
        (replacer) => encode([{ a: 1 }, { z1: 2 }], { replacer }),
      ),
  },
  {
    name: 'encode: ancestors met again at every level',
    size: 250,
    make: (n) => workOn(ladder(n), (value) => encode(value, { circular: { text: 'c' } })),
  },
  {
    name: 'encode: one string joined of characters',
    size: 40_000,
    make: (n) => workOn(list(n, (index) => 'ab'[index % 2]).join(''), (text) => encode([text, text])),
  },
  {
    name: 'encodeMsgpack: nested arrays',
    size: 600,
    make: (n) => workOn(nestedArrays(n), (value) => encodeMsgpack(value)),
  },
  { name: 'encodeMsgpack: many keys', size: 1000, make: (n) => workOn(keysOf(n), (value) => encodeMsgpack(value)) },
  {
    name: 'encodeLines: bad rows',
    size: 200,
    make: (n) => () =>
      encodeLines(
        list(n, () => undefined),
        { onBadRow: () => undefined },
      ),
  },
  {
    name: 'an encoder: rows that are new each time',
    size: 200,
    make: (n) =>
      workOn(createEncoder(), (encoder) => {
        for (let row = 0; row < n; row += 1) encoder.encodeSync({ [`k${row}`]: { [`x${row}`]: row } })
      }),
  },
  { name: 'rawJson: nested arrays', size: 20_000, make: (n) => () => rawJson('['.repeat(n) + ']'.repeat(n)) },
]

/** Each level holds the root and the next. */
function ladder(levels: number): object {
  const root: Record<string, unknown> = {}
  let value = root
  for (let level = 0; level < levels; level += 1) {
    const next: Record<string, unknown> = {}
    value['up'] = root
    value['next'] = next
    value = next
  }
  return root
}

const BODIES: readonly Growing[] = [
  {
    name: 'parse: nested arrays',
    size: 5000,
    make: (n) => workOn(Buffer.from('['.repeat(n) + ']'.repeat(n)), (body) => parse(body).catch(ofStack)),
  },
  {
    name: 'split: nested arrays under **',
    size: 5000,
    make: (n) =>
      workOn(Buffer.from('['.repeat(n) + ']'.repeat(n)), (body) => split(body, { lift: { '/**/x': 'raw' } })),
  },
  {
    name: 'split: nested objects under twenty **',
    size: 1000,
    make: (n) =>
      workOn(Buffer.from('{"a":'.repeat(n) + '1' + '}'.repeat(n)), (body) =>
        split(body, { lift: lifts(20, (index) => `/**/a/a/a/x${index}`, 'raw' as const) }),
      ),
  },
  {
    name: 'split: as many pointers as keys',
    size: 100,
    make: (n) => workOn(bodyOf(n), (body) => split(body, { lift: lifts(n, (index) => `/p${index}`, 'raw' as const) })),
  },
  {
    name: 'split: as many pointers under * as objects',
    size: 60,
    make: (n) =>
      workOn(Buffer.from(`{${list(n, (index) => `"k${index}":{"a":1}`).join()}}`), (body) =>
        split(body, { lift: lifts(n, (index) => `/*/p${index}`, 'raw' as const) }),
      ),
  },
  {
    name: 'split: many pointers under one key',
    size: 100,
    make: (n) =>
      workOn(Buffer.from(`{"a":{${list(n, (index) => `"k${index}":1`).join()}}}`), (body) =>
        split(body, { lift: lifts(n, (index) => `/a/p${index}`, 'raw' as const) }),
      ),
  },
  {
    name: 'parse: many lifted values',
    size: 200,
    make: (n) => workOn(Buffer.from(`[${'"QUJD",'.repeat(n)}""]`), (body) => parse(body, { lift: { '/*': 'base64' } })),
  },
  {
    name: 'parse: one key again and again, lifted',
    size: 500,
    make: (n) =>
      workOn(Buffer.from(`{${'"a":{"x":"QUJD"},'.repeat(n)}"b":1}`), (body) =>
        parse(body, { lift: { '/**/x': 'base64' } }),
      ),
  },
  {
    name: 'parse: a number of many digits',
    size: 50_000,
    make: (n) => workOn(Buffer.from(`[[0.${'1'.repeat(n)}]]`), (body) => parse(body, { lift: { '/0': 'float64' } })),
  },
  {
    name: 'parse: escapes',
    size: 5000,
    make: (n) =>
      workOn(Buffer.from(`{"${'\\u0041'.repeat(n)}":1}`), (body) => parse(body, { lift: { '/AAAA': 'base64' } })),
  },
  {
    name: 'parse: chunks of one byte',
    size: 500,
    make: (n) =>
      workOn(
        [...Buffer.from(`[${'1,'.repeat(n)}1]`)].map((byte) => Uint8Array.of(byte)),
        (body) => parse(body),
      ),
  },
  {
    name: 'parse: a stream of single bytes',
    size: 200,
    make: (n) => workOn(Buffer.from(`[${'1,'.repeat(n)}1]`), (body) => parse(byteByByte(body))),
  },
  {
    name: 'decodeBase64: blanks and a wrong end',
    size: 60_000,
    make: (n) => workOn(`${' '.repeat(n)}!`, (text) => decodeBase64(text).catch(ofData)),
  },
  {
    name: 'decodeBase64: chunks of one byte',
    size: 200,
    make: (n) =>
      workOn(
        [...Buffer.from('QUJD'.repeat(n))].map((byte) => Uint8Array.of(byte)),
        (body) => decodeBase64(body),
      ),
  },
]

const FILES: readonly Growing[] = [
  { name: 'repair: nested arrays', size: 20_000, make: (n) => workOn(fileOf('['.repeat(n)), report) },
  { name: 'repair: glued objects', size: 10_000, make: (n) => workOn(fileOf('{}'.repeat(n)), report) },
  {
    name: 'repair: torn rows',
    size: 500,
    make: (n) => workOn(fileOf(`{"a":1}\n${`{${'x'.repeat(n)}\n`.repeat(200)}`), report),
  },
  { name: 'repair: blank rows', size: 20_000, make: (n) => workOn(fileOf(`{"a":1}\n${'\n'.repeat(n)}`), report) },
  {
    name: 'repair: bad rows, all of the file',
    size: 700,
    make: (n) => workOn(fileOf(`${'x\n'.repeat(n)}{}\n`), (path) => repair(path, { policy: 'report', verify: 'all' })),
  },
  {
    name: 'readJsonl: glued values',
    size: 1000,
    make: (n) => workOn(fileOf(`${'{}'.repeat(n)}\n`), (path) => drain(readJsonl(path, { as: 'value' }))),
  },
  {
    name: 'readJsonl: one long row',
    size: 50_000,
    make: (n) => workOn(fileOf(`"${'a'.repeat(n)}"\n`), (path) => drain(readJsonl(path, { as: 'value' }))),
  },
  {
    name: 'readJsonl: fields of a deep row',
    size: 5000,
    make: (n) =>
      workOn(fileOf(`${'['.repeat(n)}${']'.repeat(n)}\n`), (path) => drain(readJsonl(path, { fields: ['/0/0/0'] }))),
  },
  {
    name: 'readJsonl: the last rows behind bad ones',
    size: 2000,
    make: (n) => workOn(fileOf(`{}\n${'x\n'.repeat(n)}`), (path) => drain(readJsonl(path, { last: 5 }))),
  },
  {
    name: 'readJsonl: NaN beside its mark',
    size: 1000,
    make: (n) =>
      workOn(fileOf(`{"a":"${'#'.repeat(n)}number:","b":[NaN]}\n`), (path) => drain(readJsonl(path, { as: 'value' }))),
  },
  {
    name: 'readJsonl: NaN beside many marks',
    size: 5000,
    make: (n) => workOn(fileOf(marks(n)), (path) => drain(readJsonl(path, { as: 'value' }))),
  },
  {
    name: 'readJsonl: many fields',
    size: 50,
    make: (n) =>
      workOn(fileOf('{"a":1}\n'.repeat(50)), (path) =>
        drain(readJsonl(path, { fields: list(n, (index) => `/f${index}`) })),
      ),
  },
  {
    name: 'append: many rows at once',
    size: 100,
    make: (n) => async () => {
      const log = await openJsonl(newPath(), { durability: 'none' })
      await Promise.all(list(n, (id) => log.append({ id })))
      await log.close()
    },
  },
  {
    name: 'saveFile: rows',
    size: 200,
    make: (n) => () =>
      saveFile(
        newPath(),
        list(n, (id) => ({ id })),
        { format: 'jsonl', durability: 'none' },
      ),
  },
]

/** Strings that each hold a longer mark, in `size` bytes. */
function marks(size: number): string {
  const strings: string[] = []
  for (let used = 0; used < size; used += strings.length + 7) strings.push(`"${'#'.repeat(strings.length)}number:"`)
  return `[${strings.join()},NaN]\n`
}

const OTHERS: readonly Growing[] = [
  {
    name: 'concatExperts: turns of one row',
    size: 50,
    make: (n) =>
      workOn(
        list(n, (start) => turn(1, start)),
        (turns) => concatExperts(turns, { tokens: n + 1 }),
      ),
  },
  {
    name: 'concatExperts: turns that cover each other',
    size: 25,
    make: (n) =>
      workOn(
        list(n, (start) => turn(100, start % 7)),
        (turns) => concatExperts(turns, { tokens: 200, gaps: 'zero' }),
      ),
  },
  {
    name: 'concatExperts: turns in no order',
    size: 50,
    make: (n) =>
      workOn(
        list(n, (index) => turn(1, (index * 7919) % (2 * n))),
        (turns) => concatExperts(turns, { tokens: 2 * n + 1, gaps: 'zero' }),
      ),
  },
  {
    name: 'decodeExperts: nested text',
    size: 20_000,
    make: (n) =>
      workOn(`{"data":"","x":${'['.repeat(n)}${']'.repeat(n)}}`, (text) => decodeExperts(text).catch(ofData)),
  },
  {
    name: 'decodeExperts: base85',
    size: 5000,
    make: (n) =>
      workOn({ data: '00000'.repeat(n), shape: [n, 1, 1], encoding: 'base85' } as const, (wire) => decodeExperts(wire)),
  },
  {
    name: 'Batcher: many items',
    size: 100,
    make: (n) => async () => {
      const batcher = createBatcher({ send: () => Promise.resolve() })
      for (let id = 0; id < n; id += 1) batcher.add({ id })
      await batcher.flush()
    },
  },
  {
    name: 'DeferQueue: a chain of dependent work',
    size: 50,
    make: (n) => async () => {
      const queue = createDeferQueue()
      let last = queue.defer(() => 0)
      for (let index = 1; index < n; index += 1) last = queue.after([last], ([value]) => value + 1)
      await queue.flush()
    },
  },
]

export const INPUTS: readonly Growing[] = [...ENCODING, ...BODIES, ...FILES, ...OTHERS]

function turn(rows: number, start: number): { experts: { data: Buffer; shape: number[] }; start: number } {
  return { experts: { data: Buffer.alloc(rows * 4), shape: [rows, 2, 2] }, start }
}

function report(path: string): Promise<unknown> {
  return repair(path, { policy: 'report' })
}

/** Work on an input that is there before it begins. */
function workOn<T>(input: T, work: (input: T) => unknown): () => unknown {
  return () => work(input)
}

/** Refusals of bad data are work as well. */
function ofData(error: unknown): void {
  if (!(error instanceof Error && String(Reflect.get(error, 'code')).startsWith('ERR_OFFLOOP_'))) throw error
}

/** JSON.parse has a stack; the scan before it has none. */
function ofStack(error: unknown): void {
  if (!(error instanceof RangeError)) throw error
}
