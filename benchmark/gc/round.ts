/**
 * A round of an orchestrator's pipeline beside a live heap: parse four bodies, concatenate their experts, save the sample,
 * encode the next request, release it. A process for each heap; `gc.ts` starts it.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { unpack } from 'msgpackr'
import { concatExperts, encode, parse, release, saveFile, stats, type RoutedExperts } from '../../src/index.ts'
import { answerTo } from '../channel.ts'
import { many, Random } from '../documents.ts'
import { fillHeap } from '../heap.ts'

export interface RoundOrder {
  readonly heapMb: number
  /** Tokens of the sample, which four turns have in equal parts. */
  readonly tokens: number
  readonly warmRounds: number
  readonly rounds: number
  /** Folder for the sample. */
  readonly folder: string
}

export interface RoundCost {
  /** Milliseconds of loop time of one round, the mean. */
  readonly loopMs: number
  /** ArrayBuffers that were made for results after the rounds that warm up. */
  readonly made: number
}

interface Completion {
  readonly choices: readonly [
    { readonly token_ids: Int32Array; readonly logprobs: Float64Array; readonly routed_experts: RoutedExperts },
  ]
}

const TURNS = 4
const [LAYERS, TOPK] = [48, 8]
const ROW = LAYERS * TOPK
const VOCABULARY = 151_936

answerTo('measure', async (order: RoundOrder): Promise<RoundCost> => {
  const { heapMb, tokens, warmRounds, rounds, folder } = order
  const random = new Random(1)
  const experts = Buffer.from(Uint8Array.from({ length: tokens * ROW }, (_, index) => (index * 31) & 127))
  const length = tokens / TURNS
  const turns = Array.from({ length: TURNS }, (_, turn) => bodyOf(random, experts, turn * length, length))
  const path = join(folder, 'sample.msgpack')
  const request = { model: 'model', prompt: many(tokens, random, () => random.below(VOCABULARY)) }
  const round = (): Promise<void> => runRound(turns, tokens, request, path)
  fillHeap(heapMb)
  await round()
  const saved: unknown = Reflect.get(Object(unpack(readFileSync(path))), 'routed_experts')
  if (!isDeepStrictEqual(saved, { data: experts, shape: [tokens, LAYERS, TOPK] })) throw new Error('other experts')
  for (let index = 1; index < warmRounds; index += 1) await round()
  const { made } = stats().results
  const before = performance.eventLoopUtilization()
  for (let index = 0; index < rounds; index += 1) {
    await round()
    await nextTurn()
  }
  const { active } = performance.eventLoopUtilization(before)
  return { loopMs: active / rounds, made: stats().results.made - made }
})

async function runRound(bodies: readonly Buffer[], tokens: number, request: object, path: string): Promise<void> {
  const values = await Promise.all(
    bodies.map((body) =>
      parse<Completion>(body, {
        lift: {
          '/choices/*/routed_experts': 'experts',
          '/choices/*/token_ids': 'int32',
          '/choices/*/logprobs': 'float64',
        },
      }),
    ),
  )
  const turns = values.map(({ choices: [{ routed_experts: experts }] }) => ({ experts }))
  const { data, shape } = await concatExperts(turns, { tokens, transfer: true })
  const sample = {
    token_ids: values.map(({ choices: [{ token_ids: ids }] }) => ids),
    logprobs: values.map(({ choices: [{ logprobs }] }) => logprobs),
    routed_experts: { data, shape },
  }
  await saveFile(path, sample, { format: 'msgpack', durability: 'none', transfer: true })
  release(await encode(request))
}

/** A turn's answer, as prime-rl's server gives it. */
function bodyOf(random: Random, experts: Buffer, start: number, length: number): Buffer {
  const choice = {
    token_ids: many(length, random, () => random.below(VOCABULARY)),
    logprobs: many(length, random, () => -random.unit()),
    routed_experts: {
      data: experts.toString('base64', start * ROW, (start + length) * ROW),
      shape: [length, LAYERS, TOPK],
      start,
      dtype: 'uint8',
    },
  }
  return Buffer.from(JSON.stringify({ id: 'cmpl-1', object: 'text_completion', choices: [choice] }))
}
