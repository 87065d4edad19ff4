/** Log of rows: captured on the JS thread when they come, printed and written by tasks, one group at a time. `openJsonl` makes it. */

import { Writable } from 'node:stream'
import { clearTimeout, setTimeout } from 'node:timers'
import { callbackify } from 'node:util'
import { OffloopError } from '../runtime/errors.ts'
import { readRowConfig, readTransfer, type EncodeConfig } from '../encode/config.ts'
import { BYTES_KEYS, ROW_KEYS } from '../encode/option-keys.ts'
import type { EncodeOptions } from '../encode/options.ts'
import { closeLogFile, errorOf, LogFile, openLogFile, unwrap, type OpenLogInput } from '../runtime/native.ts'
import {
  choose,
  copyOptions,
  MAX_DELAY_MS,
  readBoolean,
  readInteger,
  tableOf,
  withoutPrototype,
  type BytesInput,
} from '../runtime/options.ts'
import { run } from '../runtime/pool.ts'
import { EncoderCore } from '../encode/encoder.ts'
import { Queue } from '../runtime/queue.ts'
import { forEachRow, RowTransfer } from '../encode/row-buffer.ts'
import { MOST_MODE, readDurability, type Durability } from './durability.ts'
import { Gate } from './gate.ts'
import { NOTHING_WRITTEN, RowGroup, type GroupOutcome, type RowWaiter } from './group.ts'
import { readPath } from './path.ts'
import { reportOf, type RepairReport, type TailPolicy } from './repair.ts'
import { Tally, type TallyResult } from './tally.ts'

export interface JsonlOptions {
  /** @default 'data' */
  readonly durability?: Durability | undefined
  /** Applied once, on open, whatever else exists beside the file. @default 'quarantine' */
  readonly repair?: Exclude<TailPolicy, 'report'> | false | undefined
  /** Refuse a second writer, in this process or another. Where the file system has no locks, opening rejects with Node's error, which names this option. @default true */
  readonly lock?: boolean | undefined
  /** How long a row may wait for others before it is written. Rows that arrive during a write leave together in the next. @default 0 */
  readonly maxDelayMs?: number | undefined
  /** @default 1 MiB */
  readonly maxBatchBytes?: number | undefined
  /** Bytes captured and not yet written, above which `writable()` and an async iterable given to `appendMany` wait. (`append` has read its row by then: await it.) @default 64 MiB */
  readonly maxQueuedBytes?: number | undefined
  /** Mode of a new file. @default 0o666 less the umask */
  readonly mode?: number | undefined
  readonly encode?: Omit<EncodeOptions, 'signal' | 'space' | 'newline' | 'transfer' | 'maxBytes'> | undefined
}

export interface JsonlFile extends AsyncDisposable {
  readonly path: string
  /** Report of the repair on opening. */
  readonly repaired: RepairReport
  /** Resolves when the row has survived what `durability` says. A row that cannot be encoded rejects alone and writes nothing. Rows land whole and in call order. */
  append(row: unknown, options?: BytesInput): Promise<{ readonly offset: number; readonly length: number }>
  /** Appends many rows. Bad rows are reported, the others land. */
  appendMany(
    rows: Iterable<unknown> | AsyncIterable<unknown>,
    options?: BytesInput,
  ): Promise<{ readonly written: number; readonly bad: readonly { readonly index: number; readonly error: unknown }[] }>
  /** Resolves when everything appended before it is durable; with durability 'none' it syncs. */
  flush(): Promise<void>
  /** Flushes and blocks until that is done: for `process.on('exit')`. */
  flushSync(): void
  /** Writes what was appended, then closes the file and ends its lock. Rejects if some of that could not be written. */
  close(): Promise<void>
  /** Object mode. It finishes when its rows have survived what `durability` says, and leaves the file open. A row that cannot be encoded destroys it. */
  writable(): Writable
  stats(): {
    readonly rows: number
    readonly bytes: number
    readonly writes: number
    readonly syncs: number
    readonly queuedBytes: number
  }
}

/**
 * Opens for append, repairing first. Creates the file and its folders. Tasks read the end of the file and write rows; the JS thread
 * captures rows. A pending row keeps the process alive; an open file without one does not.
 * Rejects with ERR_OFFLOOP_LOCKED while another handle holds the file, and with the errors of `repair`.
 */
export async function openJsonl(path: string | URL, options: JsonlOptions = {}): Promise<JsonlFile> {
  const name = readPath(path)
  const config = readLogConfig(options)
  const input = withoutPrototype({ path: name, ...config.opening })
  const file = new LogFile()
  const outcome = unwrap(await run((stop) => openLogFile(file, input, stop), { lane: 'files' }))
  return new RowLog(file, name, reportOf(outcome), config)
}

interface LogConfig {
  readonly opening: Omit<OpenLogInput, 'path'>
  readonly maxDelayMs: number
  /** Bytes of one group. */
  readonly groupBytes: number
  readonly maxBatchBytes: number
  readonly maxQueuedBytes: number
  readonly encode: EncodeConfig
  /** Rows are acknowledged before they are durable, so a flush has to sync. */
  readonly isVolatile: boolean
}

const KEYS = tableOf({
  durability: true,
  repair: true,
  lock: true,
  maxDelayMs: true,
  maxBatchBytes: true,
  maxQueuedBytes: true,
  mode: true,
  encode: true,
})
const POLICIES = tableOf<Exclude<TailPolicy, 'report'>>({
  quarantine: 'quarantine',
  truncate: 'truncate',
  isolate: 'isolate',
  strict: 'strict',
})
const DEFAULT_BATCH_BYTES = 1 << 20
/** Fills most of a tape's memory. Rows that share a tape share a task and a sync, in as many writes as they need. */
const LEAST_GROUP_BYTES = 4 << 20
const DEFAULT_QUEUED_BYTES = 64 << 20
const DEFAULT_MODE = 0o666

function readLogConfig(given: JsonlOptions): LogConfig {
  const options = copyOptions(given, KEYS)
  const most = Number.MAX_SAFE_INTEGER
  const durability = readDurability(options.durability, 'data')
  const policy = readPolicy(options.repair)
  const locks = readBoolean('options.lock', options.lock, true)
  const maxDelayMs = readInteger('options.maxDelayMs', options.maxDelayMs, 0, MAX_DELAY_MS) ?? 0
  const batch = readInteger('options.maxBatchBytes', options.maxBatchBytes, 1, most) ?? DEFAULT_BATCH_BYTES
  const queued = readInteger('options.maxQueuedBytes', options.maxQueuedBytes, 0, most)
  const mode = readInteger('options.mode', options.mode, 0, MOST_MODE) ?? DEFAULT_MODE
  const { encode = {} } = options
  return {
    opening: { durability, locks, mode, batch, ...(policy !== undefined && { policy }) },
    maxDelayMs,
    groupBytes: Math.max(batch, LEAST_GROUP_BYTES),
    maxBatchBytes: batch,
    maxQueuedBytes: queued ?? DEFAULT_QUEUED_BYTES,
    encode: readRowConfig(copyOptions(encode, ROW_KEYS, 'options.encode')),
    isVolatile: durability === 'none',
  }
}

function readPolicy(value: JsonlOptions['repair']): Exclude<TailPolicy, 'report'> | undefined {
  return value === false ? undefined : choose('options.repair', value, POLICIES, 'quarantine')
}

class RowLog implements JsonlFile {
  readonly path: string
  readonly repaired: RepairReport
  readonly #file: LogFile
  readonly #config: LogConfig
  readonly #core = new EncoderCore()
  /** Groups that are not launched. Rows go to the last of them. */
  readonly #groups = new Queue<RowGroup>()
  /** The group that is being written. */
  #current: RowGroup | undefined
  #timer: NodeJS.Timeout | undefined
  #isDue = false
  /** How many rows are being captured, one in the code of the other. Nothing is written meanwhile. */
  #captures = 0
  /** The error after which nothing more can be written. */
  #failure: { readonly cause: unknown } | undefined
  #closing: Promise<void> | undefined
  #room: Gate | undefined
  #queuedBytes = 0
  #rows = 0
  #bytes = 0
  #calls: NonNullable<GroupOutcome['calls']> = { writes: 0, syncs: 0 }

  constructor(file: LogFile, path: string, repaired: RepairReport, config: LogConfig) {
    this.#file = file
    this.path = path
    this.repaired = repaired
    this.#config = config
  }

  append(row: unknown, options?: BytesInput): Promise<{ readonly offset: number; readonly length: number }> {
    return new Promise((resolve, reject) => {
      const transfer = readRowTransfer(options)
      this.#add(row, { written: (offset, length) => resolve({ offset, length }), failed: reject }, transfer)
    })
  }

  async appendMany(rows: Iterable<unknown> | AsyncIterable<unknown>, options?: BytesInput): Promise<TallyResult> {
    const transfer = readRowTransfer(options)
    this.#check()
    const tally = new Tally()
    try {
      await forEachRow('rows', rows, { signal: undefined, transfer }, (row) => {
        this.#check()
        tally.add(() => this.#add(row, tally, transfer))
        return this.#waitForRoom()
      })
    } catch (error) {
      // Earlier rows are being written. If that fails, its error comes first.
      await tally.end()
      throw error
    }
    return await tally.end()
  }

  async flush(): Promise<void> {
    this.#check()
    if (this.#config.isVolatile) this.#openGroup().flushes = true
    await this.#whenWritten()
  }

  flushSync(): void {
    const isOpen = this.#closing === undefined
    if (isOpen) this.#check()
    else if (this.#failure !== undefined) return
    if (0 < this.#captures) throw new Error('a row that is being captured cannot be flushed')
    if (isOpen && this.#config.isVolatile) this.#openGroup().flushes = true
    let error: unknown
    const landNow = (group: RowGroup): void => {
      const outcome = group.writeNow(this.#file)
      error ??= outcome.error
      this.#land(group, outcome)
    }
    const failure = this.#file.finish()
    if (failure !== null) throw this.#poison(errorOf(failure))
    if (this.#current?.isLaunched === false) landNow(this.#current)
    for (let group = this.#next(); group !== undefined; group = this.#next()) landNow(group)
    if (error !== undefined) throw error
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  writable(): Writable {
    const write = (row: unknown, _encoding: string, done: (error?: Error | null) => void): void => {
      try {
        this.#add(row, waiter)
        const room = this.#waitForRoom()
        if (room === undefined) done()
        else callWhenSettled(room, done)
      } catch (error) {
        done(asError(error))
      }
    }
    const final = (done: (error?: Error | null) => void): void => callWhenSettled(this.#whenWritten(), done)
    const stream = new Writable({ objectMode: true, write, final })
    const waiter: RowWaiter = { written: () => undefined, failed: (error) => stream.destroy(asError(error)) }
    return stream
  }

  stats(): ReturnType<JsonlFile['stats']> {
    return { rows: this.#rows, bytes: this.#bytes, ...this.#calls, queuedBytes: this.#queuedBytes }
  }

  #check(): void {
    if (this.#closing !== undefined) throw new OffloopError('ERR_OFFLOOP_CLOSED', `the log '${this.path}' is closed`)
    if (this.#failure !== undefined) throw this.#poisoned()
  }

  #poisoned(): OffloopError {
    const message = `an earlier write or sync failed, and nothing after it can be believed: open '${this.path}' again`
    return new OffloopError('ERR_OFFLOOP_POISONED', message, { path: this.path, cause: this.#failure?.cause })
  }

  #add(row: unknown, waiter: RowWaiter, transfer?: RowTransfer): void {
    this.#check()
    const group = this.#openGroup()
    const before = group.rowBuffer.size
    this.#capture(group, row, transfer)
    group.waiters.push(waiter)
    this.#queuedBytes += group.rowBuffer.size - before
    this.#schedule(group)
  }

  #capture({ rowBuffer }: RowGroup, row: unknown, transfer: RowTransfer | undefined): void {
    this.#captures += 1
    try {
      rowBuffer.add(row, undefined, transfer)
    } catch (error) {
      // Rows that the code of this row appended wait to be written.
      this.#hasten()
      throw error
    } finally {
      this.#captures -= 1
    }
  }

  /** Returns the group of the next row. A row that the code of another row appends goes to a later group. */
  #openGroup(): RowGroup {
    const { last } = this.#groups
    const { encode, groupBytes } = this.#config
    if (last !== undefined && !last.rowBuffer.isBusy && last.rowBuffer.size < groupBytes) return last
    const group = new RowGroup(this.#core.open(encode))
    this.#groups.push(group)
    return group
  }

  #schedule({ rowBuffer }: RowGroup): void {
    const { maxDelayMs, maxBatchBytes } = this.#config
    if (maxDelayMs === 0 || maxBatchBytes <= rowBuffer.size) this.#hasten()
    else if (this.#current === undefined) this.#timer ??= setTimeout(this.#start, maxDelayMs)
  }

  /** Starts writing in the next tick, so that rows appended until then share the group. */
  #hasten(): void {
    if (this.#isDue || this.#current !== undefined) return
    this.#isDue = true
    process.nextTick(this.#start)
  }

  readonly #start = (): void => {
    this.#isDue = false
    if (this.#current !== undefined || 0 < this.#captures) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#current = this.#next()
    if (this.#current !== undefined) void this.#write(this.#current)
  }

  async #write(group: RowGroup): Promise<void> {
    const outcome = await group.write(this.#file)
    if (!group.isSettled) this.#land(group, outcome)
    this.#current = undefined
    this.#start()
  }

  /** Takes the first group that is not idle. */
  #next(): RowGroup | undefined {
    for (let group = this.#groups.first; group !== undefined; group = this.#groups.first) {
      if (group.isIdle && group === this.#groups.last) return undefined
      this.#groups.remove(group)
      if (!group.isIdle) return group
      group.settle(NOTHING_WRITTEN)
    }
    return undefined
  }

  #land(group: RowGroup, outcome: GroupOutcome): void {
    this.#queuedBytes -= group.rowBuffer.size
    this.#rows += outcome.rows
    this.#bytes += outcome.bytes
    if (outcome.calls !== undefined) this.#calls = outcome.calls
    group.settle(outcome)
    if (outcome.error !== undefined && !outcome.isUntouched) this.#poison(outcome.error)
    if (this.#queuedBytes <= this.#config.maxQueuedBytes) this.#openRoom()
  }

  /** Fails all waiting rows: after a failed write or sync nothing more is written. Returns `cause`. */
  #poison(cause: unknown): unknown {
    this.#failure ??= { cause }
    for (let group = this.#next(); group !== undefined; group = this.#next()) {
      this.#queuedBytes -= group.rowBuffer.size
      group.settle({ ...NOTHING_WRITTEN, error: this.#poisoned() })
    }
    this.#openRoom()
    return cause
  }

  /** Returns what a producer of rows must wait for; `undefined` while `maxQueuedBytes` is not exceeded. */
  #waitForRoom(): Promise<void> | undefined {
    if (this.#queuedBytes <= this.#config.maxQueuedBytes) return undefined
    this.#hasten()
    this.#room ??= new Gate()
    return this.#room.opened
  }

  #openRoom(): void {
    this.#room?.open()
    this.#room = undefined
  }

  /** Settles when all rows appended before are written; rejects if some were not. A row that is being captured counts as appended. */
  async #whenWritten(): Promise<void> {
    let { last } = this.#groups
    while (last?.isIdle === true && !last.rowBuffer.isBusy) last = last.before
    this.#hasten()
    await (last ?? this.#current)?.follow()
  }

  async #close(): Promise<void> {
    try {
      await this.#whenWritten()
    } finally {
      unwrap(await run(() => closeLogFile(this.#file), { lane: 'files' }))
    }
  }
}

function readRowTransfer(options: BytesInput | undefined): RowTransfer | undefined {
  if (options === undefined) return undefined
  return readTransfer(copyOptions(options, BYTES_KEYS).transfer) ? new RowTransfer() : undefined
}

const callWhenSettled = callbackify((wait: Promise<void>) => wait)

/** Returns an Error for any value: streams fail with Errors only. */
function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('a row could not be appended', { cause: error })
}
