/** Appends rows until something ends it. Tells, at once, what it does and what was acknowledged: one line each. */

import { isMainThread, Worker } from 'node:worker_threads'
import { openJsonl, type Durability, type JsonlFile, type JsonlOptions } from '../../../src/index.ts'
import { rowOf } from './rows.ts'
import { tell } from './tell.ts'

export interface Writer {
  readonly path: string
  readonly run: number
  readonly durability: Durability
  readonly repair: 'quarantine' | 'truncate' | 'isolate'
  readonly maxBatchBytes: number
  readonly callers: number
  /** How rows are handed over. */
  readonly by: 'append' | 'appendMany' | 'stream'
}

export interface Round {
  /** On one thread. */
  readonly writers: readonly Writer[]
  readonly onWorker: boolean
  /** `outside`: somebody kills it. `itself`: it does. `exit`: by `process.exit`, `flushed`: with what is left written then. */
  readonly end: 'outside' | 'itself' | 'exit' | 'flushed'
  /** It ends when so many rows are appended, acknowledged or not, and so many microseconds later. */
  readonly rows: number
  readonly microseconds: number
}

const round: Round = JSON.parse(process.env.OFFLOOP_ROUND ?? '')
let left = round.rows

function end(): void {
  // Meanwhile the threads of the pool work.
  const until = performance.now() + round.microseconds / 1000
  while (performance.now() < until);
  if (round.end === 'itself') process.kill(process.pid, 'SIGKILL')
  process.exit(0)
}

function fail(error: unknown): void {
  throw error
}

class Appender {
  readonly #writer: Writer
  readonly #number: number
  #appended = 0

  constructor(writer: Writer, number: number) {
    this.#writer = writer
    this.#number = number
  }

  async play(): Promise<void> {
    const { path, durability, repair, maxBatchBytes, callers, by } = this.#writer
    const options: JsonlOptions = { durability, repair, maxBatchBytes }
    this.#tell('begun')
    const file = await openJsonl(path, options)
    this.#tell(`opened ${file.repaired.action} ${file.repaired.size}`)
    process.on('exit', () => {
      if (round.end === 'flushed') file.flushSync()
      this.#tell(`ended ${this.#appended}`)
    })
    const ways = { append: this.#appendOnes, appendMany: this.#appendTens, stream: this.#appendStream }
    await Promise.all(Array.from({ length: callers }, () => ways[by](file)))
  }

  #tell(line: string): void {
    tell(`${this.#number} ${line}`)
  }

  readonly #nextRow = (): readonly unknown[] => {
    const row = rowOf(this.#writer.run, this.#appended)
    this.#appended += 1
    left -= 1
    if (left === 0 && round.end !== 'outside') process.nextTick(end)
    return row
  }

  readonly #appendOnes = async (file: JsonlFile): Promise<never> => {
    for (;;) {
      const index = this.#appended
      const { offset, length } = await file.append(this.#nextRow())
      this.#tell(`row ${index} ${offset} ${length}`)
    }
  }

  readonly #appendTens = async (file: JsonlFile): Promise<never> => {
    for (;;) {
      const first = this.#appended
      const { written } = await file.appendMany(Array.from({ length: 10 }, this.#nextRow))
      this.#tell(`rows ${first} ${written}`)
    }
  }

  readonly #appendStream = async (file: JsonlFile): Promise<never> => {
    for (;;) {
      const first = this.#appended
      const { written } = await file.appendMany(this.#thirty())
      this.#tell(`rows ${first} ${written}`)
    }
  }

  async *#thirty(): AsyncGenerator {
    for (let count = 0; count < 30; count += 1) yield this.#nextRow()
  }
}

if (isMainThread && round.onWorker) new Worker(new URL(import.meta.url)).on('error', fail)
else await Promise.all(round.writers.map((writer, number) => new Appender(writer, number).play()))
