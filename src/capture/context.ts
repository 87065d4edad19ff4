/**
 * The state of one capture on the JS thread: the tape, and what the walks and generated functions need beside it.
 * Encoders keep idle ones.
 */

import { defineProperty } from '../runtime/intrinsics.ts'
import type { SmallOutput } from '../runtime/native.ts'
import { OPEN, type Way } from './path-node.ts'
import { NO_RULES, type CaptureRules } from './rules.ts'
import { ROOMS, type TapeRooms } from './segment.ts'
import type { TapeMark } from './streams.ts'
import { PrintableTape } from './printable-tape.ts'
import type { Vocabulary } from './vocabulary.ts'

/** Depth for which the path has elements of its own from the start. Setters on `Array.prototype` do not see them. */
const SHALLOW = 128

/** Makes a list whose elements are its own properties. */
function blank<T>(element: T): T[] {
  const list: T[] = []
  for (let index = 0; index < SHALLOW; index += 1) {
    defineProperty(list, index, { value: element, writable: true, enumerable: true, configurable: true })
  }
  return list
}

/** Options of a call that its capture obeys. */
interface CallRules {
  readonly rules: CaptureRules
  readonly transfer: boolean
  readonly maxBytes: number
}

export class CaptureContext extends PrintableTape {
  readonly vocabulary: Vocabulary
  /** Rules of the present call. */
  rules: CaptureRules = NO_RULES
  /** Next context on the stack of an encoder's idle ones. */
  below: CaptureContext | undefined

  /** Whether the present part is for JSON alone, or for MessagePack alone. */
  isPart = false
  /** Errors that are kept until JSON, or MessagePack, is asked for. */
  jsonError: unknown
  msgpackError: unknown

  /** Containers under capture, outermost first, and the key or index of each in the one before. */
  readonly path: unknown[] = blank(undefined)
  readonly names: (string | number)[] = blank('')
  depth = 0

  // Arguments and results of the functions of a walk, beside the few that they pass. Each is taken at once.
  /** The `toJSON` of the next value, which was read. */
  toJSON: unknown
  /** Way of the next part. */
  way: Way = OPEN
  /** Whether a generated function gave up before the end of its value. */
  hasGivenUp = false
  /** Index at which the next loop over elements begins. */
  at = 0
  /** Element at which a loop stopped. */
  stopped: unknown
  /** Elements that a generated function could not capture itself. */
  missed = 0

  constructor(vocabulary: Vocabulary, slab: SmallOutput, rooms: TapeRooms = ROOMS) {
    super(vocabulary.lexicon, slab, rooms)
    this.vocabulary = vocabulary
  }

  /** Begins a call with these options. */
  begin({ rules, transfer, maxBytes }: CallRules): void {
    this.rules = rules
    this.transfer = transfer
    this.maxBytes = maxBytes
  }

  takeToJson(): unknown {
    const { toJSON } = this
    this.toJSON = undefined
    return toJSON
  }

  takeStopped(): unknown {
    const { stopped } = this
    this.stopped = undefined
    return stopped
  }

  /** Forgets everything written since the mark. */
  override goBack(mark: TapeMark): void {
    super.goBack(mark)
    this.leaveAll()
  }

  /** Drops the references to the containers. */
  leaveAll(): void {
    const { path } = this
    this.depth = 0
    for (let index = 0; index < path.length && path[index] !== undefined; index += 1) path[index] = undefined
    if (SHALLOW < path.length) path.length = SHALLOW
  }

  /** Makes the tape empty, and forgets the call. */
  override reset(): void {
    super.reset()
    this.way = OPEN
    this.toJSON = undefined
    this.stopped = undefined
    this.isPart = false
    this.jsonError = undefined
    this.msgpackError = undefined
    if (this.path[0] !== undefined) this.leaveAll()
  }
}
