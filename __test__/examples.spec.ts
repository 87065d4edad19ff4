/** The examples, as their readers would run them. */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import test from 'ava'
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

for (const [name, expertsOf] of Object.entries(SERVERS)) {
  test(`a rollout against a server that answers as ${name}`, async (t) => {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const asked: Request = JSON.parse(Buffer.concat(chunks).toString())
        const tokens = Array.from({ length: SAMPLED }, (_, index) => asked.prompt.length + index)
        response.end(JSON.stringify({ choices: [{ token_ids: tokens, routed_experts: expertsOf(asked) }] }))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address
    const { port } = server.address() as AddressInfo
    try {
      const { tokens, experts } = await rollOut(`http://127.0.0.1:${port}/`, (turn) =>
        turn < 6 ? [9, 9, 9] : undefined,
      )
      t.is(tokens.length, 6 * (3 + SAMPLED))
      t.deepEqual(experts.shape, [tokens.length, LAYERS, TOPK])
      // The last row is of the token that nobody forwarded.
      const expected = tokens.slice(1).flatMap((_, position) => routes(position))
      t.deepEqual([...experts.data.subarray(0, -LAYERS * TOPK)], expected)
      t.true(experts.data.subarray(-LAYERS * TOPK).every((value) => value === 0))
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
}
