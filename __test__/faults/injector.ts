/** System calls of another process that fail, by strace: it is attached for one run, and counts from there. */

import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { programEnv, programPath } from './programs.ts'

export interface Injection {
  /** Names of a call, as they are on one processor and on another. */
  readonly call: string
  readonly code: string
  /** From 1 on. */
  readonly nth: number
  /** And all that come after it. */
  readonly forever?: boolean
  /** Calls on other paths are not counted. */
  readonly paths: readonly string[]
}

/** What a run said, and the call that failed in it, as strace has it; undefined where there was none. */
export interface Run {
  readonly said: string
  readonly injected: string | undefined
}

/** A program that does what it is told to, one line after the other. */
export class Subject {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #lines: AsyncIterator<string>
  pid = 0

  /** With one thread in the pool, as strace counts by thread. */
  constructor(program: string) {
    const env = { ...programEnv, UV_THREADPOOL_SIZE: '1' }
    this.#child = spawn(process.execPath, [programPath(program)], { env })
    this.#child.stderr.pipe(process.stderr)
    this.#lines = createInterface(this.#child.stdout)[Symbol.asyncIterator]()
  }

  async start(): Promise<void> {
    this.pid = Number(await this.#next())
  }

  async run(calls: object): Promise<string> {
    this.#child.stdin.write(`${JSON.stringify(calls)}\n`)
    return await this.#next()
  }

  async #next(): Promise<string> {
    const { value, done } = await this.#lines.next()
    if (done === true) throw new Error('the program has ended')
    return value
  }

  async runWith({ call, code, nth, forever = false, paths }: Injection, log: string, calls: object): Promise<Run> {
    const when = `${nth}${forever ? '+' : ''}`
    const filters = paths.flatMap((path) => ['-P', path])
    const set = `/^(${call})$`
    const injection = ['-e', `trace=${set}`, '-e', `inject=${set}:error=${code}:when=${when}`]
    const strace = spawn('strace', ['-f', '-y', '-o', log, ...filters, ...injection, '-p', String(this.pid)])
    await attached(strace)
    const said = await this.run(calls)
    strace.kill('SIGINT')
    await once(strace, 'close')
    const injected = readFileSync(log, 'utf8')
      .split('\n')
      .find((line) => line.includes('(INJECTED)'))
    rmSync(log)
    return { said, injected }
  }

  async end(): Promise<void> {
    this.#child.stdin.end()
    await once(this.#child, 'close')
  }
}

/** When it says so; it says other things before. */
async function attached(strace: ChildProcessWithoutNullStreams): Promise<void> {
  let said = ''
  for await (const chunk of strace.stderr.iterator({ destroyOnReturn: false })) {
    said += String(chunk)
    if (said.includes(' attached')) return
  }
  throw new Error(`strace cannot attach: ${said}`)
}

/** Why nothing can be injected; undefined where it can. */
export function noInjection(): string | undefined {
  if (process.platform !== 'linux') return 'strace is of Linux'
  if (spawnSync('strace', ['-V']).status !== 0) return 'no strace on this system'
  return undefined
}
