/**
 * Values of the tables of first and warm calls, by name. Runs on the JS thread of the processes that `json-calls.ts`
 * starts.
 *
 * Four documents that many JSON libraries measure with come from a package of the registry, into the cache folder.
 */

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from '../../scripts/cache.mjs'
import { many, prose, Random, rollouts, SHAPES, SMALL_SHAPES } from '../documents.ts'

/** A value that is encoded again and again by `encode`. */
export interface CallShape {
  readonly name: string
  readonly make: () => unknown
  /** Option of `encode`. The plain way gets a replacer that makes the same bytes. */
  readonly typedArrays?: 'array'
  /** Calls of a process. @default 200 */
  readonly calls?: number
  /** Whether a call takes microseconds. Then calls are timed in groups. @default false */
  readonly isTiny?: boolean
}

/** Values of one shape that are encoded in turn by `encodeSync`. */
export interface SyncShape {
  readonly name: string
  readonly make: (random: Random, index: number) => unknown
  /** Whether each call gets a value of its own. @default false: 16 values in turn */
  readonly isUnseen?: boolean
}

export const CALL_SHAPES: readonly CallShape[] = [
  { name: '8 rollouts of 60k tokens', make: () => ofShape('8 rollouts of 60k tokens'), calls: 60 },
  { name: '16 rollouts', make: () => ofShape('16 rollouts') },
  { name: '200 rollouts', make: () => rollouts(200), calls: 24 },
  { name: 'typed arrays', typedArrays: 'array', make: typedArrays, calls: 60 },
  { name: 'one string of 31 MB', make: () => ofShape('one string'), calls: 60 },
  { name: 'chat, ASCII', make: () => ofShape('chat, ASCII') },
  { name: 'chat, code', make: () => ofShape('chat, code') },
  { name: 'chat, CJK', make: () => ofShape('chat, CJK') },
  { name: '10⁶ doubles', make: () => ofShape('10⁶ doubles'), calls: 60 },
  { name: '10⁶ small integers', make: () => ofShape('10⁶ small integers'), calls: 60 },
  { name: '1,500 spans', make: () => ofShape('1,500 spans') },
  { name: '100 spans', make: () => manyOfSmall('span', 100) },
  { name: '20k dates', make: () => ofShape('2·10⁴ objects with dates') },
  { name: '50k class instances', make: () => ofShape('5·10⁴ class instances') },
  { name: '20k event objects', make: () => many(20_000, new Random(31), event) },
  { name: '50k tiny objects', make: () => many(50_000, new Random(16), (_, index) => ({ a: index & 7 })) },
  {
    name: '100k short strings',
    make: () => many(1e5, new Random(17), (random, index) => random.hex(8 + (index % 24))),
  },
  { name: 'ever-new keys', make: () => ofShape('8,000 ever-new shapes') },
  { name: 'dictionaries', make: () => ofShape('4,000 dictionary-mode objects') },
  { name: 'a map of 50k keys', make: () => mapOf(50_000) },
  { name: '100 × 500 levels', make: () => many(100, new Random(32), () => nested(500)) },
  { name: 'own toJSON', make: () => ofShape('2·10⁴ values with toJSON') },
  { name: 'mixed records', make: () => many(5000, new Random(33), mixed) },
  { name: 'twitter.json', make: () => document('twitter') },
  { name: 'citm_catalog.json', make: () => document('citm_catalog') },
  { name: 'canada.json', make: () => document('canada') },
  { name: 'github_events.json', make: () => document('github_events') },
  { name: 'one row of 1 KB', make: () => ofShape('one row of 1 KB'), isTiny: true },
  { name: 'one small object', make: () => ofShape('one small object'), isTiny: true },
]

export const SYNC_SHAPES: readonly SyncShape[] = [
  { name: 'an object of 40 B', make: smallShape('one small object') },
  { name: 'a log line', make: smallShape('log line') },
  { name: 'a span of 2 KB', make: smallShape('span') },
  { name: 'a chat turn of 4 KB', make: smallShape('chat turn of 4 KB, code') },
  { name: 'a chat turn of 30 KB', make: (random) => ({ role: 'user', content: prose(random, 30_000) }) },
  { name: 'a chat turn of 60 KB', make: smallShape('chat turn of 60 KB') },
  { name: '1,000 integers', make: (random) => many(1000, random, () => random.below(151_936)) },
  { name: '500 floats', make: (random) => many(500, random, () => -random.unit() * 5) },
  { name: 'unseen shapes', make: unseen, isUnseen: true },
]

function ofShape(name: string): unknown {
  const shape = SHAPES.find((one) => one.name === name)
  if (shape === undefined) throw new Error(`no shape '${name}'`)
  return shape.make()
}

function smallShape(name: string): SyncShape['make'] {
  const shape = SMALL_SHAPES.find((one) => one.name === name)
  if (shape === undefined) throw new Error(`no small shape '${name}'`)
  return shape.make
}

function manyOfSmall(name: string, count: number): unknown {
  return many(count, new Random(12), smallShape(name))
}

function typedArrays(): unknown {
  const random = new Random(30)
  const numbers = many(1e6, random, () => random.below(151_936))
  return { ids: Int32Array.from(numbers), experts: Uint8Array.from(numbers), places: Uint16Array.from(numbers) }
}

/** An event of an agent, as it is streamed. */
function event(random: Random, index: number): unknown {
  return {
    type: random.of(['token', 'tool', 'state']),
    seq: index,
    at: 1_767_225_600_000 + index,
    run: random.hex(16),
    data: { text: random.hex(12), index: index & 63, done: (index & 63) === 63 },
  }
}

function mapOf(count: number): unknown {
  return Object.fromEntries(many(count, new Random(20), (random, index) => [`u${random.hex(10)}`, index]))
}

function nested(levels: number): unknown {
  let value: unknown = null
  for (let level = levels; 0 < level; level -= 1) value = { level, name: `n${level}`, child: value }
  return value
}

const FIELDS = 12
const KINDS = 40

/** A record of one of 40 shapes, with fields of other names and types. */
function mixed(random: Random): unknown {
  const kind = random.below(KINDS)
  const record: Record<string, unknown> = { kind }
  for (let index = 0; index < 3 + (kind % 7); index += 1) {
    const field = (kind * 7 + index * 5) % FIELDS
    record[`field${field}`] = fieldOf(random, (kind + index) % 6)
  }
  return record
}

function fieldOf(random: Random, type: number): unknown {
  if (type === 0) return random.below(1e6)
  if (type === 1) return random.hex(10)
  if (type === 2) return random.unit()
  if (type === 3) return [random.hex(4), random.hex(4)]
  if (type === 4) return { x: random.below(10), y: null }
  return prose(random, 60)
}

/** An object with keys that no other object has. */
function unseen(random: Random): unknown {
  return Object.fromEntries(
    many(8, random, (_, index) => [`k${random.hex(6)}`, index % 2 === 0 ? index : random.hex(8)]),
  )
}

const PACKAGE = 'simdjson'
const VERSION = '0.9.2'

/** Returns a document of simdjson's examples, parsed. */
function document(name: string): unknown {
  const folder = cacheFolder(`${PACKAGE}-${VERSION}`)
  const examples = join(folder, 'node_modules', PACKAGE, 'jsonexamples')
  if (!existsSync(examples)) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
    const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--silent', `${PACKAGE}@${VERSION}`]
    execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  }
  return JSON.parse(readFileSync(join(examples, `${name}.json`), 'utf8'))
}
