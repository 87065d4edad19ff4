/**
 * The process of one orchestrator: its live heap, its health endpoint, and what a step costs its event loop. `step.ts` starts
 * one for each way, and asks it for two steps.
 */

import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Step } from '../../examples/transcript.ts'
import { answerTo, listen } from '../channel.ts'
import { fillHeap } from '../heap.ts'
import { INTERVAL_MS, watchLoop, type Sample } from './lag.ts'
import { plan, taskOf, type Sizes } from './plan.ts'
import { profile } from './profile.ts'

export type Way = 'plain' | 'offloop'

export interface Order {
  readonly way: Way
  readonly url: string
  readonly sizes: Sizes
  /** Live objects beside the step, in 10⁶ bytes. */
  readonly heapMb: number
  /** Whether to sample what blocks the loop. */
  readonly isProfiled: boolean
}

export interface Felt {
  readonly samples: readonly Sample[]
  readonly stepMs: number
  readonly busyMs: number
  readonly cpuMs: number
  /** Peak resident memory of the process so far. */
  readonly peakBytes: number
  readonly holds: readonly string[]
}

/** After the live heap was made and collected: V8's other threads go on sweeping it. */
const SETTLE_MS = 300

/** A process loads one of them: the other would add to its memory. */
const WAYS: Readonly<Record<Way, () => Promise<{ readonly runStep: (step: Step) => Promise<void> }>>> = {
  plain: () => import('../../examples/orchestrator-plain.ts'),
  offloop: () => import('../../examples/orchestrator.ts'),
}

let order: Order | undefined
let tasks: ReturnType<typeof taskOf>[] = []

answerTo('prepare', async (given: Order): Promise<number> => {
  order = given
  tasks = plan(given.sizes).map(taskOf)
  // What a program has loaded before its first step is no part of it.
  await WAYS[given.way]()
  fillHeap(given.heapMb)
  await sleep(SETTLE_MS)
  const server = createServer((_, response) => response.end('{"status":"ok"}'))
  return listen(server)
})

/** Runs a step, which writes to `folder`. */
answerTo('run', async (folder: string): Promise<Felt> => {
  if (order === undefined) throw new Error('nothing is prepared')
  const { way, url, isProfiled } = order
  const { runStep } = await WAYS[way]()
  const profiled = isProfiled ? await profile() : undefined
  const [start, cpu, loop] = [performance.now(), process.cpuUsage(), performance.eventLoopUtilization()]
  const watch = watchLoop(start)
  await runStep({ url, folder, tasks })
  const stepMs = performance.now() - start
  const busyMs = performance.eventLoopUtilization(loop).active
  const { user, system } = process.cpuUsage(cpu)
  // What held the loop last is noted when it has ended.
  await sleep(INTERVAL_MS * 2)
  const samples = watch.stop()
  const peakBytes = process.resourceUsage().maxRSS * 1024
  const holds = (await profiled?.holds(samples, start)) ?? []
  return { samples, stepMs, busyMs, cpuMs: (user + system) / 1000, peakBytes, holds }
})
