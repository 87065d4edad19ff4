/** Streams that come fast leave the loop a turn every few milliseconds, however many there are at once: what is there already comes without one. */

import { setImmediate } from 'node:timers'
import { now } from './intrinsics.ts'

const TURN_MS = 2

/** Since when streams are read in this turn of the loop; undefined where none was yet. */
let since: number | undefined
const waiting: (() => void)[] = []

/** What to wait for, where they have held the loop for long enough. Called for each chunk, or row. */
export function pace(): Promise<void> | undefined {
  if (since === undefined) {
    since = now()
    setImmediate(nextTurn)
    return undefined
  }
  return now() - since < TURN_MS ? undefined : new Promise((resolve) => waiting.push(resolve))
}

function nextTurn(): void {
  since = undefined
  for (const resolve of waiting.splice(0)) resolve()
}
