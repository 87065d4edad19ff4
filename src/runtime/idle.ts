/** Lets go of memory that was idle for a while. Runs on the JS thread; whoever keeps idle memory registers here. */

import { setTimeout } from 'node:timers'
import { idleBytes } from './native.ts'

/** Milliseconds after which idle memory is let go. */
const IDLE_MS = 10_000

/** Functions that let go of memory that has been idle for some milliseconds. */
const releases: ((idleMs: number) => void)[] = []

export function onIdle(release: (idleMs: number) => void): void {
  releases.push(release)
}

/** Lets go of memory that has been idle for `idleMs`. V8 frees its own at its next collection. */
export function releaseIdleFor(idleMs: number): void {
  for (let index = 0; index < releases.length; index += 1) releases[index]?.(idleMs)
}

let idleTimer: NodeJS.Timeout | undefined

/** Lets go of memory that is idle by then, after a while. The timer keeps nothing alive. */
export function releaseWhenIdle(): void {
  if (idleTimer !== undefined) return
  idleTimer = setTimeout(() => {
    idleTimer = undefined
    releaseIdleFor(IDLE_MS)
    // Memory used meanwhile is younger and stays.
    if (idleBytes() !== 0) releaseWhenIdle()
  }, IDLE_MS)
  idleTimer.unref()
}
