/**
 * An inference server, as far as a client sees: `/v1/completions` of vLLM with routed experts. What it will answer is made
 * before the clock starts, so that it costs the machine no more than what the kernel does for a remote one.
 */

import { createHash } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../documents.ts'
import { answerTo, listen, tell } from '../channel.ts'
import { LAYERS, plan, Routes, tokensOf, TOPK, type Rollout, type Sizes, type Turn, type WireForm } from './plan.ts'

/** What sampling takes: 20,000 tokens a second, for each request. */
const TOKEN_MS = 0.05

interface Answer {
  readonly body: Buffer
  readonly delayMs: number
}

answerTo('start', serve)

async function serve(sizes: Sizes): Promise<{ readonly port: number; readonly bytes: number }> {
  const answers = new Map<string, Answer>()
  let bytes = 0
  const routes = new Routes(sizes)
  for (const rollout of plan(sizes)) {
    // What was told is sent.
    await nextTurn()
    for (const [index, turn] of rollout.turns.entries()) {
      const body = bodyOf(rollout, index, turn, routes)
      bytes += body.length
      tell('made', body.length)
      answers.set(`${rollout.id}-${index}`, { body, delayMs: turn.sampled * TOKEN_MS })
    }
  }
  const asked = new Map<string, string>()
  answerTo('asked', () => {
    const all = [...asked].toSorted(([a], [b]) => (a < b ? -1 : 1))
    asked.clear()
    return createHash('sha256').update(JSON.stringify(all)).digest('hex')
  })
  // A client that is blocked for long would find its connections closed.
  const server = createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, (request, response) => {
    void buffer(request).then((body) => {
      const name = /"request_id":"([^"]+)"/.exec(body.toString('latin1', body.length - 64))?.[1] ?? ''
      asked.set(name, createHash('sha256').update(body).digest('hex'))
      return answer(response, answers.get(name))
    })
  })
  const port = await listen(server)
  return { port, bytes }
}

async function answer(response: ServerResponse, found: Answer | undefined): Promise<void> {
  if (found === undefined) {
    response.writeHead(404).end()
    return
  }
  const { body, delayMs } = found
  await sleep(delayMs)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
  response.end(body, () => tell('answered', body.length))
}

function bodyOf({ id, form }: Rollout, index: number, { from, prompt, sampled }: Turn, routes: Routes): Buffer {
  const start = Math.max(0, from - 1)
  // The last token sampled is not forwarded.
  const rows = from + prompt + sampled - 1 - start
  const experts = WIRES[form](routes.of(id, start, rows), rows, start)
  const random = new Random(id * 1000 + index)
  const tokens = tokensOf(id, from + prompt, sampled)
  const choice = {
    index: 0,
    text: textOf(sampled, random),
    logprobs: logprobsOf(tokens, random),
    finish_reason: 'stop',
  }
  const usage = { prompt_tokens: from + prompt, completion_tokens: sampled, total_tokens: from + prompt + sampled }
  const head = { id: `cmpl-${id}-${index}`, object: 'text_completion', created: 0, model: 'model' }
  const whole = JSON.stringify({ ...head, choices: [{ ...choice, token_ids: tokens, routed_experts: 0 }], usage })
  const at = whole.lastIndexOf('0}],"usage"')
  return Buffer.from(`${whole.slice(0, at)}${experts}${whole.slice(at + 1)}`)
}

/** JSON text. */
const WIRES: Readonly<Record<WireForm, (data: Buffer, rows: number, start: number) => string>> = {
  vLLM: (data, rows) => `"${Buffer.concat([npyHeader(rows), data]).toString('base64')}"`,
  'prime-rl': (data, rows, start) =>
    `{"data":"${data.toString('base64')}","shape":[${rows},${LAYERS},${TOPK}],"start":${start},"dtype":"uint8"}`,
  'NeMo-RL': (data, rows) => `"nrlre1:uint8:${rows}x${LAYERS}x${TOPK}:${data.toString('base64')}"`,
}

/** As numpy.save writes it. */
function npyHeader(rows: number): Buffer {
  const text = `{'descr': '|u1', 'fortran_order': False, 'shape': (${rows}, ${LAYERS}, ${TOPK}), }`
  return Buffer.from(`\u0093NUMPY\u0001\0v\0${text.padEnd(117)}\n`, 'latin1')
}

const WORDS = ['the', 'model', 'calls', 'a', 'tool', '—', 'reads', 'what', 'it', 'says', 'and', '“answers”'] as const

function textOf(count: number, random: Random): string {
  return Array.from({ length: count }, () => WORDS[random.below(WORDS.length)]).join(' ')
}

function logprobsOf(tokens: readonly number[], random: Random): object {
  return {
    tokens: tokens.map((token) => `token_id:${token}`),
    token_logprobs: tokens.map(() => -0.01 - random.unit()),
    text_offset: tokens.map((_, index) => index * 5),
    top_logprobs: null,
  }
}
