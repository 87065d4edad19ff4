/** Appends to a log until its file may not grow any more, and on. */

import { execFileSync } from 'node:child_process'
import { openJsonl } from '../../../src/index.ts'
import { tell } from './tell.ts'

export interface Fill {
  readonly path: string
  /** Bytes that a file may have. */
  readonly limit: number
  readonly rows: number
  /** So many rows are appended at once. */
  readonly size: number
}

export interface Filled {
  readonly written: number
  /** Bytes of the first row that was not. */
  readonly next: number
  /** Of the others. */
  readonly errors: readonly string[]
}

const { path, limit, rows, size }: Fill = JSON.parse(process.env.OFFLOOP_ROUND ?? '')

// The signal would end the process.
process.on('SIGXFSZ', () => undefined)
execFileSync('prlimit', [`--pid=${process.pid}`, `--fsize=${limit}`])

const file = await openJsonl(path)
const errors: string[] = []
let [written, next] = [0, 0]

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = String(Reflect.get(error, 'code'))
  return error.cause === undefined ? code : `${code} because of ${codeOf(error.cause)}`
}

async function append(index: number): Promise<void> {
  const row = [index, 'x'.repeat((index * 37) % 400)]
  try {
    await file.append(row)
    written += 1
  } catch (error) {
    if (next === 0) next = JSON.stringify(row).length + 1
    errors.push(codeOf(error))
  }
}

for (let from = 0; from < rows; from += size) {
  await Promise.all(Array.from({ length: size }, (_, index) => append(from + index)))
}
await file.close()
const filled: Filled = { written, next, errors }
tell(JSON.stringify(filled))
