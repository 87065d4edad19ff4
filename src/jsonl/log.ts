/** Rows appended to a file: captured when they come, encoded and written in groups, one group at a time. */

import { Writable } from 'node:stream'
import { clearTimeout, setTimeout } from 'node:timers'
import { callbackify } from 'node:util'
import { OffloopError } from '../errors.ts'
import { readRowForm, ROW_KEYS, type EncodeOptions, type Form } from '../forms.ts'
import {
  closeLogFile,
  errorOf,
  FileDurability,
  LogFile,
  openLogFile,
  TailPolicy as Policy,
  unwrap,
  type OpenSettings,
} from '../native.ts'
import { checkKeys, choose, MAX_DELAY_MS, readBoolean, readInteger, tableOf } from '../options.ts'
import { run } from '../pool.ts'
import { Press } from '../press.ts'
import { Queue } from '../queue.ts'
import { forEachRow } from '../sheet.ts'
import { MOST_MODE, readDurability, type Durability } from './durability.ts'
import { Group, NOTHING, type Landed, type Waiter } from './group.ts'
import { readPath } from './path.ts'
import { reportOf, type RepairReport, type TailPolicy } from './repair.ts'

export interface JsonlOptions {
  /** @default 'data' */
  readonly durability?: Durability | undefined
  /** Applied once, on open, whatever else exists beside the file. @default 'quarantine' */
  readonly repair?: Exclude<TailPolicy, 'report'> | false | undefined
  /** Refuse a second writer, in this process or another. Where the file system has no locks, Node's error, which names this option. @default true */
  readonly lock?: boolean | undefined
  /** How long a row may wait for company before it is written. Rows that arrive during a write leave together in the next. @default 0 */
  readonly maxDelayMs?: number | undefined
  /** @default 1 MiB */
  readonly maxBatchBytes?: number | undefined
  /** Bytes captured and not yet written, above which `writable()` and an async iterable given to `appendMany` wait. (`append` has read its row by then: await it.) @default 64 MiB */
  readonly maxQueuedBytes?: number | undefined
  /** Mode of a file created. @default 0o666 less the umask */
  readonly mode?: number | undefined
  readonly encode?: Omit<EncodeOptions, 'signal' | 'space' | 'newline'> | undefined
}

export interface JsonlFile extends AsyncDisposable {
  readonly path: string
  /** What opening it had to repair. */
  readonly repaired: RepairReport
  /** Resolves when the row has survived what `durability` says. A row that cannot be encoded rejects alone and writes nothing. Rows land whole and in call order. */
  append(row: unknown): Promise<{ readonly offset: number; readonly length: number }>
  /** As append, for many; bad rows are reported, the others land. */
  appendMany(
    rows: Iterable<unknown> | AsyncIterable<unknown>,
  ): Promise<{ readonly written: number; readonly bad: readonly { readonly index: number; readonly error: unknown }[] }>
  /** Resolves when everything appended before it is durable; with durability 'none' it syncs. */
  flush(): Promise<void>
  /** The same, blocking: for `process.on('exit')`. */
  flushSync(): void
  /** Writes what was appended, then lets go of the file and its lock. Rejects where some of that could not be written. */
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
 * Opens for append, repairing first. Creates the file and its folders. Reading the end of the file, and all writing, happens off the
 * JS thread; capturing rows does not. A pending row keeps the process alive; an open file without one does not.
 * Rejects with ERR_OFFLOOP_LOCKED while another handle has the file, and as `repair` does.
 */
export async function openJsonl(path: string | URL, options: JsonlOptions = {}): Promise<JsonlFile> {
  const name = readPath(path)
  const { settings, limits } = readOptions(options)
  const file = new LogFile()
  const repaired = unwrap(await run((stop) => openLogFile(file, name, settings, stop), { lane: 'files' }))
  return new Log(file, name, reportOf(repaired), limits)
}

interface Limits {
  readonly maxDelayMs: number
  /** Of rows that are captured together. */
  readonly groupBytes: number
  readonly maxBatchBytes: number
  readonly maxQueuedBytes: number
  readonly form: Form
  /** Rows are acknowledged before they are durable: a flush has something to do. */
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
const POLICIES = tableOf({
  quarantine: Policy.Quarantine,
  truncate: Policy.Truncate,
  isolate: Policy.Isolate,
  strict: Policy.Strict,
})
const DEFAULT_BATCH_BYTES = 1 << 20
/** What fills most of a tape's memory. Rows that share a tape share a task and a sync, in as many writes as it takes. */
const LEAST_GROUP_BYTES = 4 << 20
const DEFAULT_QUEUED_BYTES = 64 << 20
const DEFAULT_MODE = 0o666

function readOptions(options: JsonlOptions): { readonly settings: OpenSettings; readonly limits: Limits } {
  checkKeys(options, KEYS)
  const most = Number.MAX_SAFE_INTEGER
  const durability = readDurability(options.durability, FileDurability.Data)
  const policy = readPolicy(options.repair)
  const locks = readBoolean('options.lock', options.lock, true)
  const maxDelayMs = readInteger('options.maxDelayMs', options.maxDelayMs, 0, MAX_DELAY_MS) ?? 0
  const batch = readInteger('options.maxBatchBytes', options.maxBatchBytes, 1, most) ?? DEFAULT_BATCH_BYTES
  const queued = readInteger('options.maxQueuedBytes', options.maxQueuedBytes, 0, most)
  const mode = readInteger('options.mode', options.mode, 0, MOST_MODE) ?? DEFAULT_MODE
  const { encode = {} } = options
  checkKeys(encode, ROW_KEYS, 'options.encode')
  return {
    settings: { durability, locks, mode, batch, ...(policy !== undefined && { policy }) },
    limits: {
      maxDelayMs,
      groupBytes: Math.max(batch, LEAST_GROUP_BYTES),
      maxBatchBytes: batch,
      maxQueuedBytes: queued ?? DEFAULT_QUEUED_BYTES,
      form: readRowForm(encode),
      isVolatile: durability === FileDurability.None,
    },
  }
}

function readPolicy(value: JsonlOptions['repair']): Policy | undefined {
  return value === false ? undefined : choose('options.repair', value, POLICIES, Policy.Quarantine)
}

class Log implements JsonlFile {
  readonly path: string
  readonly repaired: RepairReport
  readonly #file: LogFile
  readonly #limits: Limits
  readonly #press = new Press()
  /** Those that are not launched; rows go to the last of them. */
  readonly #groups = new Queue<Group>()
  /** The one on its way to the file. */
  #current: Group | undefined
  #timer: NodeJS.Timeout | undefined
  #isDue = false
  /** Rows that are being captured, one in the code of the other: nothing is written then. */
  #captures = 0
  /** Why nothing more can be written. */
  #failure: { readonly cause: unknown } | undefined
  #closing: Promise<void> | undefined
  #relief: Relief | undefined
  #queuedBytes = 0
  #rows = 0
  #bytes = 0
  #calls: NonNullable<Landed['calls']> = { writes: 0, syncs: 0 }

  constructor(file: LogFile, path: string, repaired: RepairReport, limits: Limits) {
    this.#file = file
    this.path = path
    this.repaired = repaired
    this.#limits = limits
  }

  append(row: unknown): Promise<{ readonly offset: number; readonly length: number }> {
    return new Promise((resolve, reject) => {
      this.#add(row, { written: (offset, length) => resolve({ offset, length }), failed: reject })
    })
  }

  async appendMany(rows: Iterable<unknown> | AsyncIterable<unknown>): Promise<{
    readonly written: number
    readonly bad: readonly { readonly index: number; readonly error: unknown }[]
  }> {
    this.#check()
    const tally = new Tally()
    try {
      await forEachRow('rows', rows, undefined, (row) => {
        this.#check()
        tally.add(() => this.#add(row, tally))
        return this.#room()
      })
    } catch (error) {
      // Rows that came before are on their way. Where they do not land, that is what comes first.
      await tally.end()
      throw error
    }
    return await tally.end()
  }

  async flush(): Promise<void> {
    this.#check()
    if (this.#limits.isVolatile) this.#openGroup().flushes = true
    await this.#settled()
  }

  flushSync(): void {
    const isOpen = this.#closing === undefined
    if (isOpen) this.#check()
    else if (this.#failure !== undefined) return
    if (0 < this.#captures) throw new Error('a row that is being captured cannot be flushed')
    if (isOpen && this.#limits.isVolatile) this.#openGroup().flushes = true
    let error: unknown
    const landNow = (group: Group): void => {
      const landed = group.writeNow(this.#file)
      error ??= landed.error
      this.#land(group, landed)
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
        const room = this.#room()
        if (room === undefined) done()
        else settle(room, done)
      } catch (error) {
        done(asError(error))
      }
    }
    const final = (done: (error?: Error | null) => void): void => settle(this.#settled(), done)
    const stream = new Writable({ objectMode: true, write, final })
    const waiter: Waiter = { written: () => undefined, failed: (error) => stream.destroy(asError(error)) }
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

  #add(row: unknown, waiter: Waiter): void {
    this.#check()
    const group = this.#openGroup()
    const before = group.sheet.size
    this.#capture(group, row)
    group.waiters.push(waiter)
    this.#queuedBytes += group.sheet.size - before
    this.#schedule(group)
  }

  #capture({ sheet }: Group, row: unknown): void {
    this.#captures += 1
    try {
      sheet.add(row)
    } catch (error) {
      // Rows that its code appended wait.
      this.#hasten()
      throw error
    } finally {
      this.#captures -= 1
    }
  }

  /** Where the next row goes. One that is appended by the code of another row, while that is captured, goes behind it. */
  #openGroup(): Group {
    const { last } = this.#groups
    const { form, groupBytes } = this.#limits
    if (last !== undefined && !last.sheet.isBusy && last.sheet.size < groupBytes) return last
    const group = new Group(this.#press.open(form))
    this.#groups.push(group)
    return group
  }

  #schedule({ sheet }: Group): void {
    const { maxDelayMs, maxBatchBytes } = this.#limits
    if (maxDelayMs === 0 || maxBatchBytes <= sheet.size) this.#hasten()
    else if (this.#current === undefined) this.#timer ??= setTimeout(this.#start, maxDelayMs)
  }

  /** When the code that runs now, and what waits for its promises, has appended what it has. */
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

  async #write(group: Group): Promise<void> {
    const landed = await group.write(this.#file)
    if (!group.isSettled) this.#land(group, landed)
    this.#current = undefined
    this.#start()
  }

  /** Takes the first group that has anything to be done. */
  #next(): Group | undefined {
    for (let group = this.#groups.first; group !== undefined; group = this.#groups.first) {
      if (group.isIdle && group === this.#groups.last) return undefined
      this.#groups.remove(group)
      if (!group.isIdle) return group
      group.settle(NOTHING)
    }
    return undefined
  }

  #land(group: Group, landed: Landed): void {
    this.#queuedBytes -= group.sheet.size
    this.#rows += landed.rows
    this.#bytes += landed.bytes
    if (landed.calls !== undefined) this.#calls = landed.calls
    group.settle(landed)
    if (landed.error !== undefined && !landed.isUntouched) this.#poison(landed.error)
    if (this.#queuedBytes <= this.#limits.maxQueuedBytes) this.#relieve()
  }

  /** Rows that wait behind one that failed are not written. */
  #poison(cause: unknown): unknown {
    this.#failure ??= { cause }
    for (let group = this.#next(); group !== undefined; group = this.#next()) {
      this.#queuedBytes -= group.sheet.size
      group.settle({ ...NOTHING, error: this.#poisoned() })
    }
    this.#relieve()
    return cause
  }

  /** What there is to wait for where too much is queued. */
  #room(): Promise<void> | undefined {
    if (this.#queuedBytes <= this.#limits.maxQueuedBytes) return undefined
    this.#hasten()
    this.#relief ??= new Relief()
    return this.#relief.promise
  }

  #relieve(): void {
    this.#relief?.come()
    this.#relief = undefined
  }

  /** All that was appended before is written; or some of it was not, and why. */
  async #settled(): Promise<void> {
    let { last } = this.#groups
    while (last?.isIdle === true) last = last.before
    this.#hasten()
    await (last ?? this.#current)?.follow()
  }

  async #close(): Promise<void> {
    try {
      await this.#settled()
    } finally {
      unwrap(await run(() => closeLogFile(this.#file), { lane: 'files' }))
    }
  }
}

class Relief {
  readonly promise: Promise<void>
  come: () => void = () => undefined

  constructor() {
    this.promise = new Promise((resolve) => (this.come = resolve))
  }
}

/** Counts what becomes of rows appended together. */
class Tally implements Waiter {
  #rows = 0
  #pending = 0
  #written = 0
  readonly #bad: { readonly index: number; readonly error: unknown }[] = []
  #failure: { readonly error: unknown } | undefined
  readonly #end = new Relief()
  #isEnding = false

  /** A row that `append` throws for is bad. */
  add(append: () => void): void {
    const index = this.#rows
    this.#rows += 1
    this.#pending += 1
    try {
      append()
    } catch (error) {
      this.#pending -= 1
      this.#bad.push({ index, error })
    }
  }

  written(): void {
    this.#written += 1
    this.#settle()
  }

  failed(error: unknown): void {
    this.#failure ??= { error }
    this.#settle()
  }

  #settle(): void {
    this.#pending -= 1
    if (this.#pending === 0 && this.#isEnding) this.#end.come()
  }

  async end(): Promise<{
    readonly written: number
    readonly bad: readonly { readonly index: number; readonly error: unknown }[]
  }> {
    this.#isEnding = true
    if (this.#pending !== 0) await this.#end.promise
    if (this.#failure !== undefined) throw this.#failure.error
    return { written: this.#written, bad: this.#bad }
  }
}

const settle = callbackify((wait: Promise<void>) => wait)

/** What streams fail with. */
function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('a row could not be appended', { cause: error })
}
