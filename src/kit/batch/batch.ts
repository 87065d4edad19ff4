/** Batch of items that are sent together: slices of pages, joined to a new body for each attempt. Runs on the JS thread and in tasks. */

import { allocate, allocateNow, utf8Of, type Bytes } from '../../runtime/bytes.ts'
import { OffloopError } from '../../runtime/errors.ts'
import { lengthOf, setBytes } from '../../runtime/intrinsics.ts'
import { joinPieces, joinPiecesSync, Pieces, unwrap } from '../../runtime/native.ts'
import { run } from '../../runtime/pool.ts'
import type { Queued } from '../../runtime/queue.ts'
import type { Page } from './page.ts'

/** Bodies below this size are joined on the JS thread: that costs less there than a task. */
const AT_ONCE = 64 * 1024

/** Bytes around the items. */
export interface Envelope {
  readonly open: Bytes
  readonly close: Bytes
}

export function envelopeOf(open: string, close: string): Envelope {
  return { open: utf8Of(open, allocate), close: utf8Of(close, allocate) }
}

/** Slice of a page: neighbouring items. */
interface Piece {
  readonly page: Page
  readonly start: number
  end: number
  items: number
}

export class Batch implements Queued<Batch> {
  before: Batch | undefined
  after: Batch | undefined
  items = 0
  /** Bytes of the body. */
  size: number
  readonly pieces: Piece[] = []
  readonly #envelope: Envelope

  constructor(envelope: Envelope) {
    this.#envelope = envelope
    this.size = lengthOf(envelope.open) + lengthOf(envelope.close)
  }

  /** Returns the bytes of the body with one more item of `size` bytes. */
  sizeWith(size: number): number {
    return this.size + size + (this.items === 0 ? 0 : 1)
  }

  add(page: Page, index: number): void {
    const start = page.startOf(index)
    const end = page.endOf(index)
    this.size = this.sizeWith(end - start)
    this.items += 1
    const last = this.pieces.at(-1)
    if (last?.page !== page || last.end + 1 !== start) {
      this.pieces.push({ page, start, end, items: 1 })
      return
    }
    last.end = end
    last.items += 1
  }

  /** Makes a body in memory of its own: `send` may still use the body of an earlier attempt. */
  async body(): Promise<Bytes> {
    const { open, close } = this.#envelope
    const { size } = this
    const pieces = new Pieces()
    for (const { page, start, end } of this.pieces) pieces.add(page.native, start, end)
    const isSmall = size < AT_ONCE
    const out = isSmall ? allocateNow(size) : allocate(size)
    setBytes(out, open, 0)
    setBytes(out, close, size - lengthOf(close))
    const offset = lengthOf(open)
    const joined = isSmall ? joinPiecesSync(pieces, out, offset) : await run(() => joinPieces(pieces, out, offset))
    // A gap would show earlier contents of the memory.
    if (offset + unwrap(joined) + lengthOf(close) !== size)
      throw new OffloopError('ERR_OFFLOOP_INTERNAL', 'a body has gaps')
    return out
  }
}
