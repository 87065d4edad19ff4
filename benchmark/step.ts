/**
 * `npm start`: a training step, as an orchestrator runs it, without offloop and with it, and what its event loop felt. An
 * inference server, the orchestrator, and a client that asks for its health 100 times a second have a process each. Prints
 * a table, and draws `benchmark/results/step.html`. `npm start -- --rollouts 8 --turns 4 --tokens 20000` for another size,
 * `--profile` to see what holds the loop, `--out <folder>` for the page, `--json` for all that was measured beside it.
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { totalmem, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { origin } from '../scripts/machine.mjs'
import { Bar } from '../src/cli/bar.ts'
import { version } from '../src/index.ts'
import { Child } from './step/channel.ts'
import { checkEqual } from './step/equal.ts'
import { HEAD, rowsOf, type Result, type Run } from './step/figures.ts'
import type { Felt, Order, Way } from './step/orchestrator.ts'
import { pageOf } from './step/page.ts'
import { plan, ROW, type Sizes } from './step/plan.ts'

const { values: flags } = parseArgs({
  options: {
    rollouts: { type: 'string', default: '32' },
    turns: { type: 'string', default: '8' },
    tokens: { type: 'string' },
    out: { type: 'string', default: fileURLToPath(new URL('results/', import.meta.url)) },
    json: { type: 'boolean', default: false },
    profile: { type: 'boolean', default: false },
  },
})

const MOST_TOKENS = 60_000
/** What all processes together hold for each byte of experts, at most, and what of the machine's memory they may. */
const HELD = 9
const SHARE = 0.7

const folder = mkdtempSync(join(tmpdir(), 'offloop-step-'))
const children = new Set<Child>()
let isStopped = false

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => void stop())

try {
  await main()
} catch (error) {
  // What is asked of a process that was stopped is not answered.
  if (!isStopped) throw error
} finally {
  await leave()
}

async function main(): Promise<void> {
  const sizes = readSizes()
  const { rollouts, turns, tokens } = sizes
  console.log(
    `offloop ${version}, Node ${process.version}: ${rollouts} rollouts of ${turns} turns, up to ${tokens} tokens`,
  )
  const result = await measure(sizes)
  checkEqual(sizes, [join(folder, 'plain'), join(folder, 'offloop')])
  const { plain, offloop } = result.runs
  for (const hold of [...title('plain', plain), ...title('offloop', offloop)]) console.log(hold)
  print([HEAD, ...rowsOf(result.runs)])
  mkdirSync(flags.out, { recursive: true })
  const path = join(flags.out, 'step.html')
  writeFileSync(path, pageOf(result, origin(`offloop ${version}, Node ${process.version}`)))
  if (flags.json) writeFileSync(join(flags.out, 'step.json'), `${JSON.stringify(result)}\n`)
  console.log(`\nBoth wrote the same rows, batch and experts. The page: ${relative('.', path)}`)
}

function readSizes(): Sizes {
  const rollouts = readCount('rollouts', flags.rollouts)
  const turns = readCount('turns', flags.turns)
  return { rollouts, turns, tokens: flags.tokens === undefined ? fitting(rollouts) : readCount('tokens', flags.tokens) }
}

function readCount(name: string, text: string): number {
  const count = Number(text)
  if (Number.isSafeInteger(count) && 0 < count) return count
  throw new RangeError(`--${name} is a number of at least 1`)
}

/** As many as the memory of this machine, or of this container, is good for. */
function fitting(rollouts: number): number {
  const bound = process.constrainedMemory?.() ?? 0
  const memory = 0 < bound ? Math.min(bound, totalmem()) : totalmem()
  // The longest is as long as this; in the mean they are three quarters of it.
  const tokens = (memory * SHARE) / HELD / (rollouts * 0.75 * ROW)
  return Math.max(100, Math.min(MOST_TOKENS, Math.floor(tokens / 1000) * 1000))
}

async function measure(sizes: Sizes): Promise<Result> {
  const server = start('inference')
  const made = follow(server, 'made', 'server', expectedBytes(sizes))
  const { port, bytes } = await server.ask<{ readonly port: number; readonly bytes: number }>('start', sizes)
  made()
  const asked: string[] = []
  const run = async (way: Way): Promise<Run> => {
    const order = { way, url: `http://127.0.0.1:${port}/v1/completions`, folder: join(folder, way), sizes }
    const done = follow(server, 'answered', way, bytes)
    const felt = await feel({ ...order, profiles: flags.profile })
    done()
    asked.push(await server.ask<string>('asked'))
    return felt
  }
  const runs = { plain: await run('plain'), offloop: await run('offloop') }
  await end(server)
  if (asked[0] !== asked[1]) throw new Error('the two ways have asked for something else')
  return { sizes, bytes, runs }
}

async function feel(order: Order): Promise<Run> {
  mkdirSync(order.folder)
  const [orchestrator, client] = [start('orchestrator'), start('ping')]
  const port = await orchestrator.ask<number>('prepare', order)
  await client.ask('ping', port)
  const felt = await orchestrator.ask<Felt>('run')
  const pings = await client.ask<number[]>('stop')
  await Promise.all([end(orchestrator), end(client)])
  return { ...felt, pings }
}

/** A bar, of bytes that the server tells of, until what it gives is called. */
function follow(server: Child, topic: string, name: string, total: number): () => void {
  const bar = new Bar(process.stderr, name.padEnd(7), process.env['NO_COLOR'] === undefined)
  let bytes = 0
  const forget = server.onNews(topic, (size) => {
    bytes = Math.min(total, bytes + Number(size))
    bar.show({ bytes, total })
  })
  return () => {
    forget()
    bar.clear()
  }
}

/** About as many as all answers will have: base64, and numbers. */
function expectedBytes(sizes: Sizes): number {
  return plan(sizes).reduce((sum, { length }) => sum + length * ROW * 1.35, 0)
}

function start(name: string): Child {
  const child = new Child(name)
  children.add(child)
  return child
}

async function end(child: Child): Promise<void> {
  await child.kill()
  children.delete(child)
}

async function stop(): Promise<void> {
  isStopped = true
  await leave()
  process.exit(130)
}

async function leave(): Promise<void> {
  await Promise.all([...children].map(end))
  rmSync(folder, { recursive: true, force: true })
}

function title(name: string, { holds }: Run): string[] {
  return holds.length === 0 ? [] : [`\n${name}: what held the loop for more than 10 ms`, ...holds]
}

/** A table of Markdown, with columns of one width. */
function print(table: readonly (readonly string[])[]): void {
  const widths = HEAD.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  const lineOf = (row: readonly string[]): string => {
    const cells = widths.map((width, column) => {
      const cell = row[column] ?? ''
      return column === 0 ? cell.padEnd(width) : cell.padStart(width)
    })
    return `| ${cells.join(' | ')} |`
  }
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  const [head = [], ...rows] = table
  console.log(`\n${[lineOf(head), lineOf(rule), ...rows.map(lineOf)].join('\n')}`)
}
