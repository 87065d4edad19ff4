/**
 * A gigabyte of rollouts, one of 20 KB a row, in the page cache: two ids of each row, every row checked. `readJsonl` against
 * readline and JSON.parse, and against lines of orjson and msgspec.
 */

import { createReadStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { readJsonl } from '../../src/index.ts'
import { many, Random } from '../documents.ts'
import { median, table, type HeapCase } from '../measure.ts'
import { startSnake } from '../snake.ts'

const ROUNDS = 3
const SIZE = process.env['OFFLOOP_BENCH_QUICK'] === undefined ? 2 ** 30 : 2 ** 26

/** Messages, token ids, logprobs: what a rollout has. */
function row(random: Random, id: number): string {
  const message = (): unknown => ({
    role: 'assistant',
    content: 'the model goes on to say what it has found. '.repeat(60 + random.below(40)),
  })
  return JSON.stringify({
    example_id: id,
    prompt: many(2, random, message),
    completion: many(1, random, message),
    token_ids: many(1000, random, () => random.below(150_000)),
    logprobs: many(100, random, () => -random.unit()),
    reward: random.unit(),
    group_id: id % 16,
  })
}

async function make(path: string, least = SIZE): Promise<{ readonly rows: number; readonly sum: number }> {
  const random = new Random(1)
  const file = await open(path, 'w')
  let [size, rows, sum] = [0, 0, 0]
  while (size < least) {
    const texts: string[] = []
    for (let count = 0; count < 400; count += 1) {
      texts.push(`${row(random, rows)}\n`)
      sum += rows + (rows % 16)
      rows += 1
    }
    const { bytesWritten } = await file.write(texts.join(''))
    size += bytesWritten
  }
  await file.close()
  return { rows, sum }
}

interface Took {
  readonly busy: number
  readonly cpu: number
  readonly wall: number
  /** Of resident memory, above the start. */
  readonly peak: number
}

async function took(work: () => Promise<number>, expected: number): Promise<Took> {
  globalThis.gc?.()
  await sleep(20)
  const start = process.memoryUsage.rss()
  let peak = start
  const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 5)
  const [before, cpu, since] = [performance.eventLoopUtilization(), process.cpuUsage(), performance.now()]
  const sum = await work()
  const wall = performance.now() - since
  const busy = performance.eventLoopUtilization(before).active
  const { user, system } = process.cpuUsage(cpu)
  clearInterval(timer)
  if (sum !== expected) throw new Error(`other ids: ${sum}`)
  return { busy, cpu: (user + system) / 1000, wall, peak: peak - start }
}

async function picked(path: string): Promise<number> {
  let sum = 0
  for await (const rows of readJsonl(path, { fields: ['/example_id', '/group_id'] })) {
    for (const { fields } of rows) sum += Number(fields['/example_id']) + Number(fields['/group_id'])
  }
  return sum
}

interface Ids {
  readonly example_id: number
  readonly group_id: number
}

async function parsed(path: string): Promise<number> {
  let sum = 0
  for await (const rows of readJsonl<Ids>(path, { as: 'value' })) {
    for (const { value } of rows) sum += value.example_id + value.group_id
  }
  return sum
}

async function byLine(path: string): Promise<number> {
  let sum = 0
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
    const value: Ids = JSON.parse(line)
    sum += value.example_id + value.group_id
  }
  return sum
}

const WAYS: Readonly<Record<string, (path: string) => Promise<number>>> = {
  'readJsonl, two fields': picked,
  'readJsonl, values': parsed,
  'readline, JSON.parse': byLine,
}

/** Fields of a file of 64 MB, and its lines. */
export function readingCase(): HeapCase {
  return {
    name: '64 MB of rows read',
    make: async () => {
      const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
      const path = join(folder, 'rollouts.jsonl')
      await make(path, 2 ** 26)
      return {
        plain: { name: 'readline, JSON.parse', run: () => byLine(path) },
        ours: { name: 'readJsonl, two fields', run: () => picked(path) },
        stop: () => rmSync(folder, { recursive: true }),
      }
    },
  }
}

/** The report's sections. */
export async function reading(): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
  const path = join(folder, 'rollouts.jsonl')
  try {
    const { rows, sum } = await make(path)
    const snake = await startSnake('jsonl.py')
    const runs: Record<string, Took[]> = {}
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [name, way] of Object.entries(WAYS)) (runs[name] ??= []).push(await took(() => way(path), sum))
      for (const name of snake === undefined ? [] : ['orjson', 'msgspec']) {
        const [cpu = '', wall = '', total = ''] = (await snake?.ask(`${name} ${path}`))?.split(' ') ?? []
        if (Number(total) !== sum) throw new Error(`${name} reads other ids`)
        const unknown = { busy: Number.NaN, peak: Number.NaN }
        ;(runs[`${name}, line by line`] ??= []).push({ ...unknown, cpu: Number(cpu), wall: Number(wall) })
      }
    }
    snake?.stop()
    return [
      '## Reading',
      `${rows} rows, ${(statSync(path).size / 1e9).toFixed(2)} GB in the page cache, two ids of each, every row checked as a whole; medians of ${ROUNDS} rounds. Python reads ids into a dict or a two-field Struct (${snake?.versions ?? 'no Python'}). In brackets how many times that of \`readJsonl\` with fields it is.`,
      table(summary(runs)),
    ]
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function summary(all: Readonly<Record<string, readonly Took[]>>): string[][] {
  const middle = (name: string, what: keyof Took): number => median((all[name] ?? []).map((one) => one[what]))
  const [first = ''] = Object.keys(all)
  const cell = (name: string, what: keyof Took): string => {
    const value = middle(name, what)
    return Number.isNaN(value) ? '' : `${value.toFixed(0)} (${(value / middle(first, what)).toFixed(1)})`
  }
  const rows = Object.keys(all).map((name) => {
    const peak = middle(name, 'peak')
    return [
      name,
      cell(name, 'busy'),
      cell(name, 'cpu'),
      cell(name, 'wall'),
      Number.isNaN(peak) ? '' : (peak / 2 ** 20).toFixed(0),
    ]
  })
  return [['way', 'loop ms', 'CPU ms, all threads', 'wall ms', 'memory above the start, MiB'], ...rows]
}
