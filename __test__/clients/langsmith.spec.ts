/** LangSmith's client as the examples have it, against the stock one: the same runs arrive. */

import { isDeepStrictEqual } from 'node:util'
import { Client, type ClientConfig } from 'langsmith'
import test from 'ava'
import { OffloopClient } from '../../examples/langsmith-client.ts'
import { startServer, type Received } from '../fixtures/server.ts'

type Run = Parameters<Client['createRun']>[0]
type Fields = Record<string, unknown>

const INFO = JSON.stringify({
  version: '1.0.0',
  batch_ingest_config: { use_multipart_endpoint: true, size_limit: 100, size_limit_bytes: 20_971_520 },
})

/** What runs hold, as a server puts them together: from the parts of a form, or from a batch. */
async function runsOf(received: readonly Received[]): Promise<Record<string, Fields>> {
  const arrived: Record<string, Fields> = {}
  for (const { path, headers, body } of received) {
    if (path === '/runs/batch') {
      const { post, patch }: Record<'post' | 'patch', Fields[]> = JSON.parse(body.toString())
      for (const run of [...post, ...patch]) Object.assign((arrived[String(run['id'])] ??= {}), run)
    }
    if (path !== '/runs/multipart') continue
    const type = String(headers['content-type'])
    const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData()
    for (const [name, value] of form) {
      const [, id = '', field] = name.split('.')
      const json: unknown = JSON.parse(typeof value === 'string' ? value : await value.text())
      Object.assign((arrived[id] ??= {}), field === undefined ? json : { [field]: json })
    }
  }
  return arrived
}

function idOf(index: number): string {
  return `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`
}

function circle(): Fields {
  const value: Fields = {}
  value['self'] = value
  return value
}

/** Of every kind, made anew: the client changes what it is given. */
function runs(): Run[] {
  const outputs: Fields[] = [
    { text: 'x'.repeat(2_500_000) },
    { text: 'é\u2028"\ud800'.repeat(20_000) },
    {
      messages: Array.from({ length: 300 }, (_, index) => ({
        role: 'user',
        content: `message ${index}`,
        score: index / 7,
      })),
    },
    { big: 2n ** 70n, date: new Date(0), nan: Number.NaN, none: undefined, bytes: Buffer.from('abc') },
    { map: new Map([['a', new Set([1, 2])]]), pattern: /a+/gi, error: new RangeError('of a run') },
    { large: 'y'.repeat(100_000), map: new Map([['b', 1n]]) },
    circle(),
  ]
  return outputs.map((output, index) => ({
    id: idOf(index),
    trace_id: idOf(index),
    dotted_order: `20260101T000000000000Z${idOf(index)}`,
    name: `run ${index}`,
    run_type: 'llm',
    start_time: 1_700_000_000_000 + index,
    inputs: { question: `what is ${index}?` },
    outputs: output,
    extra: { metadata: { index } },
  }))
}

async function sentBy(
  make: (config: ClientConfig) => Client,
): Promise<{ runs: Record<string, Fields>; paths: string[] }> {
  using server = await startServer(({ path }) => [200, path === '/info' ? INFO : '{}'])
  const client = make({ apiUrl: server.url, apiKey: 'key', omitTracedRuntimeInfo: true })
  const all = runs()
  for (const run of all.slice(0, -1)) await client.createRun(run)
  await client.updateRun(idOf(0), {
    trace_id: idOf(0),
    dotted_order: `20260101T000000000000Z${idOf(0)}`,
    end_time: 1_800_000_000_000,
  })
  await client.awaitPendingTraceBatches()
  // A batch with a circle is serialized by the client itself, which loses what no structured clone keeps.
  for (const run of all.slice(-1)) await client.createRun(run)
  await client.awaitPendingTraceBatches()
  await client.updateRun(idOf(1), {
    trace_id: idOf(1),
    dotted_order: `20260101T000000000000Z${idOf(1)}`,
    outputs: { later: new Set(['b']) },
  })
  await client.awaitPendingTraceBatches()
  const paths = [...new Set(server.received.map(({ path }) => path))]
  if (!server.received.every(({ headers }) => headers['x-api-key'] === 'key'))
    throw new Error('a request without a key')
  return { runs: await runsOf(server.received), paths }
}

test('the same runs arrive', async (t) => {
  const [ours, stock] = await Promise.all([
    sentBy((config) => new OffloopClient(config)),
    sentBy((config) => new Client(config)),
  ])
  t.deepEqual(ours.paths, ['/info', '/runs/batch'])
  t.deepEqual(stock.paths, ['/info', '/runs/multipart'])
  t.is(Object.keys(stock.runs).length, runs().length)
  t.deepEqual(Object.keys(ours.runs), Object.keys(stock.runs))
  // Some are megabytes, which no difference should be made of.
  for (const [id, run] of Object.entries(stock.runs)) {
    for (const [name, field] of Object.entries(run))
      t.true(isDeepStrictEqual(ours.runs[id]?.[name], field), `${name} of ${id}`)
  }
})

test('a server that is busy is asked again', async (t) => {
  let asked = 0
  using server = await startServer(({ path }) => {
    if (path === '/info') return [200, INFO]
    asked += 1
    return [asked === 1 ? 503 : 202, '{}']
  })
  const client = new OffloopClient({ apiUrl: server.url, apiKey: 'key' })
  for (const run of runs().slice(2, 3)) await client.createRun(run)
  await client.awaitPendingTraceBatches()
  t.is(asked, 2)
  t.deepEqual(Object.keys(await runsOf(server.received)), [idOf(2)])
})
