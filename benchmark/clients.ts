/**
 * Trace clients: how long they hold the loop. Exporters of OpenTelemetry for a batch of 512 spans, LangSmith's client for a hundred runs
 * of 2.5 MB, and what recording a call takes of the thread that makes it. `npm run bench -- clients`
 */

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api'
import { ExportResultCode, type ExportResult } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-node'
import { Client } from 'langsmith'
import { OffloopClient } from '../examples/langsmith-client.ts'
import { OffloopExporter } from '../examples/otlp-exporter.ts'
import { TraceQueue, type Call } from '../examples/trace-queue.ts'
import { many, Random } from './documents.ts'
import { besideHeap, median, report, sum, swept, table, takeTurns, type Contender, type HeapCase } from './measure.ts'

const IS_QUICK = process.env['OFFLOOP_BENCH_QUICK'] !== undefined
const TURNS = {
  budgetMs: IS_QUICK ? 1000 : 10_000,
  leastRounds: IS_QUICK ? 3 : 15,
  leastRunMs: 20,
  warmMs: IS_QUICK ? 500 : 2000,
}
const SPANS = 512
const RUNS = 100
const RUN_SIZE = 2_500_000
const LANGSMITH_ROUNDS = IS_QUICK ? 2 : 7
const RECORDS = IS_QUICK ? 40 : 300

/** A server in a process of its own, so that what it does is not measured. */
async function startSink(answer: string): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./sink.mjs', import.meta.url)), answer])
  const [port]: unknown[] = await once(child.stdout, 'data')
  return { url: `http://127.0.0.1:${String(port).trim()}`, child }
}

// ───────────────────────────── OpenTelemetry ─────────────────────────────

/** What an HTTP server records of a request, and with `text` what a call of a model adds, of so many characters twice. */
function makeSpans(text: number): ReadableSpan[] {
  const memory = new InMemorySpanExporter()
  const tracer = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(memory)] }).getTracer(
    'bench',
    '1.0.0',
  )
  const random = new Random(1)
  const words = (): string => many(text / 8, random, () => random.below(10_000_000).toString().padEnd(7)).join(' ')
  const parent = trace.setSpan(ROOT_CONTEXT, tracer.startSpan('parent'))
  for (let index = 0; index < SPANS; index += 1) {
    const attributes = {
      'http.request.method': 'GET',
      'url.path': `/api/items/${index}`,
      'http.route': '/api/items/:id',
      'http.response.status_code': 200,
      'server.address': 'localhost',
      'server.port': 8080,
      'network.protocol.version': '1.1',
      'user_agent.original': 'Mozilla/5.0 (X11; Linux x86_64)',
      'app.sampled': true,
      'app.score': random.unit(),
      ...(0 < text && { 'gen_ai.prompt': words(), 'gen_ai.completion': words() }),
    }
    const span = tracer.startSpan('GET /api/items/:id', { kind: SpanKind.SERVER, attributes }, parent)
    if (index % 3 === 0) span.addEvent('cache.miss', { key: `item ${index}`, size: index })
    span.end()
  }
  return memory.getFinishedSpans()
}

async function exported(exporter: SpanExporter, spans: ReadableSpan[]): Promise<void> {
  const { code } = await new Promise<ExportResult>((resolve) => exporter.export(spans, resolve))
  if (code !== ExportResultCode.SUCCESS) throw new Error('not exported')
}

/** Names, and the characters of prompt and completion. */
const SPAN_KINDS = [
  ['of requests, 1 KB', 0],
  ['of calls of a model, with 2 KB of prompt and 2 KB of completion', 2000],
  ['of calls of a model, with 8 KB and 8 KB', 8000],
] as const

function exporterCases(): HeapCase[] {
  return SPAN_KINDS.map(([name, text]) => ({
    name: `${SPANS} spans ${name}`,
    make: async () => {
      const { url, child } = await startSink('{}')
      const spans = makeSpans(text)
      const [stock, ours] = [new OTLPTraceExporter({ url }), new OffloopExporter({ url })]
      return {
        plain: { name: 'OTLPTraceExporter', run: () => exported(stock, spans) },
        ours: { name: 'examples/otlp-exporter.ts', run: () => exported(ours, spans) },
        stop: async () => {
          await Promise.all([stock.shutdown(), ours.shutdown()])
          child.kill()
        },
      }
    },
  }))
}

async function compareExporters(): Promise<string> {
  const { url, child } = await startSink('{}')
  const rows = [['spans', 'stock, loop ms', 'examples/otlp-exporter.ts, loop ms', 'share']]
  for (const [name, text] of SPAN_KINDS) {
    const spans = makeSpans(text)
    const exporters = [new OTLPTraceExporter({ url }), new OffloopExporter({ url })]
    const contenders = exporters.map((exporter): Contender => ({ name, run: () => exported(exporter, spans) }))
    const [stock = Number.NaN, ours = Number.NaN] = (await takeTurns(contenders, TURNS)).map(({ busyMs }) =>
      median(busyMs),
    )
    rows.push([name, stock.toFixed(2), ours.toFixed(2), `1/${(stock / ours).toFixed(1)}`])
    for (const exporter of exporters) await exporter.shutdown()
  }
  child.kill()
  return table(rows)
}

// ───────────────────────────── LangSmith ─────────────────────────────

/** What LangSmith's server says of itself. */
const INFO = JSON.stringify({ batch_ingest_config: { use_multipart_endpoint: true } })
const SAMPLE_MS = 5
/** Timers are late by this much on an idle loop. */
const USUAL_MS = 1

/** How late a timer comes that is set again and again, in all and at most, while something runs. */
async function lagOf(work: () => Promise<void>): Promise<{ readonly total: number; readonly most: number }> {
  const lags: number[] = []
  let since = performance.now()
  const sample = (): void => {
    const late = performance.now() - since - SAMPLE_MS
    if (USUAL_MS < late) lags.push(late)
    since = performance.now()
    timer = setTimeout(sample, SAMPLE_MS)
  }
  let timer = setTimeout(sample, SAMPLE_MS)
  await work()
  await sleep(2 * SAMPLE_MS)
  clearTimeout(timer)
  return { total: sum(lags), most: Math.max(0, ...lags) }
}

function makeRuns(): Parameters<Client['createRun']>[0][] {
  const bytes = Buffer.alloc(RUN_SIZE + RUNS, 'the model goes on to say what it has found. ')
  return Array.from({ length: RUNS }, (_, index) => {
    const id = crypto.randomUUID()
    const inputs = { text: bytes.toString('latin1', index, index + RUN_SIZE) }
    return { id, trace_id: id, dotted_order: `20260101T000000000000Z${id}`, name: 'run', run_type: 'llm', inputs }
  })
}

async function sendRuns(client: Client, runs: ReturnType<typeof makeRuns>): Promise<void> {
  for (const run of runs) {
    await client.createRun(run)
    await nextTurn()
  }
  await client.flush()
  await client.awaitPendingTraceBatches()
}

/** A tenth of the runs: inputs of several calls are made before the first. */
function langsmithCase(): HeapCase {
  return {
    name: `LangSmith, ${RUNS / 10} runs of ${RUN_SIZE / 1e6} MB`,
    make: async () => {
      const { url, child } = await startSink(INFO)
      const options = { apiUrl: url, apiKey: 'key', manualFlushMode: true }
      const contender = (name: string, client: Client): Contender => ({
        name,
        prepare: () => makeRuns().slice(0, RUNS / 10),
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `prepare` made runs
        run: (runs) => sendRuns(client, runs as ReturnType<typeof makeRuns>),
      })
      return {
        plain: contender('stock, without its worker', new Client(options)),
        ours: contender('examples/langsmith-client.ts', new OffloopClient(options)),
        stop: () => child.kill(),
      }
    },
  }
}

async function compareLangSmith(): Promise<string> {
  const { url, child } = await startSink(INFO)
  const options = { apiUrl: url, apiKey: 'key' }
  const clients: readonly (readonly [string, Client])[] = [
    ['stock, its worker', new Client(options)],
    ['stock, without its worker', new Client({ ...options, manualFlushMode: true })],
    ['examples/langsmith-client.ts', new OffloopClient(options)],
  ]
  const taken = clients.map(([name, client]) => ({
    name,
    client,
    total: [0].slice(1),
    most: [0].slice(1),
    busy: [0].slice(1),
  }))
  for (let round = 0; round <= LANGSMITH_ROUNDS; round += 1) {
    for (const { client, total, most, busy } of taken) {
      const runs = makeRuns()
      await swept()
      const before = performance.eventLoopUtilization()
      const lag = await lagOf(() => sendRuns(client, runs))
      if (round === 0) continue
      busy.push(performance.eventLoopUtilization(before).active)
      total.push(lag.total)
      most.push(lag.most)
    }
  }
  child.kill()
  const base = median(taken[0]?.total ?? [])
  const rows = taken.map(({ name, total, most, busy }) => [
    name,
    `${median(total).toFixed(0)} (${(median(total) / base).toFixed(2)})`,
    median(most).toFixed(0),
    median(busy).toFixed(0),
  ])
  return table([['client', 'total lag, ms', 'longest, ms', 'loop busy, ms'], ...rows])
}

// ───────────────────────────── recording a call ─────────────────────────────

const OUTPUTS: Readonly<Record<string, (random: Random) => unknown>> = {
  'one text': (random) => many(120_000, random, () => random.below(1e7).toString().padEnd(7)).join(' '),
  'a chat: messages of 1 to 3 KB': (random) =>
    many(500, random, (id) => ({
      id,
      role: 'assistant',
      content: 'the model says "this".\n'.repeat(40 + random.below(90)),
      usage: { input: random.below(9000), output: random.below(900) },
    })),
  'a rollout: token ids, logprobs, text': (random) => ({
    text: 'the model goes on to say what it has found. '.repeat(4000),
    token_ids: many(60_000, random, () => random.below(150_000)),
    logprobs: many(20_000, random, () => -random.unit()),
  }),
}

function recordingCases(): HeapCase[] {
  return Object.entries(OUTPUTS).map(([name, make]) => ({
    name: `recording a call, ${name}`,
    make: async () => {
      const { url, child } = await startSink('{}')
      const queue = startQueue(url)
      const call = callWith(make(new Random(1)))
      return {
        plain: { name: 'JSON.stringify', run: async () => JSON.stringify(call).length },
        // Calls recorded before are sent before the clock runs.
        ours: { name: 'record', prepare: () => queue.flush(), run: async () => checkTaken(queue.record(call)) },
        stop: async () => {
          await queue[Symbol.asyncDispose]()
          child.kill()
        },
      }
    },
  }))
}

function checkTaken(isTaken: boolean): void {
  if (!isTaken) throw new Error('not recorded')
}

function startQueue(url: string): TraceQueue {
  return new TraceQueue({
    url,
    onLost: ({ reason }) => {
      throw new Error(reason)
    },
  })
}

function callWith(output: unknown): Call {
  const date = new Date()
  return { id: 'call', op: 'bench', startedAt: date, endedAt: date, inputs: [], output }
}

async function compareRecording(): Promise<string> {
  const { url, child } = await startSink('{}')
  const rows = [['output of 1 MB', 'JSON.stringify, ms', 'record, ms', 'share']]
  for (const [name, make] of Object.entries(OUTPUTS)) {
    const queue = startQueue(url)
    const call = callWith(make(new Random(1)))
    const [stringified, recorded] = [[0].slice(1), [0].slice(1)]
    for (let index = 0; index < RECORDS; index += 1) {
      const start = performance.now()
      const { length } = JSON.stringify(call)
      const middle = performance.now()
      const isTaken = queue.record(call)
      const end = performance.now()
      if (!isTaken || length < 2 ** 19) throw new Error(`not recorded: ${length} characters`)
      stringified.push(middle - start)
      recorded.push(end - middle)
      if (index % 10 === 9) await queue.flush()
    }
    await queue[Symbol.asyncDispose]()
    const [theirs, ours] = [median(stringified), median(recorded)]
    rows.push([name, theirs.toFixed(2), ours.toFixed(3), `1/${(theirs / ours).toFixed(1)}`])
  }
  child.kill()
  return table(rows)
}

const exporters = await compareExporters()
const langsmith = await compareLangSmith()
const recording = await compareRecording()
const sections = [
  `## Exporting ${SPANS} spans\n\nBusy time of the loop for an export, from the call to its callback: mapping, encoding, the request over loopback. Medians of runs in turns; the goal is 1/3.`,
  exporters,
  `## LangSmith: ${RUNS} runs of ${RUN_SIZE / 1e6} MB\n\nHow late a timer of ${SAMPLE_MS} ms comes, where by more than ${USUAL_MS} ms, from the first \`createRun\` to the last answer; medians of ${LANGSMITH_ROUNDS} rounds. In brackets how many times that of the stock client it is; the goal is 0.5.`,
  langsmith,
  `## Recording a call\n\nWhat \`record\` of examples/trace-queue.ts takes of the thread, and JSON.stringify of the same call; medians of ${RECORDS}; the goal is 1/10.`,
  recording,
  ...(await besideHeap([...exporterCases(), langsmithCase(), ...recordingCases()])),
]
report('Trace clients', sections)
process.exit()
