/** What a step asks and is answered: the same in every process that is told the same sizes. */

import type { Task } from '../../examples/transcript.ts'
import { Random } from '../documents.ts'

export interface Sizes {
  readonly rollouts: number
  readonly turns: number
  /** Of the longest rollout. */
  readonly tokens: number
}

/** As many layers, and experts a layer, as Qwen3-30B-A3B has. */
export const LAYERS = 48
export const TOPK = 8
/** Bytes of a token. */
export const ROW: number = LAYERS * TOPK
const EXPERTS = 128
const VOCABULARY = 150_000

export type WireForm = 'vLLM' | 'prime-rl' | 'NeMo-RL'
const FORMS: readonly WireForm[] = ['vLLM', 'prime-rl', 'NeMo-RL']

export interface Rollout {
  readonly id: number
  readonly form: WireForm
  readonly turns: readonly Turn[]
  /** Tokens of all turns. */
  readonly length: number
}

export interface Turn {
  /** Tokens before it. */
  readonly from: number
  readonly prompt: number
  readonly sampled: number
}

/** The first is as long as may be, the shortest about half of it; the first turn takes a third, and a quarter of each is sampled. */
export function plan({ rollouts, turns, tokens }: Sizes): Rollout[] {
  const random = new Random(1)
  return Array.from({ length: rollouts }, (_, id) => {
    const total = id === 0 ? tokens : Math.ceil(tokens * (0.5 + random.unit() / 2))
    const weights = Array.from({ length: turns }, (__, turn) => (turn === 0 ? turns / 2 : 0.5 + random.unit()))
    const whole = weights.reduce((sum, weight) => sum + weight)
    const planned: Turn[] = []
    let from = 0
    for (const weight of weights) {
      const size = Math.max(2, Math.floor((total * weight) / whole))
      const sampled = Math.ceil(size / 4)
      planned.push({ from, prompt: size - sampled, sampled })
      from += size
    }
    return { id, form: FORMS[id % FORMS.length] ?? 'vLLM', turns: planned, length: from }
  })
}

export function taskOf({ id, turns }: Rollout): Task {
  return { id, prompts: turns.map(({ from, prompt }) => tokensOf(id, from, prompt)) }
}

export function tokensOf(id: number, from: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => (Math.imul(from + index + id, 0x9e37_79b1) >>> 0) % VOCABULARY)
}

/** Rows of experts: what those of a rollout begin somewhere in. */
export class Routes {
  readonly #rows: Buffer

  constructor({ rollouts, tokens }: Sizes) {
    this.#rows = Buffer.allocUnsafe((tokens + rollouts) * ROW)
    const words = new Uint32Array(this.#rows.buffer, this.#rows.byteOffset, this.#rows.length / 4)
    for (let index = 0; index < words.length; index += 1)
      words[index] = Math.imul(index + 1, 0x9e37_79b1) ^ (index << 7)
    for (let index = 0; index < words.length; index += 1) words[index] = (words[index] ?? 0) & MASK
  }

  of(id: number, from: number, count: number): Buffer {
    return this.#rows.subarray((id + from) * ROW, (id + from + count) * ROW)
  }
}

/** Four bytes, each the number of an expert. */
const MASK = (EXPERTS - 1) * 0x0101_0101
