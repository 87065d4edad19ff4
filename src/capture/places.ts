/**
 * Bytes that a tape takes from the caller when the capture has succeeded, with `transfer: true`. Each has a place among the
 * long strings of the tape until then. Runs on the JS thread.
 */

import { giveBack } from '../runtime/results.ts'
import { takeAll } from '../runtime/bytes.ts'
import { invalidValue } from '../runtime/errors.ts'
import { addTo, bufferFrom, bufferOf, eachOf, lengthOf, newMap } from '../runtime/intrinsics.ts'
import { check, type TapeParts } from '../runtime/native.ts'

/** Bytes that are taken when the capture has succeeded. */
interface Place {
  readonly below: Place | undefined
  readonly parts: TapeParts
  /** Index among the long strings. */
  readonly index: number
  /** Memory of the view, which a detached view does not know any more. */
  readonly buffer: ArrayBufferLike
  readonly view: Uint8Array
  /** Length when it was captured. */
  readonly length: number
}

/** Memory that was taken from the caller, for all places of it. It goes back when the last tape lets go of it. */
class SharedMemory {
  readonly memory: ArrayBuffer
  #uses = 0

  constructor(memory: ArrayBuffer) {
    this.memory = memory
  }

  use(): this {
    this.#uses += 1
    return this
  }

  end(): void {
    this.#uses -= 1
    if (this.#uses === 0) giveBack(bufferFrom(this.memory))
  }
}

/** Shared memories of one tape. */
export interface TakenMemory {
  readonly below: TakenMemory | undefined
  readonly shared: SharedMemory
}

/** Gives memory back. No task reads it any more. */
export function giveBackAll(last: TakenMemory | undefined): void {
  for (let taken = last; taken !== undefined; taken = taken.below) taken.shared.end()
}

/** Takes the memory of each view; leaves out what cannot be taken. */
function takeEach(views: ReadonlyMap<ArrayBufferLike, Uint8Array>): ReadonlyMap<ArrayBufferLike, SharedMemory> {
  const list: Uint8Array[] = []
  eachOf(views, (view) => addTo(list, view))
  const memories = takeAll(list)
  const taken = newMap<ArrayBufferLike, SharedMemory>()
  let at = 0
  eachOf(views, (_view, buffer) => {
    const memory = memories[at++] ?? null
    if (memory !== null) taken.set(buffer, new SharedMemory(memory))
  })
  return taken
}

/** Places of one tape. */
export class Places {
  /** Bytes that are not taken yet, the last ones first. */
  #last: Place | undefined
  /** Memory that was taken. It goes back when no task reads it any more. */
  #taken: TakenMemory | undefined

  /** Makes a place for the long string at `index`. */
  add(parts: TapeParts, index: number, view: Uint8Array): void {
    parts.addPlace()
    this.#last = { below: this.#last, parts, index, buffer: bufferOf(view), view, length: lengthOf(view) }
  }

  /** Forgets the places from the long string at `index` on. */
  cut(index: number): void {
    while (this.#last !== undefined && index <= this.#last.index) this.#last = this.#last.below
  }

  /** Returns whether one of the long strings from `first` to `end` is a place. */
  hasBetween(first: number, end: number): boolean {
    let place = this.#last
    while (place !== undefined && end <= place.index) place = place.below
    return place !== undefined && first <= place.index
  }

  /** Adds one view of each memory. */
  list(views: Map<ArrayBufferLike, Uint8Array>): void {
    for (let place = this.#last; place !== undefined; place = place.below) {
      const { view, length } = place
      if (lengthOf(view) !== length) throw invalidValue('the value', 'has bytes that its own code detached', view)
      views.set(place.buffer, view)
    }
  }

  /** Fills the places with memory that was taken, or with copies of bytes that could not be taken. */
  fill(taken: ReadonlyMap<ArrayBufferLike, SharedMemory>): void {
    for (let place = this.#last; place !== undefined; place = place.below) {
      const { parts, buffer, index, view, length } = place
      const shared = taken.get(buffer)
      if (shared === undefined) check(parts.copyBytes(index, view))
      else parts.takeBytes(index, bufferFrom(shared.memory, 0, length))
      if (shared !== undefined) this.#taken = { below: this.#taken, shared: shared.use() }
    }
    this.#last = undefined
  }

  /** Copies bytes that were not taken: the tape is printed while its call still captures. */
  copy(): void {
    for (let place = this.#last; place !== undefined; place = place.below) {
      check(place.parts.copyBytes(place.index, place.view))
    }
    this.#last = undefined
  }

  /** Hands the memory that was taken over to the caller. */
  moveTaken(): TakenMemory | undefined {
    const taken = this.#taken
    this.#taken = undefined
    return taken
  }

  /** Forgets all places, and gives the memory back. */
  clear(): void {
    this.#last = undefined
    giveBackAll(this.moveTaken())
  }
}

/**
 * Takes the bytes that have places on some tapes, or copies those that cannot be taken. Throws where code of a value has
 * detached some of them.
 */
export function takePlaces(tapes: readonly { readonly places: Places }[]): void {
  const views = newMap<ArrayBufferLike, Uint8Array>()
  // No iterator of arrays sees tapes: it may be replaced.
  for (let index = 0; index < tapes.length; index += 1) tapes[index]?.places.list(views)
  if (views.size === 0) return
  const taken = takeEach(views)
  for (let index = 0; index < tapes.length; index += 1) tapes[index]?.places.fill(taken)
}
