/** The OTLP exporter of the examples against the stock one: a server decodes the same requests. */

import {
  createTraceState,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Attributes,
} from '@opentelemetry/api'
import { ExportResultCode, type ExportResult } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-node'
import test from 'ava'
import { OffloopExporter } from '../../examples/otlp-exporter.ts'
import { startServer } from '../fixtures/server.ts'

const REMOTE = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  traceFlags: TraceFlags.SAMPLED,
  traceState: createTraceState('vendor=one,other=two'),
  isRemote: true,
}
const ATTRIBUTES: Attributes = {
  text: 'é "quoted" \u2028 \u{1f600} \ud800',
  empty: '',
  int: 42,
  'negative int': -7,
  'large int': 2 ** 53 + 2,
  zero: -0,
  double: 0.1 + 0.2,
  tiny: 5e-324,
  yes: true,
  no: false,
  texts: ['a', 'b'],
  ints: [1, 2, 3],
  mixed: [1.5, null, 2],
  none: [],
  long: 'x'.repeat(300_000),
}

/** Spans of a provider, of every kind there is. */
function spansOf(name: string, schemaUrl: string | undefined): ReadableSpan[] {
  const memory = new InMemorySpanExporter()
  const resource = resourceFromAttributes(
    { 'service.name': name, pid: 7, tags: ['x', 'y'] },
    { ...(schemaUrl !== undefined && { schemaUrl }) },
  )
  const provider = new NodeTracerProvider({ resource, spanProcessors: [new SimpleSpanProcessor(memory)] })
  for (const scope of [['first', '1.0.0'], ['second', undefined, 'https://example.com/schema'], ['']] as const) {
    const tracer = provider.getTracer(scope[0], scope[1], { ...(scope[2] !== undefined && { schemaUrl: scope[2] }) })
    for (const kind of [SpanKind.INTERNAL, SpanKind.SERVER, SpanKind.CLIENT, SpanKind.PRODUCER, SpanKind.CONSUMER]) {
      const root = tracer.startSpan(`root ${kind}`, { kind, root: true, attributes: ATTRIBUTES })
      const child = tracer.startSpan(
        'child',
        { links: [{ context: REMOTE, attributes: { why: 'fan-in' } }] },
        trace.setSpan(ROOT_CONTEXT, root),
      )
      child.addEvent('event', { at: 1, list: [true] }, [1_700_000_000, 5])
      child.addEvent('bare')
      child.recordException(new RangeError('of a span'))
      child.setStatus({ code: SpanStatusCode.ERROR, message: 'failed' })
      child.end([1_800_000_000, 123_456_789])
      root.setStatus({ code: SpanStatusCode.OK })
      root.end()
    }
    const remote = tracer.startSpan('of a remote', {}, trace.setSpanContext(ROOT_CONTEXT, REMOTE))
    for (let index = 0; index < 200; index += 1) remote.setAttribute(`attribute ${index}`, index)
    remote.end()
  }
  return memory.getFinishedSpans()
}

function exported(exporter: SpanExporter, spans: ReadableSpan[]): Promise<ExportResult> {
  return new Promise((resolve) => exporter.export(spans, resolve))
}

/** The requests of an exporter, as a server decodes them. */
async function requestsOf(
  exporterOf: (url: string) => SpanExporter,
  batches: readonly ReadableSpan[][],
): Promise<unknown[]> {
  using server = await startServer()
  const exporter = exporterOf(`${server.url}/v1/traces`)
  for (const spans of batches)
    if ((await exported(exporter, spans)).code !== ExportResultCode.SUCCESS) throw new Error('not exported')
  await exporter.shutdown()
  return server.received.map(({ path, headers, body }) => [path, headers['content-type'], JSON.parse(body.toString())])
}

test('a server decodes what the stock exporter sends', async (t) => {
  const first = spansOf('one', undefined)
  const second = spansOf('two', 'https://example.com/resource')
  const batches = [first, second, [...second, ...first].toReversed(), first.slice(0, 1)]
  const [ours, stock] = await Promise.all([
    requestsOf((url) => new OffloopExporter({ url }), batches),
    requestsOf((url) => new OTLPTraceExporter({ url }), batches),
  ])
  t.is(stock.length, batches.length)
  t.deepEqual(ours, stock)
})

test('as the exporter of a provider, with a batch processor', async (t) => {
  using server = await startServer()
  const exporter = new OffloopExporter({ url: server.url, headers: { 'x-key': 'secret' } })
  const provider = new NodeTracerProvider({
    spanProcessors: [new BatchSpanProcessor(exporter, { maxExportBatchSize: 100 })],
  })
  const tracer = provider.getTracer('test')
  for (let index = 0; index < 250; index += 1) tracer.startSpan(`span ${index}`).end()
  await provider.shutdown()
  const names = server.received.flatMap(({ body }): string[] => {
    const { resourceSpans }: { resourceSpans: { scopeSpans: { spans: { name: string }[] }[] }[] } = JSON.parse(
      body.toString(),
    )
    return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map(({ name }) => name)))
  })
  t.deepEqual(
    names,
    Array.from({ length: 250 }, (_, index) => `span ${index}`),
  )
  t.true(server.received.every(({ headers }) => headers['x-key'] === 'secret'))
})

test('a request that a server refuses for good fails the export, with its status', async (t) => {
  using server = await startServer(() => [400, 'no'])
  const exporter = new OffloopExporter({ url: server.url })
  const { code, error } = await exported(exporter, spansOf('refused', undefined))
  t.is(code, ExportResultCode.FAILED)
  t.regex(error?.message ?? '', /400/)
  await exporter.shutdown()
  t.is((await exported(exporter, spansOf('closed', undefined))).code, ExportResultCode.FAILED)
})
