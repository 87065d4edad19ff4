/**
 * Values of the tables of first and warm calls, by name. Runs on the JS thread of `cold.ts` and its processes.
 *
 * The four documents that everybody measures with come from a package of the registry, into the cache folder.
 */

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from '../../scripts/cache.mjs'
import { many, prose, Random, rollouts, SHAPES, SMALL_SHAPES } from '../documents.ts'

export interface ColdShape {
  readonly name: string
  readonly make: () => unknown
  /** What the value is made of. */
  readonly content: string
  /** Options of `encode`; plain JSON.stringify gets what makes the same bytes. */
  readonly typedArrays?: 'array'
  /** Least calls of a process, where fewer than 200 tell enough. @default 200 */
  readonly calls?: number
}

const EVENTS = 20_000
const RECORDS = 5000

export const COLD_SHAPES: readonly ColdShape[] = [
  { name: '8 rollouts of 60k tokens', content: 'numbers', make: () => shape('8 rollouts of 60k tokens'), calls: 60 },
  { name: '16 rollouts', content: 'numbers, text', make: () => shape('16 rollouts') },
  { name: '200 rollouts', content: 'numbers, text', make: () => rollouts(200), calls: 24 },
  { name: 'typed arrays', content: '3 × 10⁶ numbers', typedArrays: 'array', make: typedArrays, calls: 60 },
  { name: 'one string of 31 MB', content: 'base64', make: () => shape('one string'), calls: 60 },
  { name: 'chat, ASCII', content: 'text', make: () => shape('chat, ASCII') },
  { name: 'chat, code', content: 'text', make: () => shape('chat, code') },
  { name: 'chat, CJK', content: 'text', make: () => shape('chat, CJK') },
  { name: '10⁶ doubles', content: 'numbers', make: () => shape('10⁶ doubles'), calls: 60 },
  { name: '10⁶ small integers', content: 'numbers', make: () => shape('10⁶ small integers'), calls: 60 },
  { name: '1,500 spans', content: 'records, text', make: () => shape('1,500 spans') },
  { name: '100 spans', content: 'records, text', make: () => small('span', 100) },
  { name: '20k dates', content: 'dates', make: () => shape('2·10⁴ objects with dates') },
  { name: '50k class instances', content: 'records', make: () => shape('5·10⁴ class instances') },
  { name: '20k event objects', content: 'records', make: () => many(EVENTS, new Random(31), event) },
  { name: '50k tiny objects', content: 'records', make: () => many(5e4, new Random(16), (_, index) => ({ a: index & 7 })) },
  { name: '100k short strings', content: 'strings', make: () => many(1e5, new Random(17), (random, index) => random.hex(8 + (index % 24))) },
  { name: 'ever-new keys', content: 'records of new shapes', make: () => shape('8,000 ever-new shapes') },
  { name: 'dictionaries', content: 'objects in dictionary mode', make: () => shape('4,000 dictionary-mode objects') },
  { name: 'a map of 50k keys', content: 'one object', make: () => mapOf(5e4) },
  { name: '100 × 500 levels', content: 'nested objects', make: () => many(100, new Random(32), () => nested(500)) },
  { name: 'own toJSON', content: 'user code', make: () => shape('2·10⁴ values with toJSON') },
  { name: 'mixed records', content: 'records of 40 shapes', make: () => many(RECORDS, new Random(33), mixed) },
  { name: 'twitter.json', content: 'records, text', make: () => document('twitter') },
  { name: 'citm_catalog.json', content: 'records, integers', make: () => document('citm_catalog') },
  { name: 'canada.json', content: 'pairs of doubles', make: () => document('canada') },
  { name: 'github_events.json', content: 'records', make: () => document('github_events') },
  { name: 'one row of 1 KB', content: 'a record', make: () => shape('one row of 1 KB') },
  { name: 'one small object', content: 'a record', make: () => shape('one small object') },
]

function shape(name: string): unknown {
  const found = SHAPES.find((one) => one.name === name)
  if (found === undefined) throw new Error(`no shape '${name}'`)
  return found.make()
}

function small(name: string, count: number): unknown {
  const found = SMALL_SHAPES.find((one) => one.name === name)
  if (found === undefined) throw new Error(`no shape '${name}'`)
  return many(count, new Random(12), found.make)
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
  const random = new Random(20)
  return Object.fromEntries(many(count, random, (_, index) => [`u${random.hex(10)}`, index]))
}

function nested(levels: number): unknown {
  let value: unknown = null
  for (let level = levels; 0 < level; level -= 1) value = { level, name: `n${level}`, child: value }
  return value
}

const FIELDS = 12
const KINDS = 40

/** A record of one of `KINDS` shapes: fields of other names and types. */
function mixed(random: Random): unknown {
  const kind = random.below(KINDS)
  const record: Record<string, unknown> = { kind }
  for (let index = 0; index < 3 + (kind % 7); index += 1) {
    const field = (kind * 7 + index * 5) % FIELDS
    record[`field${field}`] = valueOf(random, (kind + index) % 6)
  }
  return record
}

function valueOf(random: Random, type: number): unknown {
  if (type === 0) return random.below(1e6)
  if (type === 1) return random.hex(10)
  if (type === 2) return random.unit()
  if (type === 3) return [random.hex(4), random.hex(4)]
  if (type === 4) return { x: random.below(10), y: null }
  return prose(random, 60)
}

const PACKAGE = 'simdjson'
const VERSION = '0.9.2'

/** A document of simdjson's examples, parsed. */
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
