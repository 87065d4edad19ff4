/**
 * `npm start`: a training step as an orchestrator runs it, without offloop and with it, and what its event loop felt. The
 * inference server, the orchestrator, and a client that asks for its health 100 times a second have a process each. Each
 * orchestrator holds a live heap and runs two steps: the first warms up, the second counts.
 *
 * Prints a table of each step, and draws `step.html`. Options:
 *   --heap 256          MB of live objects of the orchestrator, 0 or more
 *   --rollouts 32 --turns 8 --tokens 60000   the size of the step
 *   --json              print the figures as one JSON object, and nothing else, to stdout
 *   --profile           tell what blocked the loop in the second step
 *   --out <folder>      folder of the page
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { origin } from '../scripts/machine.mjs'
import { Bar } from '../src/cli/bar.ts'
import { version } from '../src/index.ts'
import { Child } from './channel.ts'
import { digestOf } from './step/equal.ts'
import { compare, headOf, reportOf, rowsOf, type Result, type Run } from './step/figures.ts'
import { memoryFlags, readOptions, type StepOptions } from './step/options.ts'
import type { Felt, Order, Way } from './step/orchestrator.ts'
import { pageOf } from './step/page.ts'
import { plan, ROW, type Sizes } from './step/plan.ts'

/** Steps of a process, and the names of their folders. */
const STEPS = ['first', 'second'] as const

const folder = mkdtempSync(join(tmpdir(), 'offloop-step-'))
const children = new Set<Child>()
let isStopped = false

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => void stop())

try {
  const options = optionsOrSentence()
  if (options !== undefined) await run(options)
} catch (error) {
  // Requests to a process that was stopped stay without an answer.
  if (!isStopped) throw error
} finally {
  await leave()
}

/** Undefined, after a sentence, where an option is invalid. */
function optionsOrSentence(): StepOptions | undefined {
  try {
    return readOptions(process.argv.slice(2))
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    process.exitCode = 1
    return undefined
  }
}

async function run(options: StepOptions): Promise<void> {
  const { heapMb, isJson, out } = options
  const { rollouts, turns, tokens } = options.sizes
  const say = isJson ? console.error : console.log
  say(
    `offloop ${version}, Node ${process.version}: ${rollouts} rollouts of ${turns} turns, up to ${tokens} tokens, beside ${heapMb} MB of live objects. Each way runs one step to warm up and one that counts.`,
  )
  const result = await measure(options)
  const { first, second } = result
  for (const line of [...title('plain', second.plain), ...title('offloop', second.offloop)]) say(line)
  say(`\nThe step that counts:\n\n${tableOf([headOf(result), ...rowsOf(compare(second))])}`)
  say(`\nThe first step, which warms up:\n\n${tableOf([headOf(result), ...rowsOf(compare(first))])}`)
  mkdirSync(out, { recursive: true })
  const path = join(out, 'step.html')
  writeFileSync(path, pageOf(result, origin(`offloop ${version}, Node ${process.version}`)))
  say(`\nAll steps wrote the same rows, batch and experts. The page: ${relative('.', path)}`)
  if (isJson) console.log(JSON.stringify(reportOf(result, version)))
}

/** What both ways write and ask for is the same, or this throws. */
async function measure(options: StepOptions): Promise<Result> {
  const { sizes, heapMb } = options
  const server = start('step/inference')
  const made = follow(server, 'made', 'server', expectedBytes(sizes))
  const { port, bytes } = await server.ask<{ readonly port: number; readonly bytes: number }>('start', sizes)
  made()
  const digests = new Set<string>()
  const runWay = async (way: Way): Promise<Steps> => {
    const url = `http://127.0.0.1:${port}/v1/completions`
    const answered = follow(server, 'answered', way, bytes * STEPS.length)
    const order = { way, url, sizes, heapMb, isProfiled: options.isProfiled }
    const { first, second, asked } = await feel(order, server)
    answered()
    for (const [index, step] of STEPS.entries()) {
      digests.add(`${asked[index]} ${digestOf(sizes, join(folder, way, step))}`)
    }
    rmSync(join(folder, way), { recursive: true })
    return { first, second }
  }
  const [plain, offloop] = [await runWay('plain'), await runWay('offloop')]
  await end(server)
  if (digests.size !== 1) throw new Error('the steps have asked for or written something else')
  const first = { plain: plain.first, offloop: offloop.first }
  const second = { plain: plain.second, offloop: offloop.second }
  return { node: process.version, heapMb, sizes, bytes, first, second }
}

type Steps = Readonly<Record<(typeof STEPS)[number], Run>>

/** Runs both steps of an orchestrator, in a process. */
async function feel(order: Order, server: Child): Promise<Steps & { readonly asked: readonly string[] }> {
  const [orchestrator, client] = [start('step/orchestrator', memoryFlags(order.heapMb)), start('step/ping')]
  const port = await orchestrator.ask<number>('prepare', order)
  const asked: string[] = []
  const step = async (name: string): Promise<Run> => {
    const target = join(folder, order.way, name)
    mkdirSync(target, { recursive: true })
    await client.ask('ping', port)
    const felt = await orchestrator.ask<Felt>('run', target)
    const pings = await client.ask<number[]>('stop')
    asked.push(await server.ask<string>('asked'))
    return { ...felt, pings }
  }
  const steps = { first: await step('first'), second: await step('second') }
  await Promise.all([end(orchestrator), end(client)])
  return { ...steps, asked }
}

/** A bar of the bytes that the server reports, until the returned function is called. */
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

/** About as many bytes as all answers will have: base64, and numbers. */
function expectedBytes(sizes: Sizes): number {
  return plan(sizes).reduce((sum, { length }) => sum + length * ROW * 1.35, 0)
}

function start(name: string, flags: readonly string[] = []): Child {
  const child = new Child(name, flags)
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
  return holds.length === 0 ? [] : [`\n${name}: what blocked the loop for more than 10 ms`, ...holds]
}

/** A table of Markdown, with columns of one width. */
function tableOf(table: readonly (readonly string[])[]): string {
  const [head = [], ...rows] = table
  const widths = head.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  const lineOf = (row: readonly string[]): string => {
    const cells = widths.map((width, column) => {
      const cell = row[column] ?? ''
      return column === 0 ? cell.padEnd(width) : cell.padStart(width)
    })
    return `| ${cells.join(' | ')} |`
  }
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [lineOf(head), lineOf(rule), ...rows.map(lineOf)].join('\n')
}
