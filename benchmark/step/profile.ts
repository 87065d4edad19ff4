/** What held the loop: the stacks that a sampling profiler saw meanwhile. */

import { Session, type Profiler } from 'node:inspector/promises'
import type { Sample } from './lag.ts'

/** Shorter ones are not told. */
const HOLD_MS = 10
const PERIOD_US = 500
const FRAMES = 6

export async function profile(): Promise<{ holds(samples: readonly Sample[], start: number): Promise<string[]> }> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: PERIOD_US })
  await session.post('Profiler.start')
  const began = performance.now()
  return {
    holds: async (samples, start) => {
      const { profile: taken } = await session.post('Profiler.stop')
      session.disconnect()
      const shift = start - began
      return samples
        .filter(({ lag }) => HOLD_MS < lag)
        .map(
          ({ at, lag, ran }) =>
            `${lag.toFixed(0)} ms${ran === null ? '' : `, ${ran.toFixed(0)} of them run,`} at ${at.toFixed(0)}: ${seen(taken, at - lag + shift, at + shift)}`,
        )
    },
  }
}

/** The functions that ran between two times, with their callers, and how long. */
function seen({ nodes, samples = [], timeDeltas = [], startTime }: Profiler.Profile, from: number, to: number): string {
  const stacks = stacksOf(nodes)
  const spent = new Map<string, number>()
  let time = startTime
  for (const [index, id] of samples.entries()) {
    const delta = timeDeltas[index] ?? 0
    time += delta
    const at = (time - startTime) / 1000
    if (at < from || to < at) continue
    const stack = stacks.get(id) ?? ''
    spent.set(stack, (spent.get(stack) ?? 0) + delta / 1000)
  }
  return [...spent]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, FRAMES)
    .map(([stack, ms]) => `\n    ${ms.toFixed(1)} ms ${stack}`)
    .join('')
}

function stacksOf(nodes: readonly Profiler.ProfileNode[]): Map<number, string> {
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)))
  const names = new Map(
    nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => {
      const file = url.split('/').at(-1) ?? ''
      return [id, `${functionName || '(anonymous)'}${file === '' ? '' : ` ${file}:${lineNumber + 1}`}`] as const
    }),
  )
  return new Map(
    nodes.map(({ id }) => {
      const frames: string[] = []
      for (let at: number | undefined = id; at !== undefined && frames.length < FRAMES; at = parents.get(at)) {
        frames.push(names.get(at) ?? '')
      }
      return [id, frames.join(' < ')]
    }),
  )
}
