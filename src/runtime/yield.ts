/**
 * Yields to the event loop, on the JS thread: all streams together read for 2 ms of each turn, bodies get a turn each,
 * and long work goes on in the next turn.
 */

import { setImmediate } from 'node:timers'
import { now } from './intrinsics.ts'

const TURN_MS = 2

/** When streams began to be read in this turn of the loop; undefined if they were not. */
let since: number | undefined
const streams: (() => void)[] = []

/**
 * Returns a promise of the next turn, if streams have used up their time in this one. Called for each chunk or row: chunks
 * that have arrived come as microtasks, without a turn in between.
 */
export function yieldToLoop(): Promise<void> | undefined {
  if (since === undefined) {
    since = now()
    setImmediate(resumeStreams)
    return undefined
  }
  return now() - since < TURN_MS ? undefined : new Promise((resolve) => streams.push(resolve))
}

function resumeStreams(): void {
  since = undefined
  for (const resolve of streams.splice(0)) resolve()
}

/** Resolvers of the bodies that wait for a turn of the event loop, in order. */
const bodies: (() => void)[] = []
let isTurnTaken = false

/** Waits for a turn of the event loop that no other body has. Several bodies together then never block it at a stretch. */
export async function ownTurn(): Promise<void> {
  if (isTurnTaken) {
    await new Promise<void>((resolve) => bodies.push(resolve))
    return
  }
  isTurnTaken = true
  setImmediate(resumeBody)
}

function resumeBody(): void {
  const resolve = bodies.shift()
  isTurnTaken = resolve !== undefined
  if (resolve === undefined) return
  setImmediate(resumeBody)
  resolve()
}

/** Waits for the next turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
