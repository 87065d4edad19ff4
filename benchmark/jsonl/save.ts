/** Whole files: a gigabyte of rollouts as they come, and one batch for a trainer. */

import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { pack } from 'msgpackr'
import { saveFile } from '../../src/index.ts'
import { Random } from '../documents.ts'
import { longestOf, median, swept, table, type Contender, type HeapCase } from '../measure.ts'

const QUICK = process.env['OFFLOOP_BENCH_QUICK'] !== undefined
const ROUNDS = QUICK ? 1 : 3
const ROLLOUTS = QUICK ? 40 : 700
const BATCH = QUICK ? 20 : 330
/** So many are different; there would be no room for all. */
const DIFFERENT = 16
const TOKENS = 60_000

interface Rollout {
  readonly token_ids: readonly number[]
  readonly mask: readonly number[]
  readonly logprobs: readonly number[]
  readonly messages: readonly { readonly role: string; readonly content: string }[]
}

function rollout(random: Random): Rollout {
  const content = 'the model goes on to say what it has found, "more or less". '.repeat(40)
  return {
    token_ids: Array.from({ length: TOKENS }, () => random.below(150_000)),
    mask: Array.from({ length: TOKENS }, () => random.below(2)),
    logprobs: Array.from({ length: TOKENS }, () => -random.unit()),
    messages: Array.from({ length: 50 }, () => ({ role: 'assistant', content })),
  }
}

interface Way {
  readonly name: string
  readonly save: (path: string, rollouts: readonly Rollout[]) => Promise<unknown>
}

async function* coming(rollouts: readonly Rollout[]): AsyncGenerator<Rollout> {
  for (const each of rollouts) {
    await nextTurn()
    yield each
  }
}

/** As durable, and as atomic. */
async function replacing(
  path: string,
  write: (file: Awaited<ReturnType<typeof open>>) => Promise<unknown>,
): Promise<void> {
  const file = await open(`${path}.tmp`, 'w')
  await write(file)
  await file.sync()
  await file.close()
  await rename(`${path}.tmp`, path)
}

const BY_ROW: Way = {
  name: 'JSON.stringify and `filehandle.write` for each',
  save: (path, rollouts) =>
    replacing(path, async (file) => {
      for await (const each of coming(rollouts)) await file.write(`${JSON.stringify(each)}\n`)
    }),
}

const LINES: readonly Way[] = [
  { name: '`saveFile`, jsonl', save: (path, rollouts) => saveFile(path, coming(rollouts), { format: 'jsonl' }) },
  BY_ROW,
]

const PACKED: readonly Way[] = [
  { name: '`saveFile`, msgpack', save: (path, rollouts) => saveFile(path, rollouts, { format: 'msgpack' }) },
  BY_ROW,
  {
    name: 'msgpackr and `filehandle.write`',
    save: (path, rollouts) => replacing(path, (file) => file.writeFile(pack(rollouts))),
  },
]

interface Took {
  readonly busy: number
  readonly wall: number
  readonly cpu: number
  /** The longest time the loop did not turn. */
  readonly longest: number
  readonly size: number
}

async function took({ save }: Way, path: string, rollouts: readonly Rollout[]): Promise<Took> {
  await swept()
  const cpu = process.cpuUsage()
  const since = performance.now()
  const before = performance.eventLoopUtilization()
  await save(path, rollouts)
  const busy = performance.eventLoopUtilization(before).active
  const wall = performance.now() - since
  const { user, system } = process.cpuUsage(cpu)
  // Turning the loop without pause makes it busy: in a run of its own.
  const longest = await longestOf(() => save(path, rollouts))
  const { size } = statSync(path)
  rmSync(path)
  return { busy, wall, cpu: (user + system) / 1000, longest, size }
}

async function compare(ways: readonly Way[], rollouts: readonly Rollout[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
  const all = ways.map((): Took[] => [])
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [index, way] of ways.entries()) all[index]?.push(await took(way, join(folder, 'saved'), rollouts))
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
  const middle = (index: number, what: keyof Took): number => median((all[index] ?? []).map((one) => one[what]))
  const cell = (index: number, what: keyof Took): string => {
    const value = middle(index, what)
    return `${value.toFixed(0)} (${(value / middle(0, what)).toFixed(1)})`
  }
  const body = ways.map(({ name }, index) => [
    name,
    (middle(index, 'size') / 1e6).toFixed(0),
    cell(index, 'busy'),
    middle(index, 'longest').toFixed(1),
    cell(index, 'cpu'),
    cell(index, 'wall'),
  ])
  return table([['way', 'MB', 'loop ms', 'longest block ms', 'CPU ms, all threads', 'wall ms'], ...body])
}

/** The first two ways of each table, with few rollouts. */
export function savingCases(): HeapCase[] {
  return [savingCase('as lines', LINES), savingCase('as one batch', PACKED)]
}

function savingCase(name: string, [ours, plain]: readonly Way[]): HeapCase {
  return {
    name: `${DIFFERENT} rollouts saved ${name}`,
    make: () => {
      if (ours === undefined || plain === undefined) throw new Error('a pair is two')
      const random = new Random(1)
      const rollouts = Array.from({ length: DIFFERENT }, () => rollout(random))
      const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
      const contender = ({ name: way, save }: Way): Contender => ({
        name: way,
        run: () => save(join(folder, 'saved'), rollouts),
      })
      return { plain: contender(plain), ours: contender(ours), stop: () => rmSync(folder, { recursive: true }) }
    },
  }
}

/** The report's sections. */
export async function saving(): Promise<string[]> {
  const random = new Random(1)
  const different = Array.from({ length: DIFFERENT }, () => rollout(random))
  const times = (count: number): Rollout[] =>
    Array.from({ length: count }, (_, index) => different[index % DIFFERENT]).filter((each) => each !== undefined)
  const lines = await compare(LINES, times(ROLLOUTS))
  const packed = await compare(PACKED, times(BATCH))
  return [
    '## Saving',
    `Rollouts of ${TOKENS} tokens with mask, logprobs and 50 messages; temporary file, fsync, rename in every way. Medians of ${ROUNDS} rounds; in brackets how many times that of the first way it is. ${ROLLOUTS} of them that come one by one, as lines:`,
    lines,
    `${BATCH} of them as one batch; JSON.stringify writes them as lines:`,
    packed,
  ]
}
