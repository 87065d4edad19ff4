/** Options of `npm start`: read and checked before any process is started. Runs on the JS thread; `step.ts` calls it. */

import { totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { getHeapStatistics } from 'node:v8'
import { LIVE_MB } from '../heap.ts'
import { ROW, type Sizes } from './plan.ts'

export interface StepOptions {
  readonly sizes: Sizes
  /** Live objects of the orchestrator, in 10⁶ bytes. */
  readonly heapMb: number
  /** Folder of the page. */
  readonly out: string
  readonly isJson: boolean
  readonly isProfiled: boolean
}

const MOST_TOKENS = 60_000
/** Bytes that all processes together hold for each byte of experts, at most, and the share of the machine's memory they may have. */
const HELD = 9
const SHARE = 0.7

/** Throws an Error whose message is a sentence for the user. */
export function readOptions(args: readonly string[]): StepOptions {
  const flags = readFlags(args)
  const rollouts = readCount('rollouts', flags.rollouts, 1)
  const turns = readCount('turns', flags.turns, 1)
  const heapMb = readCount('heap', flags.heap, 0)
  const room = roomBytes() - heapMb * 1e6
  if (room <= 0) throw new RangeError(`--heap ${heapMb} (MB) does not fit in the memory of this machine`)
  const tokens = flags.tokens === undefined ? tokensWithin(room, rollouts) : readCount('tokens', flags.tokens, 1)
  return { sizes: { rollouts, turns, tokens }, heapMb, out: flags.out, isJson: flags.json, isProfiled: flags.profile }
}

/** Node's flags for a process with so many live objects: V8 gets as much beside them as it has without them. */
export function memoryFlags(heapMb: number): string[] {
  if (heapMb === 0) return []
  const limitMb = Math.ceil(getHeapStatistics().heap_size_limit / 2 ** 20)
  return [`--max-old-space-size=${limitMb + heapMb}`]
}

function readFlags(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rollouts: { type: 'string', default: '32' },
      turns: { type: 'string', default: '8' },
      tokens: { type: 'string' },
      heap: { type: 'string', default: String(LIVE_MB) },
      out: { type: 'string', default: fileURLToPath(new URL('../results/', import.meta.url)) },
      json: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
    },
  })
  return values
}

function readCount(name: string, text: string, least: number): number {
  const count = Number(text)
  if (/^\d+$/.test(text) && Number.isSafeInteger(count) && least <= count) return count
  throw new RangeError(`--${name} is an integer of at least ${least}`)
}

/** Bytes of this machine, or of this container, that the processes may use. */
function roomBytes(): number {
  const bound = process.constrainedMemory?.() ?? 0
  return (0 < bound ? Math.min(bound, totalmem()) : totalmem()) * SHARE
}

/** As many tokens as memory allows. The longest rollout has them; the mean is three quarters of it. */
function tokensWithin(room: number, rollouts: number): number {
  const tokens = room / HELD / (rollouts * 0.75 * ROW)
  return Math.max(100, Math.min(MOST_TOKENS, Math.floor(tokens / 1000) * 1000))
}
