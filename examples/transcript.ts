/** What the two orchestrators have in common: what is asked, what is answered, and what is kept of it. */

export interface Step {
  /** Of the inference server. */
  readonly url: string
  /** For `rollouts.jsonl`, and the batch: `sample-0.msgpack` and so on. */
  readonly folder: string
  readonly tasks: readonly Task[]
}

export interface Task {
  readonly id: number
  /** The token ids that each turn adds before the model goes on: the prompt, then what tools have answered. */
  readonly prompts: readonly (readonly number[])[]
}

/** Of a choice, all but its routed experts. */
export interface Choice {
  readonly text: string
  readonly token_ids: Iterable<number>
  readonly logprobs: { readonly token_logprobs: Iterable<number> }
}

export interface Experts {
  readonly data: Buffer
  readonly shape: readonly number[]
  readonly dtype: string
}

/** The tokens of a rollout so far: which of them the model has sampled, and how likely they were. */
export class Transcript {
  readonly #id: number
  readonly #turns: Turn[] = []
  #tokens: number[] = []

  constructor({ id }: Task) {
    this.#id = id
  }

  get length(): number {
    return this.#tokens.length
  }

  /** The request for the next turn, and the position of the first row of experts that it will answer with. */
  ask(prompt: readonly number[]): { readonly start: number; readonly request: object } {
    // The last token sampled before was not forwarded then: its row is this turn's first.
    const start = Math.max(0, this.length - 1)
    this.#tokens = this.#tokens.concat(prompt)
    const request = { model: 'model', prompt: this.#tokens, logprobs: 1, routed_experts_prompt_start: start }
    return { start, request: { ...request, request_id: `${this.#id}-${this.#turns.length}` } }
  }

  answer({ text, token_ids: tokens, logprobs: { token_logprobs: logprobs } }: Choice): void {
    this.#turns.push({ text, from: this.length, logprobs: [...logprobs] })
    this.#tokens = this.#tokens.concat([...tokens])
  }

  /** A line of the log. */
  get row(): object {
    const texts = this.#turns.map(({ text }) => text)
    return { id: this.#id, texts, token_ids: this.#tokens, logprobs: this.#logprobs, reward: this.#reward }
  }

  /** Of the batch. */
  sample({ data, shape, dtype }: Experts): object {
    const logprobs = this.#logprobs
    return {
      id: this.#id,
      token_ids: this.#tokens,
      mask: logprobs.map((logprob) => (logprob === 0 ? 0 : 1)),
      logprobs,
      reward: this.#reward,
      routed_experts: { data, shape, dtype },
    }
  }

  /** Of every token; zero where it was not sampled. */
  get #logprobs(): number[] {
    const all: number[] = []
    for (const { from, logprobs } of this.#turns) {
      while (all.length < from) all.push(0)
      for (const logprob of logprobs) all.push(logprob)
    }
    return all
  }

  get #reward(): number {
    return Math.exp(this.#turns.at(-1)?.logprobs.at(-1) ?? 0)
  }
}

interface Turn {
  readonly text: string
  /** The position of the first token sampled. */
  readonly from: number
  readonly logprobs: readonly number[]
}
