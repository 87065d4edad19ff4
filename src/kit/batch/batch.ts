/** Items that are sent together: parts of pages, joined anew for each attempt. */

import { allocate, allocateNow, utf8Of, type Bytes } from '../../bytes.ts'
import { OffloopError } from '../../errors.ts'
import { lengthOf, setBytes } from '../../intrinsics.ts'
import { joinPieces, joinPiecesSync, Pieces, unwrap } from '../../native.ts'
import { run } from '../../pool.ts'
import type { Queued } from '../../queue.ts'
import type { Page } from './page.ts'

/** Copying so much takes less of the thread than a task does. */
const AT_ONCE = 64 * 1024

/** The bytes around the items. */
export interface Envelope {
  readonly open: Bytes
  readonly close: Bytes
}

export function envelopeOf(open: string, close: string): Envelope {
  return { open: utf8Of(open, allocate), close: utf8Of(close, allocate) }
}

/** Neighbours on a page. */
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
  /** Of its body. */
  size: number
  readonly pieces: Piece[] = []
  readonly #envelope: Envelope

  constructor(envelope: Envelope) {
    this.#envelope = envelope
    this.size = lengthOf(envelope.open) + lengthOf(envelope.close)
  }

  /** How large its body would be with an item of `size` bytes more. */
  sizeWith(size: number): number {
    return this.size + size + (this.items === 0 ? 0 : 1)
  }

  add(page: Page, index: number): void {
    const start = page.startOf(index)
    const end = page.endOf(index)
    this.size = this.sizeWith(end - start)
    this.items += 1
    const last = this.pieces.at(-1)
    if (last?.page === page && last.end + 1 === start) {
      last.end = end
      last.items += 1
    } else this.pieces.push({ page, start, end, items: 1 })
  }

  /** Memory that nobody else has: whatever became of that of the attempt before. */
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
    // What was in that memory before is nobody's to see.
    if (offset + unwrap(joined) + lengthOf(close) !== size)
      throw new OffloopError('ERR_OFFLOOP_INTERNAL', 'a body has gaps')
    return out
  }
}
