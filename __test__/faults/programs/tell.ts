import { writeSync } from 'node:fs'

/** One line, at once: what is said is with the system before anything else happens. */
export function tell(line: string): void {
  let rest = Buffer.from(`${line}\n`)
  while (rest.length !== 0) rest = rest.subarray(write(rest))
}

function write(bytes: Uint8Array): number {
  try {
    return writeSync(1, bytes)
  } catch (error) {
    // The pipe is full, and Node may have it that nobody waits for it.
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return 0
    throw error
  }
}
