/**
 * Live objects beside what is measured: V8 marks them in every collection, so what garbage costs depends on them. They are
 * transcripts of other rollouts, as an orchestrator keeps them. Runs on the JS thread; the step, `gc` and `measure.ts` use it.
 */

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { many, prose, Random } from './documents.ts'

/** A turn of another rollout: one message, its token ids and their logprobs. */
interface LiveTurn {
  readonly id: number
  readonly role: 'user' | 'assistant'
  readonly content: string
  readonly token_ids: readonly number[]
  readonly logprobs: readonly number[]
}

/** Megabytes that the columns and tables "with a live heap" have. */
export const LIVE_MB = 256

/** Tokens of a turn: from the least to less than twice the mean of 128. */
const LEAST_TOKENS = 16
const TOKEN_RANGE = 224
const CHARACTERS_A_TOKEN = 4
const TURNS_OF_ROLLOUT = 64
const VOCABULARY = 151_936
/** Parts of these are copied into turns, so that no two turns are equal and a gigabyte takes seconds. */
const POOL_TOKENS = 65_536
/** Largest error of the size: a share, or a few bytes, since the code of a small process comes and goes. */
const TOLERANCE = 0.05
const LEAST_TOLERANCE_BYTES = 2e6

let live: LiveTurn[][] = []

/** Makes `megabytes` (10⁶ bytes) of live objects, beside those that were made before. Returns by how much the used heap grew, in MB. */
export function fillHeap(megabytes: number): number {
  const before = usedBytes()
  const size = megabytes * 1e6
  makeLive(size)
  return checkSize(usedBytes() - before, size)
}

/** Forgets all live objects, and collects them. */
export function emptyHeap(): void {
  live = []
  usedBytes()
}

/** Bytes of the JS heap that are used after a collection. */
export function usedBytes(): number {
  collect()
  return process.memoryUsage().heapUsed
}

/** A function of its own: what it copies from is garbage when it has returned. */
function makeLive(size: number): void {
  const random = new Random(1)
  const pool = poolOf(random)
  for (let bytes = 0; bytes < size;) {
    const turns = many(TURNS_OF_ROLLOUT, random, (_, id) => turnOf(pool, random, id))
    const wanted = size - bytes
    const kept = turns.slice(0, countWithin(turns, wanted))
    live.push(kept)
    bytes += kept.reduce((sum, turn) => sum + bytesOf(turn), 0)
  }
}

interface Pool {
  readonly text: Buffer
  readonly tokens: readonly number[]
  readonly logprobs: readonly number[]
}

function poolOf(random: Random): Pool {
  return {
    text: Buffer.from(prose(random, POOL_TOKENS * CHARACTERS_A_TOKEN), 'latin1'),
    tokens: many(POOL_TOKENS, random, () => random.below(VOCABULARY)),
    logprobs: many(POOL_TOKENS, random, () => -random.unit() * 5 - Number.EPSILON),
  }
}

/** A turn whose string and arrays are its own: V8 writes every byte of them. */
function turnOf({ text, tokens, logprobs }: Pool, random: Random, id: number): LiveTurn {
  const count = LEAST_TOKENS + random.below(TOKEN_RANGE)
  const from = random.below(POOL_TOKENS - count)
  const to = from + count
  return {
    id,
    role: id % 2 === 0 ? 'user' : 'assistant',
    content: text.toString('latin1', from * CHARACTERS_A_TOKEN, to * CHARACTERS_A_TOKEN),
    token_ids: tokens.slice(from, to),
    logprobs: logprobs.slice(from, to),
  }
}

/** Bytes of a turn in V8: its object, its string, and two arrays with their elements of 8 bytes; and a place in a rollout. */
function bytesOf({ content, token_ids: tokens }: LiveTurn): number {
  const string = 16 + Math.ceil(content.length / 8) * 8
  return 64 + string + 2 * (32 + 16 + 8 * tokens.length) + 8
}

function countWithin(turns: readonly LiveTurn[], size: number): number {
  let bytes = 0
  const last = turns.findIndex((turn) => {
    bytes += bytesOf(turn)
    return size <= bytes
  })
  return last === -1 ? turns.length : last + 1
}

/** Throws if the heap did not grow as was asked: then V8 lays objects out in another way than `bytesOf` says. */
function checkSize(grown: number, size: number): number {
  if (Math.abs(grown - size) <= Math.max(size * TOLERANCE, LEAST_TOLERANCE_BYTES)) return grown / 1e6
  throw new Error(`the live heap is ${(grown / 1e6).toFixed(1)} MB, ${(size / 1e6).toFixed(1)} MB were asked for`)
}

function collect(): void {
  if (globalThis.gc === undefined) {
    // Benchmarks that are run without --expose-gc.
    setFlagsFromString('--expose-gc')
    globalThis.gc = runInNewContext('gc')
  }
  globalThis.gc?.()
}
