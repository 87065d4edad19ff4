/** Items captured one after the other on a sheet, and then their JSON, until all of them are sent or dropped. */

import { allocate, type Bytes } from '../../bytes.ts'
import { isTooLarge } from '../../errors.ts'
import { bufferOf } from '../../intrinsics.ts'
import { PrintedPage, printPage, printPageSync, unwrap, type Failure } from '../../native.ts'
import { releaseWhenIdle, run } from '../../pool.ts'
import type { Queued } from '../../queue.ts'
import type { Sheet } from '../../sheet.ts'
import type { Ledger } from './ledger.ts'

const { Float64Array: Doubles } = globalThis

export class Page implements Queued<Page> {
  before: Page | undefined
  after: Page | undefined
  /** Of all pages of a batcher, in order. */
  readonly number: number
  /** Its items, and those before, are to leave without waiting for more. */
  isDue = false
  /** It takes no more items, and is printed as soon as none is being captured. */
  isClosed = false
  /** It is printed, or why it cannot be is known. */
  isPrinted = false
  failure: { readonly error: unknown } | undefined
  /** Why there was no memory for one more item, the last, which is not counted any more. */
  lost: { readonly error: unknown } | undefined
  readonly native: PrintedPage = new PrintedPage()
  readonly #ledger: Ledger
  /** Until it is printed. */
  #sheet: Sheet | undefined
  #length = 0
  /** Items neither sent nor dropped. */
  #left = 0
  #ends: Float64Array = new Doubles(0)
  /** What it holds of `ledger.bytes`. */
  #held = 0

  constructor(number: number, sheet: Sheet, ledger: Ledger) {
    this.number = number
    this.#sheet = sheet
    this.#ledger = ledger
  }

  /** How many items there are. */
  get length(): number {
    return this.#sheet?.length ?? this.#length
  }

  /** About how many bytes they become; or how many they are. */
  get size(): number {
    return this.#sheet?.size ?? this.#held
  }

  /** An item is being captured: its code may add others, which cannot go on the same page. */
  get isBusy(): boolean {
    return this.#sheet?.isBusy ?? false
  }

  /** False where more than `most` bytes would be held with it. Throws what its capture throws. */
  add(item: unknown, most: number): boolean {
    const sheet = this.#open()
    sheet.add(item)
    const size = this.#ledger.bytes - this.#held + sheet.size
    if (most < size) sheet.undo()
    this.#hold(sheet.size)
    return size <= most
  }

  /** If that takes less of the thread than a task would. Never throws. */
  printAtOnce(): boolean {
    const sheet = this.#open()
    if (!sheet.isCheap) return false
    try {
      const { lexicon, layout } = sheet
      const ends = endsOf(sheet)
      this.#keep(printPageSync(this.native, sheet.finish(), lexicon, layout, sheet.expectedSize, ends), ends)
    } catch (error) {
      this.failure = { error }
    }
    this.#end(sheet)
    return true
  }

  /** By a task. Never rejects. */
  async print(): Promise<void> {
    const sheet = this.#open()
    try {
      await this.#print(sheet).catch((error: unknown) => this.#printOthers(sheet, error))
    } catch (error) {
      this.failure = { error }
    }
    this.#end(sheet)
  }

  /** Where the JSON of an item begins. */
  startOf(index: number): number {
    return index === 0 ? 0 : this.endOf(index - 1) + 1
  }

  /** Where it ends: before the comma behind it. */
  endOf(index: number): number {
    return this.#ends[index] ?? 0
  }

  /** So many more of its items are sent or dropped. */
  settle(items: number): void {
    this.#left -= items
    if (0 < this.#left) return
    this.native.release()
    this.#hold(0)
  }

  async #print(sheet: Sheet): Promise<void> {
    const { lexicon, layout } = sheet
    const ends = endsOf(sheet)
    const parts = sheet.finish()
    this.#keep(await run(() => printPage(this.native, parts, lexicon, layout, sheet.expectedSize, ends)), ends)
  }

  /** Without the last one: a page is closed when it has become large, so that is the one that may be. */
  async #printOthers(sheet: Sheet, error: unknown): Promise<void> {
    if (!isTooLarge(error) || sheet.length < 2 || !sheet.undo()) throw error
    this.lost = { error }
    await this.#print(sheet)
  }

  #open(): Sheet {
    if (this.#sheet === undefined) throw new Error('the page is printed')
    return this.#sheet
  }

  #keep(size: number | Failure, ends: Bytes): void {
    this.#hold(unwrap(size))
    this.#ends = new Doubles(bufferOf(ends))
  }

  #end(sheet: Sheet): void {
    this.#length = sheet.length
    this.#left = sheet.length + (this.lost === undefined ? 0 : 1)
    this.#sheet = undefined
    this.isPrinted = true
    if (this.#left === 0) this.settle(0)
    sheet.release()
    releaseWhenIdle()
  }

  #hold(bytes: number): void {
    this.#ledger.bytes += bytes - this.#held
    this.#held = bytes
  }
}

function endsOf({ length }: Sheet): Bytes {
  return allocate(length * Doubles.BYTES_PER_ELEMENT)
}
