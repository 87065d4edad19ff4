/**
 * Types of generated functions, and of what they share with the walks. `generate.ts` makes the functions, path nodes keep
 * them, the walks call them on the JS thread.
 */

import type { CaptureContext } from './context.ts'
import type { PathEdge } from './path-node.ts'

/** Captures elements from `index` to `end`. Returns `end`, or the index where it gave up. */
export type CaptureElements = (context: CaptureContext, value: readonly unknown[], index: number, end: number) => number

/**
 * Captures an object that is not a proxy and whose `toJSON` was read. Returns false, with nothing of it read, if it has
 * other keys.
 */
export type CaptureObject = (context: CaptureContext, value: object) => boolean

/** A generated function, for the elements of arrays or for objects. */
export type Learned = LearnedElements | LearnedObject

export interface LearnedElements {
  readonly isObject: false
  readonly capture: CaptureElements
  /** Most containers that it opens inside of each other. It does not check how deep they are. */
  readonly levels: number
}

export interface LearnedObject {
  readonly isObject: true
  readonly capture: CaptureObject
  readonly levels: number
}

/** Functions of the walk that take over where generated code does not know a value. */
export type Helpers = Readonly<
  Record<'captureAnswer' | 'captureNumbers' | 'captureOther' | 'captureRead' | 'captureRest', unknown>
>

/** Words that a generated function needs room for when it goes on. */
export interface RoomNeed {
  need: number
}

/** Position of a value that a generated function leaves to the walk. */
export interface Spot {
  readonly frame: Readonly<RoomNeed>
  readonly edge: PathEdge
  /** Name of the value; undefined where the caller passes an index. */
  readonly name: string | undefined
  /** Names of the enclosing containers; undefined where the caller passes an index. */
  readonly names: readonly (string | undefined)[]
}
