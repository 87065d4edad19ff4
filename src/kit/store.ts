/** What rollouts hold, and when it may go. */

import { clearTimeout, setTimeout } from 'node:timers'
import { types } from 'node:util'
import { invalidType, OffloopError } from '../errors.ts'
import { checkKeys, readInteger, readLimit, tableOf } from '../options.ts'
import { FreeMemory, trimMemory } from './memory.ts'
import { warn } from './tell.ts'

/** What rollouts hold, and when it may go: bodies until delivered, trajectories until their group is scored. */
export interface RolloutStore<T> extends AsyncDisposable {
  /** An id already there is replaced. Above `maxBytes`: throws ERR_OFFLOOP_FULL and takes nothing. */
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
  /** Hands the value over and forgets it. Undefined if it is not there: delivering twice is harmless. */
  deliver(id: string): T | undefined
  /** Forgets a rollout; one in a group stays readable until the group is settled. */
  evict(id: string): void
  /** Forgets the group and gives what was neither delivered nor evicted, so that waiters can be released. */
  settle(group: string): readonly { readonly id: string; readonly value: T }[]
  /** Also of a store that is closed. */
  stats(): {
    readonly entries: number
    /** Of what is held. With `releasedBytes` it makes up all that was put. */
    readonly bytes: number
    /** Of what was delivered, evicted, settled and replaced. */
    readonly releasedBytes: number
    /** How many trims have ended. */
    readonly trims: number
  }
  /** Forgets everything, trims if anything was let go since the last time, and waits for that. The store is closed: all else throws. */
  [Symbol.asyncDispose](): PromiseLike<void>
}

type PutOptions = NonNullable<Parameters<RolloutStore<unknown>['put']>[2]>
type Settled<T> = ReturnType<RolloutStore<T>['settle']>[number]
type Stats = ReturnType<RolloutStore<unknown>['stats']>

const KEYS = tableOf({ maxBytes: true, trimAfterBytes: true })
const PUT_KEYS = tableOf({ bytes: true, group: true })
const TRIM_AFTER_BYTES = 64 << 20
/** V8 collects what is left when a process has had little to do for some seconds. */
const LOOK_MS = 10_000
/** After the latest time that enough was let go. */
const LOOKS = 3

/**
 * A registry of values by id that counts their bytes and forgets them as soon as it may. A call takes some microseconds on this
 * thread, and one for each value that it settles; values are kept as they are, never copied.
 *
 * What was let go is given back to the system by `trimMemory`, in a task of the pool, and once more when V8 has collected it: the
 * store looks every 10 s, three times, which keeps nothing alive. Of a trim that fails, the process is warned.
 */
export function createRolloutStore<T>(
  options: {
    /** @default Infinity */
    readonly maxBytes?: number | undefined
    /** Trim memory, off-thread, after this much was let go. @default 64 MiB */
    readonly trimAfterBytes?: number | undefined
  } = {},
): RolloutStore<T> {
  checkKeys(options, KEYS)
  const maxBytes = readLimit('options.maxBytes', options.maxBytes, 0)
  const { trimAfterBytes = TRIM_AFTER_BYTES } = options
  return new Store(maxBytes, new Trimmer(readLimit('options.trimAfterBytes', trimAfterBytes, 1)))
}

interface Entry<T> {
  readonly id: string
  readonly value: T
  readonly bytes: number
  readonly group: string | undefined
  isEvicted: boolean
}

class Store<T> implements RolloutStore<T> {
  readonly #maxBytes: number
  readonly #trimmer: Trimmer
  readonly #entries = new Map<string, Entry<T>>()
  /** Those of each group, in the order of `put`. */
  readonly #groups = new Map<string, Set<Entry<T>>>()
  #bytes = 0
  #releasedBytes = 0
  #isClosed = false

  constructor(maxBytes: number, trimmer: Trimmer) {
    this.#maxBytes = maxBytes
    this.#trimmer = trimmer
  }

  put(id: string, value: T, options: PutOptions = {}): void {
    this.#check('id', id)
    checkKeys(options, PUT_KEYS)
    const bytes = readInteger('options.bytes', options.bytes, 0, Number.MAX_SAFE_INTEGER) ?? sizeOf(value)
    const { group } = options
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

  settle(group: string): readonly Settled<T>[] {
    this.#check('group', group)
    const settled: Settled<T>[] = []
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

  #add(entry: Entry<T>): void {
    this.#entries.set(entry.id, entry)
    this.#bytes += entry.bytes
    if (entry.group === undefined) return
    const group = this.#groups.get(entry.group)
    if (group === undefined) this.#groups.set(entry.group, new Set([entry]))
    else group.add(entry)
  }

  #forget(entry: Entry<T>): void {
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

/**
 * Trims when enough was let go, and looks again later: whoever was given a value still has it then, and V8 collects it
 * when it likes.
 */
class Trimmer {
  readonly #afterBytes: number
  readonly #free: FreeMemory = new FreeMemory()
  #letGo = 0
  #trims = 0
  #looksLeft = 0
  #timer: NodeJS.Timeout | undefined
  /** The trim under way. */
  #trimming: Promise<void> | undefined

  constructor(afterBytes: number) {
    this.#afterBytes = afterBytes
  }

  get trims(): number {
    return this.#trims
  }

  note(bytes: number): void {
    this.#letGo += bytes
    if (this.#letGo < this.#afterBytes) return
    this.#looksLeft = LOOKS
    this.#trimming ??= this.#trimAll()
  }

  /** Looks no more. */
  async finish(): Promise<void> {
    await this.#trimming
    if (this.#letGo !== 0 && this.#afterBytes !== Infinity) await (this.#trimming ??= this.#trimAll())
    this.#looksLeft = 0
    clearTimeout(this.#timer)
  }

  async #trimAll(): Promise<void> {
    await this.#trim()
    this.#trimming = undefined
    this.#lookLater()
  }

  async #trim(): Promise<void> {
    this.#letGo = 0
    try {
      await trimMemory()
      this.#trims += 1
    } catch (error) {
      warn(error)
    }
    this.#free.mark()
    // What was let go meanwhile may have come too late for it.
    if (this.#afterBytes <= this.#letGo) await this.#trim()
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
