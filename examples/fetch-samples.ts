/**
 * What a program that stays with `fetch` can do: encode requests and parse answers off the event loop, hand results on with
 * `transfer`, and release the others. fetch itself still leaves garbage: a copy of each request, and the chunks of each answer.
 * `offloop/http` leaves none; `orchestrator.ts` uses it.
 */

import { createHash } from 'node:crypto'
import { encode, parse, release, saveFile, type ParseOptions, type RoutedExperts } from 'offloop'

interface Completion {
  readonly choices: readonly [{ readonly token_ids: Int32Array; readonly routed_experts: RoutedExperts }]
}

const LIFT = { '/choices/*/routed_experts': 'experts', '/choices/*/token_ids': 'int32' } as const

/** Saves what the server answers. The file takes the memory of tokens and experts, which serves later results. */
export async function saveSample(url: string, request: object, path: string): Promise<void> {
  const { choices } = await post<Completion>(url, request, { lift: LIFT })
  await saveFile(path, choices[0], { format: 'msgpack', transfer: true })
}

/** The SHA-256 of the experts that the server answers with. They are released: nobody else takes them. */
export async function digestOf(url: string, request: object): Promise<string> {
  const { choices } = await post<Completion>(url, request, { lift: LIFT })
  const { token_ids: tokens, routed_experts: experts } = choices[0]
  const digest = createHash('sha256').update(experts.data).digest('hex')
  release(tokens, experts)
  return digest
}

async function post<T>(url: string, value: unknown, options: ParseOptions): Promise<T> {
  const body = await encode(value)
  const answer = fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  // fetch has copied the body, as its standard says. With clients that write the body itself, wait until it has left.
  release(body)
  const response = await answer
  if (response.ok && response.body !== null) return parse<T>(response.body, options)
  await response.body?.cancel()
  throw new Error(`the server answers ${response.status}`)
}
