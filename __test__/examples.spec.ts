/** The examples, as their readers would run them. */

import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import test from 'ava'
import { unpack } from 'msgpackr'
import { digestOf, saveSample } from '../examples/fetch-samples.ts'
import { rollOut } from '../examples/routed-experts.ts'
import { npy } from './fixtures/experts.ts'

/** What token a position has, and the experts it is routed to: a model that always goes on the same way. */
const LAYERS = 3
const TOPK = 2
const SAMPLED = 40

function routes(position: number): number[] {
  return Array.from({ length: LAYERS * TOPK }, (_, index) => (position * 7 + index) % 128)
}

interface Request {
  readonly prompt: readonly number[]
  readonly routed_experts_prompt_start: number
}

/** Rows from `start` on, but none of the last token, which was sampled and never forwarded. */
function rowsOf({ prompt, routed_experts_prompt_start: start }: Request): number[][] {
  const total = prompt.length + SAMPLED
  return Array.from({ length: total - 1 - start }, (_, index) => routes(start + index))
}

const SERVERS: Readonly<Record<string, (request: Request) => unknown>> = {
  'vLLM: a string': (request) => {
    const rows = rowsOf(request)
    return npy({ values: rows.flat(), shape: [rows.length, LAYERS, TOPK], dtype: 'uint8' }).toString('base64')
  },
  'prime-rl: an object': (request) => {
    const rows = rowsOf(request)
    const data = Buffer.from(rows.flat()).toString('base64')
    return { data, shape: [rows.length, LAYERS, TOPK], start: request.routed_experts_prompt_start, dtype: 'uint8' }
  },
}

/** Runs `work` with the address of a server that answers as `answer` does. */
async function serving(answer: RequestListener, work: (url: string) => Promise<void>): Promise<void> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address
  const { port } = server.address() as AddressInfo
  try {
    await work(`http://127.0.0.1:${port}/`)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

for (const [name, expertsOf] of Object.entries(SERVERS)) {
  test(`a rollout against a server that answers as ${name}`, async (t) => {
    const answer: RequestListener = (request, response) => {
      void buffer(request).then((body) => {
        const asked: Request = JSON.parse(body.toString())
        const tokens = Array.from({ length: SAMPLED }, (_, index) => asked.prompt.length + index)
        return response.end(JSON.stringify({ choices: [{ token_ids: tokens, routed_experts: expertsOf(asked) }] }))
      })
    }
    await serving(answer, async (url) => {
      const { tokens, experts } = await rollOut(url, (turn) => (turn < 6 ? [9, 9, 9] : undefined))
      t.is(tokens.length, 6 * (3 + SAMPLED))
      t.deepEqual(experts.shape, [tokens.length, LAYERS, TOPK])
      // The last row is of the token that nobody forwarded.
      const expected = tokens.slice(1).flatMap((_, position) => routes(position))
      t.deepEqual([...experts.data.subarray(0, -LAYERS * TOPK)], expected)
      t.true(experts.data.subarray(-LAYERS * TOPK).every((value) => value === 0))
    })
  })
}

// ───────────────────────────── fetch ─────────────────────────────

/** Requests, tokens and experts are each larger than the 64 KiB from which memory is used again. */
const COUNT = 12
const TOKENS = 20_000
const ROWS = 30_000

function requestOf(id: number): { readonly id: number; readonly prompt: readonly number[] } {
  return { id, prompt: Array.from({ length: TOKENS }, (_, index) => (index * 7 + id) % 100_000) }
}

function expertsFor(id: number): Buffer {
  return Buffer.alloc(ROWS * LAYERS * TOPK, Buffer.from([id, 2, id + 3, 5, 7]))
}

/** Answers with experts of the request's id. `received` gets each body as it came. */
function completions(received: Map<number, string>): RequestListener {
  return (request, response) => {
    const answered = buffer(request).then((body) => {
      const text = body.toString()
      const { id }: { readonly id: number } = JSON.parse(text)
      received.set(id, text)
      const experts = { data: expertsFor(id).toString('base64'), shape: [ROWS, LAYERS, TOPK], dtype: 'uint8' }
      return response.end(JSON.stringify({ choices: [{ token_ids: requestOf(id).prompt, routed_experts: experts }] }))
    })
    // A body that is not whole: the client is told, so that the test fails at once.
    answered.catch((error) => response.writeHead(400).end(String(error)))
  }
}

test('fetch: requests that are released arrive whole, samples are saved, digests are of the answer', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const received = new Map<number, string>()
  await serving(completions(received), async (url) => {
    const ids = Array.from({ length: COUNT }, (_, id) => id)
    // Later rounds find the memory of earlier ones.
    for (let round = 0; round < 3; round += 1) {
      received.clear()
      const digests = await Promise.all(
        ids.map(async (id) => {
          await saveSample(url, requestOf(id), join(folder, `${id}.msgpack`))
          return digestOf(url, requestOf(id))
        }),
      )
      for (const id of ids) {
        t.true(received.get(id) === JSON.stringify(requestOf(id)), `request ${id}`)
        t.is(digests[id], createHash('sha256').update(expertsFor(id)).digest('hex'))
        const sample: unknown = unpack(readFileSync(join(folder, `${id}.msgpack`)))
        const { routed_experts: experts, token_ids: tokens } = Object(sample)
        t.deepEqual(tokens, requestOf(id).prompt)
        t.true(expertsFor(id).equals(experts.data))
        t.deepEqual(experts.shape, [ROWS, LAYERS, TOPK])
      }
    }
  })
})

test('fetch: a status other than 2xx rejects', async (t) => {
  await serving(
    (_, response) => response.writeHead(503).end('busy'),
    async (url) => {
      await t.throwsAsync(digestOf(url, requestOf(1)), { message: 'the server answers 503' })
    },
  )
})
