/** How late the loop comes to what is due: a timer every 10 ms, and by how much it was late. */

import { readFileSync } from 'node:fs'

export interface Sample {
  /** Milliseconds since the start. */
  readonly at: number
  readonly lag: number
  /** Milliseconds since the sample before that the thread had a processor for, where that is known. */
  readonly ran: number | null
}

export const INTERVAL_MS = 10

/** Every sample with its time, for a timeline; `start` as performance.now() tells it. */
export function watchLoop(start: number): { stop(): Sample[] } {
  const samples: Sample[] = []
  let due = performance.now() + INTERVAL_MS
  let ran = ranMs()
  let timer = setTimeout(note, INTERVAL_MS)
  function note(): void {
    const now = performance.now()
    const before = ran
    ran = ranMs()
    samples.push({ at: now - start, lag: Math.max(0, now - due), ran: ran === null ? null : ran - (before ?? 0) })
    due = now + INTERVAL_MS
    timer = setTimeout(note, INTERVAL_MS)
  }
  return {
    stop: () => {
      clearTimeout(timer)
      return samples
    },
  }
}

/** Milliseconds that this thread has run: what others of the machine take from it is no hold of ours. Known on Linux. */
function ranMs(): number | null {
  try {
    const [nanoseconds] = readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')
    return Number(nanoseconds) / 1e6
  } catch {
    return null
  }
}
