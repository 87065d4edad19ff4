/** A Python process that answers each line with one. */

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { python } from '../scripts/python.mjs'

export interface Snake {
  /** What it says first. */
  readonly versions: string
  /** For what both read and write; gone when this process ends. */
  readonly folder: string
  readonly ask: (line: string) => Promise<string>
  readonly stop: () => void
}

/** Undefined where there is no Python. `script` stands beside this file. */
export async function startSnake(script: string): Promise<Snake | undefined> {
  const interpreter = python()
  if (interpreter === undefined) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
  process.once('exit', () => rmSync(folder, { recursive: true }))
  // Isolated: a script may have the name of a module that libraries import.
  const path = fileURLToPath(new URL(script, import.meta.url))
  const { stdin, stdout } = spawn(interpreter, ['-I', path], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]()
  const answer = async (): Promise<string> => {
    const { done, value } = await lines.next()
    if (done === true) throw new Error('Python has stopped')
    return value
  }
  const ask = (line: string): Promise<string> => {
    stdin.write(`${line}\n`)
    return answer()
  }
  return { versions: await answer(), folder, ask, stop: () => stdin.end() }
}
