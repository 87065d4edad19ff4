/**
 * Server-sent events: `parseEvents` against `buffer += text; indexOf`, `eventsource-parser` and the decoder of the OpenAI
 * SDK. Every result is checked before it is timed. `npm run bench -- events`
 */

import { isDeepStrictEqual } from 'node:util'
import { createParser } from 'eventsource-parser'
import { Stream } from 'openai/core/streaming'
import { parseEvents, type Lift } from '../src/index.ts'
import { many, prose, Random } from './documents.ts'
import {
  besideHeap,
  mean,
  median,
  report,
  table,
  takeTurns,
  type Contender,
  type HeapCase,
  type Turns,
} from './measure.ts'

const isQuick = process.env['OFFLOOP_BENCH_QUICK'] === '1'
const TURNS: Turns = isQuick
  ? { budgetMs: 100, leastRounds: 1, leastRunMs: 1, warmMs: 10 }
  : { budgetMs: 4000, leastRounds: 3, leastRunMs: 1, warmMs: 500 }
/** Bytes of a chunk, as a socket of Node gives them. */
const CHUNK = 16 * 1024

interface Case {
  readonly name: string
  readonly chunks: readonly Buffer[]
  readonly lift?: Readonly<Record<string, Lift>>
  /** Turns the data of an event into values, as a plain program does. */
  readonly finish: (data: unknown) => unknown
  /** Whether the usual code, whose time is quadratic in the size of an event, is measured too. */
  readonly hasUsual: boolean
  /** Least ratios against each of the libraries. */
  readonly goal: number
}

function cut(text: string, size: number): Buffer[] {
  const bytes = Buffer.from(text)
  return many(Math.ceil(bytes.length / size), new Random(1), (_, index) =>
    Buffer.from(bytes.subarray(index * size, (index + 1) * size)),
  )
}

/** A delta of a chat completion, of about 200 bytes. */
function delta(random: Random): string {
  const content = prose(random, 8)
  const choice = { index: 0, delta: { content }, logprobs: null, finish_reason: null }
  const chunk = {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_790_000_000,
    model: 'm',
    choices: [choice],
  }
  return `data: ${JSON.stringify(chunk)}\n\n`
}

const random = new Random(1)
const DELTAS = isQuick ? 100 : 10_000
const deltas = many(DELTAS, random, delta)
const image = Buffer.from(many(isQuick ? 10_000 : 7_500_000, random, () => random.below(256))).toString('base64')
const imageEvent = `data: ${JSON.stringify({ type: 'image', index: 0, b64_json: image })}\n\n`
const textEvent = `data: ${JSON.stringify({ type: 'text', index: 0, text: prose(random, isQuick ? 10_000 : 10_000_000) })}\n\n`
const identity = (data: unknown): unknown => data

const CASES: readonly Case[] = [
  {
    name: 'one event of 10 MB: an image, lifted',
    chunks: cut(imageEvent, CHUNK),
    lift: { '/b64_json': 'base64' },
    finish(data) {
      const value = Object(data)
      if ('b64_json' in value) value.b64_json = Buffer.from(value.b64_json, 'base64')
      return value
    },
    hasUsual: true,
    goal: 20,
  },
  { name: 'one event of 10 MB: text', chunks: cut(textEvent, CHUNK), finish: identity, hasUsual: false, goal: 1 },
  {
    name: `${DELTAS} deltas of 200 bytes, in chunks of 16 KB`,
    chunks: cut(deltas.join(''), CHUNK),
    finish: identity,
    hasUsual: false,
    goal: 1,
  },
  {
    name: `${DELTAS} deltas of 200 bytes, a chunk each`,
    chunks: deltas.map((text) => Buffer.from(text)),
    finish: identity,
    hasUsual: false,
    goal: 1,
  },
]

/** A body as fetch gives it. */
function streamOf(chunks: readonly Buffer[]): ReadableStream<Uint8Array> {
  let next = 0
  return new ReadableStream({
    pull(controller) {
      const chunk = chunks[next++]
      if (chunk === undefined) controller.close()
      else controller.enqueue(chunk)
    },
  })
}

async function usual({ chunks, finish }: Case): Promise<unknown[]> {
  const values: unknown[] = []
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of streamOf(chunks)) {
    text += decoder.decode(chunk, { stream: true })
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      values.push(finish(JSON.parse(text.slice('data: '.length, end))))
      text = text.slice(end + 2)
    }
  }
  return values
}

async function byParser({ chunks, finish }: Case): Promise<unknown[]> {
  const values: unknown[] = []
  const decoder = new TextDecoder()
  const parser = createParser({ onEvent: ({ data }) => values.push(finish(JSON.parse(data))) })
  for await (const chunk of streamOf(chunks)) parser.feed(decoder.decode(chunk, { stream: true }))
  return values
}

async function byOpenAi({ chunks, finish }: Case): Promise<unknown[]> {
  const values: unknown[] = []
  const response = new Response(streamOf(chunks))
  for await (const data of Stream.fromSSEResponse(response, new AbortController())) values.push(finish(data))
  return values
}

async function ours({ chunks, lift }: Case): Promise<unknown[]> {
  const values: unknown[] = []
  for await (const { data } of parseEvents(streamOf(chunks), lift === undefined ? {} : { lift })) values.push(data)
  return values
}

const WAYS = [
  { name: 'eventsource-parser', run: byParser },
  { name: 'OpenAI SDK', run: byOpenAi },
  { name: 'buffer += text; indexOf', run: usual },
] as const

report('Server-sent events', [
  `Loop time of a whole stream, in the median and (mean), collections included. Each reads a web stream, as fetch gives it, parses the data of each event, and makes bytes of base64. Goals against the libraries: 20 for a large event, never slower for small ones.`,
  table(await cases()),
  ...(await besideHeap(CASES.map(heapCase))),
])

async function cases(): Promise<string[][]> {
  const rows = [
    ['stream', 'parseEvents, loop ms', 'latency ms', ...WAYS.flatMap(({ name }) => [`${name}, loop ms`, '÷'])],
  ]
  for (const given of CASES) {
    const expected = await byParser(given)
    const ways = WAYS.filter(({ run }) => given.hasUsual || run !== usual)
    for (const { name, run } of [...ways, { name: 'parseEvents', run: ours }]) {
      if (!isDeepStrictEqual(await run(given), expected)) throw new Error(`${given.name}: other values by ${name}`)
    }
    const contenders: Contender[] = [{ name: 'parseEvents', run: () => ours(given) }]
    for (const { name, run } of ways) contenders.push({ name, run: () => run(given) })
    const [own, ...others] = await takeTurns(contenders, TURNS)
    if (own === undefined) throw new Error('a contender is missing')
    const cells = others.flatMap(({ busyMs }) => [shown(busyMs), `${(mean(busyMs) / mean(own.busyMs)).toFixed(2)}×`])
    rows.push([`${given.name} (goal ${given.goal}×)`, shown(own.busyMs), median(own.wallMs).toFixed(2), ...cells])
  }
  const width = Math.max(...rows.map(({ length }) => length))
  return rows.map((row) => row.concat(Array.from({ length: width - row.length }, () => '')))
}

function shown(times: readonly number[]): string {
  return `${median(times).toFixed(2)} (${mean(times).toFixed(2)})`
}

function heapCase(given: Case): HeapCase {
  return {
    name: given.name,
    make: () => ({
      plain: { name: 'eventsource-parser', run: () => byParser(given) },
      ours: { name: 'parseEvents', run: () => ours(given) },
    }),
  }
}
