/** Store of rollouts by id, which trims memory after it was freed. Lives on the JS thread; `offloop/kit` exports it. */

import { clearTimeout, setTimeout } from 'node:timers'
import { types } from 'node:util'
import { invalidType, OffloopError } from '../runtime/errors.ts'
import { copyOptions, readInteger, readLimit, tableOf } from '../runtime/options.ts'
import { FreeMemory, trimMemory } from './memory.ts'
import { warn } from './warn.ts'

/** Values of rollouts until they may go: bodies until they are delivered, trajectories until their group is scored. */
export interface RolloutStore<T> extends AsyncDisposable {
  /** Replaces an id that is already there. Above `maxBytes`: throws ERR_OFFLOOP_FULL and takes nothing. */
  put(
    id: string,
    value: T,
    options?: {
      /** @default byteLength of binary values, else 0 */
      readonly bytes?: number | undefined
      readonly group?: string | undefined
    },
  ): void
  get(id: string): T | undefined
  /** Hands the value over and forgets it. Returns undefined if it is not there: delivering twice is harmless. */
  deliver(id: string): T | undefined
  /** Forgets a rollout. One in a group stays readable until the group is settled. */
  evict(id: string): void
  /** Forgets the group. Returns what was neither delivered nor evicted, so that waiters can be released. */
  settle(group: string): readonly { readonly id: string; readonly value: T }[]
  /** Returns counts, also after the store was closed. */
  stats(): {
    readonly entries: number
    /** Bytes of the values held. `bytes` and `releasedBytes` add up to all bytes that were put. */
    readonly bytes: number
    /** Bytes of values that were delivered, evicted, settled or replaced. */
    readonly releasedBytes: number
    /** Number of trims that have ended. */
    readonly trims: number
  }
  /** Closes the store and forgets everything. Trims, if anything was freed since the last trim, and waits for that. All other calls throw then. */
  [Symbol.asyncDispose](): PromiseLike<void>
}

type PutOptions = NonNullable<Parameters<RolloutStore<unknown>['put']>[2]>
type UndeliveredRollout<T> = ReturnType<RolloutStore<T>['settle']>[number]
type Stats = ReturnType<RolloutStore<unknown>['stats']>

const KEYS = tableOf({ maxBytes: true, trimAfterBytes: true })
const PUT_KEYS = tableOf({ bytes: true, group: true })
const TRIM_AFTER_BYTES = 64 << 20
/** Delay of a look at freed memory. V8 collects garbage when a process has been idle for some seconds. */
const LOOK_MS = 10_000
/** Number of looks after `trimAfterBytes` were freed. */
const LOOKS = 3

/**
 * Creates a store that keeps values by id and counts their bytes. A call takes some microseconds on the JS thread, plus one for each
 * value that it settles. Values are never copied.
 *
 * `trimMemory` returns freed memory to the system, in a task. V8 collects some of it later. So the store looks again every 10 s, three
 * times, and trims if memory was freed; this does not keep the process alive. A trim that fails becomes a process warning.
 */
export function createRolloutStore<T>(
  options: {
    /** @default Infinity */
    readonly maxBytes?: number | undefined
    /** Trim memory, off the JS thread, after this much was freed. @default 64 MiB */
    readonly trimAfterBytes?: number | undefined
  } = {},
): RolloutStore<T> {
  const { maxBytes, trimAfterBytes = TRIM_AFTER_BYTES } = copyOptions(options, KEYS)
  const most = readLimit('options.maxBytes', maxBytes, 0)
  return new Store(most, new Trimmer(readLimit('options.trimAfterBytes', trimAfterBytes, 1)))
}

interface StoreEntry<T> {
  readonly id: string
  readonly value: T
  readonly bytes: number
  readonly group: string | undefined
  isEvicted: boolean
}

class Store<T> implements RolloutStore<T> {
  readonly #maxBytes: number
  readonly #trimmer: Trimmer
  readonly #entries = new Map<string, StoreEntry<T>>()
  /** Entries of each group, in the order of `put`. */
  readonly #groups = new Map<string, Set<StoreEntry<T>>>()
  #bytes = 0
  #releasedBytes = 0
  #isClosed = false

  constructor(maxBytes: number, trimmer: Trimmer) {
    this.#maxBytes = maxBytes
    this.#trimmer = trimmer
  }

  put(id: string, value: T, options: PutOptions = {}): void {
    this.#check('id', id)
    const { bytes: given, group } = copyOptions(options, PUT_KEYS)
    const bytes = readInteger('options.bytes', given, 0, Number.MAX_SAFE_INTEGER) ?? sizeOf(value)
    if (group !== undefined) this.#check('options.group', group)
    const old = this.#entries.get(id)
    this.#admit(bytes - (old?.bytes ?? 0))
    if (old !== undefined) this.#forget(old)
    this.#add({ id, value, bytes, group, isEvicted: false })
  }

  get(id: string): T | undefined {
    this.#check('id', id)
    return this.#entries.get(id)?.value
  }

  deliver(id: string): T | undefined {
    this.#check('id', id)
    const entry = this.#entries.get(id)
    if (entry !== undefined) this.#forget(entry)
    return entry?.value
  }

  evict(id: string): void {
    this.#check('id', id)
    const entry = this.#entries.get(id)
    if (entry === undefined) return
    if (entry.group === undefined) this.#forget(entry)
    else entry.isEvicted = true
  }

  settle(group: string): readonly UndeliveredRollout<T>[] {
    this.#check('group', group)
    const settled: UndeliveredRollout<T>[] = []
    for (const entry of this.#groups.get(group) ?? []) {
      this.#forget(entry)
      const { id, value, isEvicted } = entry
      if (!isEvicted) settled.push({ id, value })
    }
    return settled
  }

  stats(): Stats {
    const { trims } = this.#trimmer
    return { entries: this.#entries.size, bytes: this.#bytes, releasedBytes: this.#releasedBytes, trims }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    for (const entry of this.#entries.values()) this.#forget(entry)
    await this.#trimmer.finish()
  }

  #check(name: string, value: unknown): void {
    if (this.#isClosed) throw new OffloopError('ERR_OFFLOOP_CLOSED', 'the store is closed')
    if (typeof value !== 'string') throw invalidType(name, 'of type string', value)
  }

  #admit(bytes: number): void {
    const sum = this.#bytes + bytes
    if (sum <= this.#maxBytes) return
    throw new OffloopError('ERR_OFFLOOP_FULL', `the store would hold ${sum} bytes, and may hold ${this.#maxBytes}`)
  }

  #add(entry: StoreEntry<T>): void {
    this.#entries.set(entry.id, entry)
    this.#bytes += entry.bytes
    if (entry.group === undefined) return
    const group = this.#groups.get(entry.group)
    if (group === undefined) this.#groups.set(entry.group, new Set([entry]))
    else group.add(entry)
  }

  #forget(entry: StoreEntry<T>): void {
    this.#entries.delete(entry.id)
    this.#bytes -= entry.bytes
    this.#releasedBytes += entry.bytes
    this.#trimmer.note(entry.bytes)
    if (entry.group === undefined) return
    const group = this.#groups.get(entry.group)
    group?.delete(entry)
    if (group?.size === 0) this.#groups.delete(entry.group)
  }
}

/** Trims when enough was freed, and looks again later: callers still hold values then, and V8 collects them some time after. */
class Trimmer {
  readonly #afterBytes: number
  readonly #free: FreeMemory = new FreeMemory()
  #freed = 0
  #trims = 0
  #looksLeft = 0
  #timer: NodeJS.Timeout | undefined
  /** The trim that is running. */
  #trimming: Promise<void> | undefined

  constructor(afterBytes: number) {
    this.#afterBytes = afterBytes
  }

  get trims(): number {
    return this.#trims
  }

  note(bytes: number): void {
    this.#freed += bytes
    if (this.#freed < this.#afterBytes) return
    this.#looksLeft = LOOKS
    this.#trimming ??= this.#trimAll()
  }

  /** Trims a last time, if needed, and cancels further looks. */
  async finish(): Promise<void> {
    await this.#trimming
    if (this.#freed !== 0 && this.#afterBytes !== Infinity) await (this.#trimming ??= this.#trimAll())
    this.#looksLeft = 0
    clearTimeout(this.#timer)
  }

  async #trimAll(): Promise<void> {
    await this.#trim()
    this.#trimming = undefined
    this.#lookLater()
  }

  async #trim(): Promise<void> {
    this.#freed = 0
    try {
      await trimMemory()
      this.#trims += 1
    } catch (error) {
      warn(error)
    }
    this.#free.mark()
    // Memory that was freed meanwhile may have missed this trim.
    if (this.#afterBytes <= this.#freed) await this.#trim()
  }

  #lookLater(): void {
    if (this.#looksLeft === 0) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#look(), LOOK_MS)
    this.#timer.unref()
  }

  #look(): void {
    this.#looksLeft -= 1
    if (this.#trimming !== undefined) return
    if (this.#free.hasGrown) this.#trimming = this.#trimAll()
    else this.#lookLater()
  }
}

function sizeOf(value: unknown): number {
  return ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value) ? value.byteLength : 0
}
