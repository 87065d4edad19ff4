/**
 * A rollout of several turns against an inference server that returns routed experts, as vLLM does (a base64 string for
 * each choice) or prime-rl (objects that tell their `start`). Each turn is kept as it came: its experts are decoded off the
 * event loop as the body arrives, and concatenated once, when the rollout is over.
 */

import { concatExperts, parse, type ExpertsTurn, type RoutedExperts } from 'offloop'

interface Completion {
  readonly choices: readonly [{ readonly token_ids: readonly number[]; readonly routed_experts: RoutedExperts | null }]
}

export interface Rollout {
  readonly tokens: readonly number[]
  readonly experts: RoutedExperts
}

/** `ask` says what the next prompt adds to the tokens so far; undefined ends the rollout. */
export async function rollOut(url: string, ask: (turn: number) => readonly number[] | undefined): Promise<Rollout> {
  const turns: (ExpertsTurn | null)[] = []
  let tokens: number[] = []
  for (let prompt = ask(0); prompt !== undefined; prompt = ask(turns.length)) {
    const sent = [...tokens, ...prompt]
    // The row of the last token sampled before is this turn's first: it was not forwarded then.
    const start = Math.max(0, tokens.length - 1)
    const { token_ids: sampled, routed_experts: experts } = await complete(url, sent, start)
    tokens = [...sent, ...sampled]
    // What a payload tells of its start, prime-rl's do, is the position as well.
    turns.push(experts && { experts, start, tokens: tokens.length })
  }
  // The memory of each turn is handed over: this holds the loop for some 0.2 ms whatever their size.
  return { tokens, experts: await concatExperts(turns, { tokens: tokens.length, transfer: true }) }
}

async function complete(url: string, prompt: readonly number[], start: number): Promise<Completion['choices'][0]> {
  const body = JSON.stringify({ prompt, routed_experts_prompt_start: start })
  const response = await fetch(url, { method: 'POST', body })
  if (!response.ok || response.body === null) throw new Error(`the server answers ${response.status}`)
  const { choices } = await parse<Completion>(response.body, {
    lift: { '/choices/*/routed_experts': { experts: { start } } },
  })
  return choices[0]
}
