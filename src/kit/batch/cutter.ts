/** Cuts printed pages into batches by the sizes of their items. Runs on the JS thread; the batcher calls it. */

import { isTooLarge, OffloopError } from '../../runtime/errors.ts'
import { Batch, type Envelope } from './batch.ts'
import type { Ledger } from './ledger.ts'
import type { Page } from './page.ts'

/** Bounds of batches and items. */
export interface CutterConfig {
  readonly maxBatchBytes: number
  readonly maxItemBytes: number
  readonly maxBatchItems: number
}

export class Cutter {
  readonly #config: CutterConfig
  readonly #envelope: Envelope
  readonly #ledger: Ledger
  readonly #push: (batch: Batch) => void
  /** The batch that has room for more items. */
  #batch: Batch | undefined

  constructor(config: CutterConfig, envelope: Envelope, ledger: Ledger, push: (batch: Batch) => void) {
    this.#config = config
    this.#envelope = envelope
    this.#ledger = ledger
    this.#push = push
  }

  take(page: Page): void {
    if (page.failure === undefined) for (let index = 0; index < page.length; index += 1) this.#takeItem(page, index)
    else if (0 < page.length) this.#drop(page, page.length, page.failure.error)
    if (page.overflow !== undefined) this.#drop(page, 1, page.overflow.error)
    if (page.isDue) this.end()
  }

  /** Sends the open batch without waiting for more items. */
  end(): void {
    const batch = this.#batch
    this.#batch = undefined
    if (batch !== undefined) this.#push(batch)
  }

  #takeItem(page: Page, index: number): void {
    const { maxBatchBytes, maxItemBytes, maxBatchItems } = this.#config
    const size = page.endOf(index) - page.startOf(index)
    if (maxItemBytes < size) {
      const message = `an item of ${size} bytes is larger than maxItemBytes, ${maxItemBytes}`
      this.#drop(page, 1, new OffloopError('ERR_OFFLOOP_TOO_LARGE', message))
      return
    }
    if (this.#batch !== undefined && maxBatchBytes < this.#batch.sizeWith(size)) this.end()
    const batch = (this.#batch ??= new Batch(this.#envelope))
    batch.add(page, index)
    if (batch.items === maxBatchItems || maxBatchBytes <= batch.size) this.end()
  }

  #drop(page: Page, items: number, error: unknown): void {
    this.#ledger.report({ reason: isTooLarge(error) ? 'too-large' : 'unencodable', items, error })
    this.#ledger.settle('dropped', items, page.number)
    page.settle(items)
  }
}
