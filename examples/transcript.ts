/** What the two orchestrators have in common: what is asked, what is answered, and what is kept of it. */

export interface Step {
  /** Of the inference server. */
  readonly url: string
  /** For `rollouts.jsonl` and `batch.msgpack`. */
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
  readonly #texts: string[] = []
  readonly #tokens: number[] = []
  readonly #mask: number[] = []
  readonly #logprobs: number[] = []

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
    for (const token of prompt) this.#add(token, 0, 0)
    const request = { model: 'model', prompt: this.#tokens, logprobs: 1, routed_experts_prompt_start: start }
    return { start, request: { ...request, request_id: `${this.#id}-${this.#texts.length}` } }
  }

  answer({ text, token_ids: tokens, logprobs: { token_logprobs: logprobs } }: Choice): void {
    this.#texts.push(text)
    const values = logprobs[Symbol.iterator]()
    for (const token of tokens) this.#add(token, 1, values.next().value ?? 0)
  }

  /** A line of the log. */
  get row(): object {
    return { id: this.#id, texts: this.#texts, token_ids: this.#tokens, logprobs: this.#logprobs, reward: this.#reward }
  }

  /** A member of the batch. */
  sample(experts: Experts): object {
    const { data, shape, dtype } = experts
    return {
      id: this.#id,
      token_ids: this.#tokens,
      mask: this.#mask,
      logprobs: this.#logprobs,
      reward: this.#reward,
      routed_experts: { data, shape, dtype },
    }
  }

  get #reward(): number {
    return this.#logprobs.length === 0 ? 0 : Math.exp(this.#logprobs.at(-1) ?? 0)
  }

  #add(token: number, mask: 0 | 1, logprob: number): void {
    this.#tokens.push(token)
    this.#mask.push(mask)
    this.#logprobs.push(logprob)
  }
}
