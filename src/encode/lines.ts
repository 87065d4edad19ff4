/** Captures the rows of one `encodeLines` call, and reports bad ones. Runs on the JS thread; `encoder.ts` calls it. */

import type { CaptureContext } from '../capture/context.ts'
import type { OnBadRow } from './config.ts'
import { captureRow, type RowTransfer } from './row-buffer.ts'

export class Lines {
  readonly #tape: CaptureContext
  readonly #onBad: OnBadRow | undefined
  readonly #transfer: RowTransfer | undefined
  #index = 0

  constructor(tape: CaptureContext, onBad: OnBadRow | undefined, transfer: RowTransfer | undefined) {
    this.#tape = tape
    this.#onBad = onBad
    this.#transfer = transfer
  }

  add(row: unknown): undefined {
    const tape = this.#tape
    const index = this.#index
    this.#index += 1
    const mark = this.#onBad === undefined ? undefined : tape.mark()
    try {
      captureRow(tape, row, index)
      this.#transfer?.add(tape)
    } catch (error) {
      if (this.#onBad === undefined || mark === undefined) throw error
      tape.goBack(mark)
      this.#onBad(error, index)
    }
  }
}
