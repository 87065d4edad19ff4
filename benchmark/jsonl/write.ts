/** Rows of 1 KB appended to a file: durably and not, by many callers and by one. */

import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, write as writeFile } from 'node:fs'
import { appendFile, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import sonic from 'sonic-boom'
import { openJsonl, type Durability, type JsonlFile } from '../../src/index.ts'
import { Random } from '../documents.ts'
import { median, swept, table, type Contender, type HeapCase } from '../measure.ts'

const QUICK = process.env['OFFLOOP_BENCH_QUICK'] !== undefined
const ROUNDS = QUICK ? 1 : 5
const CALLERS = 64

/** What is said in a turn of a chat, and what it was worth. */
function row(random: Random, id: number): object {
  const content = 'the model goes on to say what it has found, "more or less". '.repeat(6 + random.below(6))
  return {
    id,
    role: 'assistant',
    content,
    model: 'policy-7',
    usage: { prompt_tokens: random.below(60_000), completion_tokens: random.below(4000), cached: false },
    token_ids: Array.from({ length: 64 }, () => random.below(150_000)),
    reward: random.unit(),
  }
}

type Append = (row: object) => Promise<unknown>

/** Each caller waits for its row before it appends the next. */
async function byCallers(rows: readonly object[], append: Append): Promise<void> {
  const queue = rows.values()
  const call = async (): Promise<void> => {
    for (const each of queue) await append(each)
  }
  await Promise.all(Array.from({ length: CALLERS }, call))
}

interface Way {
  readonly name: string
  readonly write: (path: string, rows: readonly object[]) => Promise<unknown>
}

function text(each: object): string {
  return `${JSON.stringify(each)}\n`
}

async function withLog(
  path: string,
  durability: Durability,
  write: (log: JsonlFile) => Promise<unknown>,
): Promise<void> {
  const log = await openJsonl(path, { durability })
  await write(log)
  await log.close()
}

const DURABLE: readonly Way[] = [
  {
    name: '`log.append`',
    write: (path, rows) => withLog(path, 'data', (log) => byCallers(rows, (each) => log.append(each))),
  },
  {
    name: '`fs.promises.appendFile` and `datasync`',
    async write(path, rows) {
      const file = await open(path, 'a')
      await byCallers(rows, async (each) => {
        await appendFile(path, text(each))
        await file.datasync()
      })
      await file.close()
    },
  },
  {
    name: '`filehandle.appendFile` and `datasync`',
    async write(path, rows) {
      const file = await open(path, 'a')
      await byCallers(rows, async (each) => {
        await file.appendFile(text(each))
        await file.datasync()
      })
      await file.close()
    },
  },
]

const write = promisify(writeFile)

const VOLATILE: readonly Way[] = [
  {
    name: '`log.append`',
    write: (path, rows) => withLog(path, 'none', (log) => byCallers(rows, (each) => log.append(each))),
  },
  { name: '`log.appendMany`', write: (path, rows) => withLog(path, 'none', (log) => log.appendMany(rows)) },
  {
    name: '`fs.promises.appendFile`',
    write: (path, rows) => byCallers(rows, (each) => appendFile(path, text(each))),
  },
  {
    name: '`fs.write`',
    async write(path, rows) {
      const file = await open(path, 'a')
      await byCallers(rows, (each) => write(file.fd, text(each)))
      await file.close()
    },
  },
  {
    name: 'sonic-boom, `sync: false`',
    async write(path, rows) {
      const boom = new sonic.SonicBoom({ dest: path, sync: false, append: true })
      await once(boom, 'ready')
      for (const each of rows) if (!boom.write(text(each))) await once(boom, 'drain')
      const closed = once(boom, 'close')
      boom.end()
      await closed
    },
  },
]

interface Took {
  readonly busyUs: number
  readonly wallUs: number
  readonly cpuUs: number
}

async function took(way: Way, path: string, rows: readonly object[], expected: string): Promise<Took> {
  await swept()
  const cpu = process.cpuUsage()
  const since = performance.now()
  const before = performance.eventLoopUtilization()
  await way.write(path, rows)
  const busy = performance.eventLoopUtilization(before).active
  const wall = performance.now() - since
  const { user, system } = process.cpuUsage(cpu)
  const written = readFileSync(path, 'latin1')
  rmSync(path)
  if (written.length !== expected.length) throw new Error(`${way.name} writes ${written.length} bytes`)
  const unit = 1000 / rows.length
  return { busyUs: busy * unit, wallUs: wall * unit, cpuUs: (user + system) / rows.length }
}

async function compare(ways: readonly Way[], count: number): Promise<string> {
  const random = new Random(1)
  const rows = Array.from({ length: count }, (_, id) => row(random, id))
  const expected = rows.map(text).join('')
  const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
  const all = ways.map((): Took[] => [])
  try {
    for (let round = 0; round <= ROUNDS; round += 1) {
      for (const [index, way] of ways.entries()) {
        const one = await took(way, join(folder, 'rows.jsonl'), rows, expected)
        if (round !== 0) all[index]?.push(one)
      }
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
  const middle = (index: number, what: keyof Took): number => median((all[index] ?? []).map((one) => one[what]))
  const cell = (index: number, what: keyof Took): string => {
    const value = middle(index, what)
    return `${value.toFixed(2)} (${(value / middle(0, what)).toFixed(1)})`
  }
  const body = ways.map(({ name }, index) => [
    name,
    Math.round(1e6 / middle(index, 'wallUs')).toLocaleString('en'),
    cell(index, 'wallUs'),
    cell(index, 'busyUs'),
    cell(index, 'cpuUs'),
  ])
  return table([['way', 'rows a second', 'wall µs a row', 'loop µs a row', 'CPU µs a row, all threads'], ...body])
}

/** The first two ways of each table, with few rows. */
export function writingCases(): HeapCase[] {
  return [
    writingCase('rows appended and synced', DURABLE, 640),
    writingCase('rows appended to the page cache', [VOLATILE[0], VOLATILE[2]], 10_000),
  ]
}

function writingCase(name: string, [ours, plain]: readonly (Way | undefined)[], count: number): HeapCase {
  return {
    name: `${count} ${name}`,
    make: () => {
      if (ours === undefined || plain === undefined) throw new Error('a pair is two')
      const random = new Random(1)
      const rows = Array.from({ length: count }, (_, id) => row(random, id))
      const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
      const contender = ({ name: way, write: writeRows }: Way): Contender => ({
        name: way,
        run: async () => {
          await writeRows(join(folder, 'rows.jsonl'), rows)
          rmSync(join(folder, 'rows.jsonl'))
        },
      })
      return {
        plain: contender(plain),
        ours: contender(ours),
        stop: () => rmSync(folder, { recursive: true }),
      }
    },
  }
}

/** The report's sections. */
export async function writing(): Promise<string[]> {
  const durable = await compare(DURABLE, QUICK ? 640 : 25_600)
  const volatile = await compare(VOLATILE, QUICK ? 10_000 : 100_000)
  return [
    '## Appending',
    `Rows of 1 KB, ${CALLERS} callers that each wait for their row before they append the next; JSON.stringify is part of every way that needs it. Medians of ${ROUNDS} rounds; in brackets how many times that of the first way it is. Durably, each row synced before it is acknowledged:`,
    durable,
    "To the page cache (`durability: 'none'`); `appendMany` and sonic-boom, which acknowledges nothing, have one caller:",
    volatile,
  ]
}
