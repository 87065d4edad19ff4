/** Page of a batcher: captured items, then their JSON. Captured on the JS thread, printed by a task; the batcher calls it. */

import { makeMemory, type Bytes } from '../../runtime/bytes.ts'
import { isTooLarge } from '../../runtime/errors.ts'
import { bufferOf } from '../../runtime/intrinsics.ts'
import {
  PrintedPage,
  printPage,
  printPageSync,
  unwrap,
  type Failure,
  type PrintPageInput,
} from '../../runtime/native.ts'
import { releaseWhenIdle } from '../../runtime/idle.ts'
import { run } from '../../runtime/pool.ts'
import type { Queued } from '../../runtime/queue.ts'
import type { RowBuffer } from '../../encode/row-buffer.ts'
import type { Ledger } from './ledger.ts'

const { Float64Array: Doubles } = globalThis

export class Page implements Queued<Page> {
  before: Page | undefined
  after: Page | undefined
  /** Number of the page: 1 for the first page of a batcher. */
  readonly number: number
  /** Its items, and all earlier ones, are sent without waiting for more. */
  isDue = false
  /** The page takes no more items. It is printed as soon as no item is being captured. */
  isClosed = false
  /** The page is printed, or has failed. */
  isPrinted = false
  failure: { readonly error: unknown } | undefined
  /** Why the last item was dropped: there was no memory for it. `length` does not count it. */
  overflow: { readonly error: unknown } | undefined
  readonly native: PrintedPage = new PrintedPage()
  readonly #ledger: Ledger
  /** Captured items; undefined once the page is printed. */
  #rowBuffer: RowBuffer | undefined
  #length = 0
  /** Number of items that are neither sent nor dropped. */
  #left = 0
  #ends: Float64Array = new Doubles(0)
  /** Bytes of this page that `ledger.bytes` counts. */
  #countedBytes = 0

  constructor(number: number, rowBuffer: RowBuffer, ledger: Ledger) {
    this.number = number
    this.#rowBuffer = rowBuffer
    this.#ledger = ledger
  }

  /** Number of items. */
  get length(): number {
    return this.#rowBuffer?.length ?? this.#length
  }

  /** Bytes of the JSON: an estimate until the page is printed. */
  get size(): number {
    return this.#rowBuffer?.size ?? this.#countedBytes
  }

  /** An item is being captured. Items that its code adds go to another page. */
  get isBusy(): boolean {
    return this.#rowBuffer?.isBusy ?? false
  }

  /** Captures an item. Returns false, and drops it, if the batcher would hold more than `most` bytes. Throws what capturing throws. */
  add(item: unknown, most: number): boolean {
    const rowBuffer = this.#open()
    rowBuffer.add(item)
    const size = this.#ledger.bytes - this.#countedBytes + rowBuffer.size
    if (most < size) rowBuffer.undo()
    this.#count(rowBuffer.size)
    return size <= most
  }

  /** Prints the page on the JS thread, if that costs less than a task. Returns whether it did. Never throws. */
  printNow(): boolean {
    const rowBuffer = this.#open()
    if (!rowBuffer.isCheap) return false
    try {
      const input = this.#finish(rowBuffer)
      this.#keep(printPageSync(input), input.ends)
    } catch (error) {
      this.failure = { error }
    }
    this.#end(rowBuffer)
    return true
  }

  /** Prints the page in a task. Never rejects. */
  async print(): Promise<void> {
    const rowBuffer = this.#open()
    try {
      await this.#print(rowBuffer).catch((error: unknown) => this.#printWithoutLast(rowBuffer, error))
    } catch (error) {
      this.failure = { error }
    }
    this.#end(rowBuffer)
  }

  /** Offset at which the JSON of an item begins. */
  startOf(index: number): number {
    return index === 0 ? 0 : this.endOf(index - 1) + 1
  }

  /** Offset at which the JSON of an item ends: that of the comma behind it. */
  endOf(index: number): number {
    return this.#ends[index] ?? 0
  }

  /** Notes that `items` more of its items are sent or dropped. Releases the memory with the last of them. */
  settle(items: number): void {
    this.#left -= items
    if (0 < this.#left) return
    this.native.release()
    this.#count(0)
  }

  async #print(rowBuffer: RowBuffer): Promise<void> {
    const input = this.#finish(rowBuffer)
    this.#keep(await run(() => printPage(input)), input.ends)
  }

  #finish(rowBuffer: RowBuffer): PrintPageInput & { readonly ends: Bytes } {
    const { lexicon, layout, length } = rowBuffer
    const ends = makeMemory(length * Doubles.BYTES_PER_ELEMENT)
    const tape = rowBuffer.finish()
    return { page: this.native, tape, lexicon, layout, size: rowBuffer.expectedSize, ends }
  }

  /** Prints the page without its last item. A page is closed when it has become large, so only the last item can be too large. */
  async #printWithoutLast(rowBuffer: RowBuffer, error: unknown): Promise<void> {
    if (!isTooLarge(error) || rowBuffer.length < 2 || !rowBuffer.undo()) throw error
    this.overflow = { error }
    await this.#print(rowBuffer)
  }

  #open(): RowBuffer {
    if (this.#rowBuffer === undefined) throw new Error('the page is printed')
    return this.#rowBuffer
  }

  #keep(size: number | Failure, ends: Bytes): void {
    this.#count(unwrap(size))
    this.#ends = new Doubles(bufferOf(ends))
  }

  #end(rowBuffer: RowBuffer): void {
    this.#length = rowBuffer.length
    this.#left = rowBuffer.length + (this.overflow === undefined ? 0 : 1)
    this.#rowBuffer = undefined
    this.isPrinted = true
    if (this.#left === 0) this.settle(0)
    rowBuffer.release()
    releaseWhenIdle()
  }

  #count(bytes: number): void {
    this.#ledger.bytes += bytes - this.#countedBytes
    this.#countedBytes = bytes
  }
}
