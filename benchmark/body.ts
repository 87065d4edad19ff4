/**
 * Bodies of vLLM-like completions: `parse` against JSON.parse and Buffer.from, against a splice by hand, and against
 * Python. Every result is checked before it is timed. `npm run bench -- body`
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { get, IncomingMessage } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { parse, split, type Lift } from '../src/index.ts'
import { many, Random } from './documents.ts'
import {
  besideHeap,
  inRows,
  mean,
  median,
  report,
  swept,
  table,
  takeTurns,
  type Contender,
  type HeapCase,
  type HeapPair,
  type Turns,
} from './measure.ts'
import { startSnake } from './snake.ts'

const TURNS: Turns = { budgetMs: 4000, leastRounds: 3, leastRunMs: 1, warmMs: 500 }
const SNAKE_RUNS = 12
/** Of base64. */
const MEGABYTES_31 = 23_040_000
const ROUNDS = 6
/** In a row. */
const CALLS = 5

interface Choice {
  routed_experts: unknown
  token_ids?: unknown
  logprobs?: unknown
  sampling_mask?: unknown
  hidden_states?: unknown
}
interface Completion {
  readonly choices: Choice[]
  prompt_token_ids?: unknown
}

interface Case {
  readonly name: string
  readonly body: Buffer
  readonly lift: Readonly<Record<string, Lift>>
  /** What else a plain program turns into typed arrays. */
  readonly areNumbersLifted?: boolean
  readonly isSpliced?: boolean
}

function bytes(length: number, seed: number): Buffer {
  const made = Buffer.allocUnsafe(length)
  for (let index = 0; index < length; index += 1) made[index] = (index * 31 + seed) & 127
  return made
}

/** A long conversation: 52,000 ids of its prompt, 8,000 of its answer of 200 KB, and the experts of all of them. */
function conversation(character: string): Buffer {
  const random = new Random(1)
  const ids = (length: number): number[] => many(length, random, () => random.below(151_936))
  const content = `${'the quick brown fox jumps over a lazy dog and then "quotes"\n newline '.repeat(2900)}${character}`
  const experts = { data: bytes(MEGABYTES_31, 0).toString('base64'), shape: [60_000, 48, 8], start: 0, dtype: 'uint8' }
  const choice = {
    index: 0,
    message: { role: 'assistant', content, reasoning_content: null, tool_calls: [] },
    logprobs: null,
    finish_reason: 'stop',
    token_ids: ids(8000),
    routed_experts: experts,
  }
  const usage = { prompt_tokens: 52_000, total_tokens: 60_000, completion_tokens: 8000 }
  return Buffer.from(
    JSON.stringify({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      prompt_token_ids: ids(52_000),
      choices: [choice],
      usage,
    }),
  )
}

/** `experts` bytes of them in each choice, and so many tokens in all. */
function completion(choices: number, experts: number, tokens: number, text: string): Buffer {
  const random = new Random(1)
  const list = many(choices, random, (_, index) => ({
    index,
    message: { role: 'assistant', content: text.repeat(20) },
    token_ids: many(tokens / choices, random, () => random.below(150_000)),
    logprobs: many(tokens / choices, random, () => -random.unit()),
    routed_experts: bytes(experts, index).toString('base64'),
    finish_reason: 'stop',
  }))
  return Buffer.from(
    JSON.stringify({ id: 'cmpl-1', object: 'chat.completion', choices: list, usage: { total: tokens } }),
  )
}

/** Sampling masks as lists of lists of token ids, 3 MB of JSON, and states as rectangular lists of floats. */
function masked(): Buffer {
  const random = new Random(1)
  const mask = many(2000, random, () => many(random.below(450), random, () => random.below(151_936)))
  const states = many(200, random, () => many(256, random, () => random.unit()))
  const choice = { index: 0, sampling_mask: mask, hidden_states: states, message: { role: 'assistant', content: 'x' } }
  return Buffer.from(JSON.stringify({ id: 'cmpl-1', object: 'chat.completion', choices: [choice] }))
}

/** Flattens nested lists as a plain program does. */
function flatten(choice: Choice): void {
  const { sampling_mask: mask, hidden_states: states } = choice
  if (Array.isArray(mask)) {
    choice.sampling_mask = {
      values: Int32Array.from(mask.flat()),
      counts: Int32Array.from(mask, ({ length }) => length),
    }
  }
  if (Array.isArray(states)) {
    choice.hidden_states = { data: Float32Array.from(states.flat()), shape: [states.length, states[0].length] }
  }
}

const EXPERTS = { '/choices/*/routed_experts': 'base64' } as const
const DATA = { '/choices/*/routed_experts/data': 'base64' } as const
const NUMBERS = { '/choices/*/token_ids': 'int32', '/choices/*/logprobs': 'float64' } as const

const CASES: readonly Case[] = [
  { name: 'one blob of 31 MB', body: conversation(''), lift: DATA, isSpliced: true },
  { name: 'the same, a CJK character in it', body: conversation('答'), lift: DATA, isSpliced: true },
  {
    name: 'the same, ids lifted too',
    body: conversation(''),
    lift: { ...DATA, '/prompt_token_ids': 'int32', '/choices/*/token_ids': 'int32' },
    areNumbersLifted: true,
  },
  { name: '8 choices', body: completion(8, MEGABYTES_31 / 8, 20_000, 'an answer. '), lift: EXPERTS },
  {
    name: '60,000 ids and logprobs, all lifted',
    body: completion(1, MEGABYTES_31, 60_000, 'an answer. '),
    lift: { ...EXPERTS, ...NUMBERS },
    areNumbersLifted: true,
  },
  {
    name: 'masks and states of 4 MB, lifted as ragged and tensor',
    body: masked(),
    lift: { '/choices/*/sampling_mask': { ragged: 'int32' }, '/choices/*/hidden_states': { tensor: 'float32' } },
    areNumbersLifted: true,
  },
  { name: '2 KB', body: completion(1, 600, 40, 'an answer. '), lift: EXPERTS },
]

function plainly(body: Buffer, { areNumbersLifted = false }: Case): Completion {
  const value: Completion = JSON.parse(body.toString())
  if (areNumbersLifted && Array.isArray(value.prompt_token_ids)) {
    value.prompt_token_ids = Int32Array.from(value.prompt_token_ids)
  }
  for (const choice of value.choices) {
    putBlob(choice, (text) => Buffer.from(text, 'base64'))
    if (!areNumbersLifted) continue
    if (Array.isArray(choice.token_ids)) choice.token_ids = Int32Array.from(choice.token_ids)
    if (Array.isArray(choice.logprobs)) choice.logprobs = Float64Array.from(choice.logprobs)
    flatten(choice)
  }
  return value
}

function putBlob(choice: Choice, blobOf: (text: string) => Buffer): void {
  const { routed_experts: experts } = choice
  if (experts === undefined) return
  if (typeof experts === 'string') choice.routed_experts = blobOf(experts)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the template has an object here
  else Object.assign(experts as object, { data: blobOf((experts as { readonly data: string }).data) })
}

function bufferOf(value: unknown): Buffer {
  if (Buffer.isBuffer(value)) return value
  throw new TypeError('no Buffer')
}

const PREFIX = Buffer.from('"data":"')

/** For one blob, whose key nobody writes otherwise. */
function spliced(body: Buffer): Completion {
  const start = body.indexOf(PREFIX) + PREFIX.length
  const end = body.indexOf(34, start)
  const blob = Buffer.from(body.toString('latin1', start, end), 'base64')
  const value: Completion = JSON.parse(body.toString('utf8', 0, start) + body.toString('utf8', end))
  for (const choice of value.choices) putBlob(choice, () => blob)
  return value
}

const snake = await startSnake('body.py')
const sections = [
  `Busy is the time of the loop for a body, in the median; relief is that of JSON.parse and Buffer.from ÷ that of \`parse\`, to which the body is handed over (\`transfer\`), as one that was received is; and, for comparison, without that. Each call has a body of its own, made before; calls follow each other, five in a row. Beside it the time that JSON.parse alone takes for the text that is left. The hand splice knows where the one blob stands. Python: CPU time of orjson.loads and pybase64, and of msgspec into structs with a bytes field, in the same rounds (${snake?.versions ?? 'no Python'}).`,
  table(await cases()),
  '## Eight at once\n\nThe longest the loop stood still, of 12 rounds, in the median.',
  table(await eight()),
  '## Over HTTP\n\nFrom the head of the response to the value, over loopback from another process: time of the loop.',
  table(await overHttp()),
]
snake?.stop()
report('JSON in', [...sections, ...(await besideHeap(heapCases()))])

/** Each body whole, and the first two over HTTP, from the request to the value. */
function heapCases(): HeapCase[] {
  return [
    ...CASES.map((given) => ({ name: given.name, make: () => wholePair(given) })),
    ...CASES.slice(0, 2).map((given) => ({ name: `${given.name}, over HTTP`, make: () => httpPair(given) })),
  ]
}

function wholePair(given: Case): HeapPair {
  const [plain, ours] = waysOf(given)
  return { plain, ours }
}

async function httpPair({ body, lift }: Case): Promise<HeapPair> {
  const { url, stop } = await serve(body)
  const plain = { name: 'response.json(), Buffer.from', run: async () => plainlyReceived(await fetch(url)) }
  const ours = { name: 'parse(response.body)', run: async () => parse((await fetch(url)).body ?? [], { lift }) }
  return { plain, ours, stop }
}

async function cases(): Promise<string[][]> {
  const rows = [
    [
      'body',
      'MB',
      'plain busy ms',
      'splice busy ms',
      'parse, copied, busy ms',
      'parse busy ms',
      'of which JSON.parse',
      'relief',
      'minima',
      'means',
      'splice ÷ parse',
      'plain latency ms',
      'parse latency ms',
      'parse CPU ms',
      'orjson + pybase64 ms',
      'msgspec ms',
    ],
  ]
  for (const given of CASES) {
    const { name, body, lift, isSpliced = false } = given
    const expected = plainly(body, given)
    if (!isDeepStrictEqual(await parse(body, { lift }), expected)) throw new Error(`${name}: another value`)
    if (isSpliced && !isDeepStrictEqual(spliced(body), expected)) throw new Error(`${name}: another splice`)
    const [plainer, handedOver] = waysOf(given)
    const { prepare = () => body } = plainer
    const ours: Contender = { name: 'parse, copied', prepare, run: (own) => parse(bufferOf(own), { lift }) }
    const contenders: Contender[] = [plainer, handedOver, ours]
    if (isSpliced) contenders.push({ name: 'splice', prepare, run: async (own) => spliced(bufferOf(own)) })
    // One body is handed over once.
    const runs = await (isSmall(given) ? takeTurns(contenders, TURNS) : inRows(contenders, ROUNDS, CALLS))
    const [plain, own, copied, splice] = runs
    if (plain === undefined || own === undefined || copied === undefined) throw new Error('contenders are missing')
    const { cpu, loads, structs } = await inRounds(handedOver, body)
    const ratio = (of: (values: readonly number[]) => number): string =>
      `${(of(plain.busyMs) / of(own.busyMs)).toFixed(1)}×`
    rows.push([
      name,
      (body.length / 1e6).toFixed(2),
      median(plain.busyMs).toFixed(3),
      splice === undefined ? '' : median(splice.busyMs).toFixed(3),
      median(copied.busyMs).toFixed(3),
      median(own.busyMs).toFixed(3),
      (await restMs(given)).toFixed(3),
      ratio(median),
      ratio((values) => Math.min(...values)),
      ratio(mean),
      splice === undefined ? '' : `${(median(splice.busyMs) / median(own.busyMs)).toFixed(1)}×`,
      median(plain.wallMs).toFixed(2),
      median(own.wallMs).toFixed(2),
      cpu.toFixed(2),
      loads === undefined ? '' : loads.toFixed(2),
      structs === undefined ? '' : structs.toFixed(2),
    ])
  }
  return rows
}

/** The plain way, and `parse`, to which a body of its own is handed over unless it is small. */
function waysOf(given: Case): readonly [plain: Contender, ours: Contender] {
  const { body, lift } = given
  const transfer = !isSmall(given)
  const prepare = transfer ? (): Buffer => Buffer.from(Uint8Array.from(body).buffer) : undefined
  const plain = (own: unknown): Completion => plainly(bufferOf(own ?? body), given)
  return [
    { name: 'JSON.parse, Buffer.from', ...(prepare && { prepare }), run: async (own) => plain(own) },
    { name: 'parse', ...(prepare && { prepare }), run: (own) => parse(bufferOf(own ?? body), { lift, transfer }) },
  ]
}

function isSmall({ body }: Case): boolean {
  return body.length < 100_000
}

/** What JSON.parse takes for what is left of a body. */
async function restMs({ body, lift }: Case): Promise<number> {
  const { json } = await split(body, { lift })
  const text = json.toString()
  const times = Array.from({ length: 25 }, () => {
    const start = performance.now()
    JSON.parse(text)
    return performance.now() - start
  })
  return median(times)
}

interface Rounds {
  readonly cpu: number
  readonly loads: number | undefined
  readonly structs: number | undefined
}

/** A call of ours, calls of theirs, and so on. */
async function inRounds(ours: Contender, body: Buffer): Promise<Rounds> {
  const [own, loads, structs] = [[0], [0], [0]].map((list) => list.slice(1))
  if (snake !== undefined) {
    const path = join(snake.folder, 'body')
    writeFileSync(path, body)
    await snake.ask(path)
  }
  for (let round = 0; round < SNAKE_RUNS; round += 1) {
    const prepared = await ours.prepare?.()
    await swept()
    const before = process.cpuUsage()
    await ours.run(prepared)
    const { user, system } = process.cpuUsage(before)
    own?.push((user + system) / 1000)
    if (snake === undefined) continue
    const [load = '', struct = ''] = (await snake.ask('run')).split(' ')
    loads?.push(Number(load))
    structs?.push(Number(struct))
  }
  const last = (list: readonly number[] = []): number | undefined => (list.length === 0 ? undefined : median(list))
  return { cpu: last(own) ?? 0, loads: last(loads), structs: last(structs) }
}

async function eight(): Promise<string[][]> {
  const [first] = CASES
  if (first === undefined) throw new Error('no case')
  const { body, lift } = first
  const ways: Readonly<Record<string, () => Promise<unknown>>> = {
    'JSON.parse and Buffer.from': () => Promise.all(Array.from({ length: 8 }, async () => plainly(body, first))),
    'parse, copied': () => Promise.all(Array.from({ length: 8 }, () => parse(body, { lift }))),
    parse: () => Promise.all(bodies.map((own) => parse(own, { lift, transfer: true }))),
  }
  const rows = [['way', 'longest stall ms']]
  let bodies: Uint8Array[] = []
  for (const [name, run] of Object.entries(ways)) {
    const stalls: number[] = []
    for (let round = 0; round < 12; round += 1) {
      bodies = Array.from({ length: 8 }, () => Uint8Array.from(body))
      stalls.push(await stallOf(run))
    }
    rows.push([name, median(stalls).toFixed(1)])
  }
  return rows
}

/** The longest pause between two turns of the loop. */
async function stallOf(run: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let last = performance.now()
  let isOver = false
  const look = (): void => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    if (!isOver) setImmediate(look)
  }
  setImmediate(look)
  await new Promise((resolve) => setTimeout(resolve, 5))
  await run()
  await new Promise((resolve) => setImmediate(resolve))
  isOver = true
  return longest
}

async function overHttp(): Promise<string[][]> {
  const rows = [['body', 'way', 'busy ms', 'response.json() ÷ this']]
  for (const given of CASES.slice(0, 2)) {
    const { url, stop } = await serve(given.body)
    const { lift } = given
    const fetched = (name: string, run: (response: Response) => unknown): Contender => ({
      name,
      prepare: () => fetch(url),
      run: (response) => {
        if (!(response instanceof Response)) throw new TypeError('no response')
        return run(response)
      },
    })
    const got = (name: string, run: (message: IncomingMessage) => unknown): Contender => ({
      name,
      prepare: () => new Promise((resolve) => get(url, resolve)),
      run: (message) => {
        if (!(message instanceof IncomingMessage)) throw new TypeError('no message')
        return run(message)
      },
    })
    const contenders = [
      fetched('await response.json(), Buffer.from', plainlyReceived),
      fetched('parse(response.body)', ({ body }) => parse(body ?? [], { lift })),
      fetched('reading response.body, no more', async ({ body }) => {
        const reader = body?.getReader()
        while ((await reader?.read())?.done === false);
      }),
      got('parse(IncomingMessage)', (message) => parse(message, { lift })),
      got('reading IncomingMessage, no more', async (message) => {
        await once(message.resume(), 'end')
      }),
    ]
    const runs = await takeTurns(contenders, { ...TURNS, leastRunMs: 0 })
    stop()
    const plain = median(runs[0]?.busyMs ?? [])
    for (const { name, busyMs } of runs) {
      rows.push([given.name, name, median(busyMs).toFixed(2), `${(plain / median(busyMs)).toFixed(1)}×`])
    }
  }
  return rows
}

async function plainlyReceived(response: Response): Promise<Completion> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server sends a completion
  const value = (await response.json()) as Completion
  for (const choice of value.choices) putBlob(choice, (text) => Buffer.from(text, 'base64'))
  return value
}

/** In another process. */
async function serve(body: Buffer): Promise<{ readonly url: string; readonly stop: () => void }> {
  const path = fileURLToPath(new URL('server.mjs', import.meta.url))
  const child = spawn(process.execPath, [path], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(body)
  const port = await new Promise<string>((resolve) =>
    child.stdout.once('data', (text: Buffer) => resolve(String(text))),
  )
  return { url: `http://127.0.0.1:${port.trim()}/`, stop: () => child.kill() }
}
