/**
 * The stack of the spec walk: objects, arrays and Maps that are open, and parts that JSON and MessagePack write
 * differently. It needs none of the engine's stack. Runs on the JS thread; `spec-walk.ts` extends it.
 */

import { eachOf, isArray, keysOf, toNumber, toText, truncate } from '../runtime/intrinsics.ts'
import type { CaptureContext } from './context.ts'
import { DEEP_FROM, DeepPath, enter } from './open-path.ts'
import {
  CLOSE_ARRAY,
  CLOSE_MAP,
  CLOSE_OBJECT,
  IN_BOTH,
  NULL,
  ONLY_JSON,
  ONLY_MSGPACK,
  OPEN_ARRAY,
  OPEN_MAP,
  OPEN_OBJECT,
} from './opcodes.ts'
import type { PathEdge } from './path-node.ts'
import { isObject } from './plain.ts'
import { hasJson, SpecValues } from './spec-values.ts'

/**
 * A value under capture: an array, an object with the keys it had when it was reached, or something that `turn` steps
 * through.
 */
interface OpenValue {
  readonly value: object
  readonly keys: readonly string[] | undefined
  readonly length: number
  /** Word at its end; 0 if it has none. */
  readonly close: number
  readonly turn: ((frame: OpenValue) => void) | undefined
  at: number
  /** The enclosing value; undefined at the root. */
  readonly outer: OpenValue | undefined
}

export abstract class SpecFrames extends SpecValues {
  /** Edge of values whose key is written, or that have none. */
  readonly bare: PathEdge
  #frame: OpenValue | undefined
  /** Ancestors, once the walk was deep. */
  #deep: DeepPath | undefined

  constructor(context: CaptureContext) {
    super(context)
    this.bare = context.vocabulary.unknown.node.element
  }

  /** Writes a prepared value. Returns false, with nothing written, for a value without JSON. */
  abstract write(name: string | number, value: unknown, edge: PathEdge): boolean

  /** Does SerializeJSONProperty. What the value opens is left to `run`. */
  start(holder: object, name: string | number, given: unknown, edge: PathEdge): boolean {
    return this.write(name, this.prepare(holder, name, given), edge)
  }

  /** Captures everything that is open, to its end. */
  run(): true {
    const { context } = this
    for (let frame = this.#frame; frame !== undefined; frame = this.#frame) {
      if (frame.at === frame.length) {
        if (frame.close !== 0) {
          context.literal(frame.close)
          this.#leave(frame.value)
        }
        this.#frame = frame.outer
        continue
      }
      const { keys, at, turn } = frame
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an object under capture has string keys
      const value = frame.value as Record<string, unknown>
      frame.at += 1
      if (turn !== undefined) {
        turn(frame)
        continue
      }
      if (keys === undefined) {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an array index is a property key
        if (!this.start(value, at, value[at as unknown as string], this.bare)) context.literal(NULL)
        continue
      }
      const key = keys[at] ?? ''
      this.start(value, key, value[key], context.vocabulary.unknown)
    }
    return true
  }

  /** Opens an array, or an object with its keys. */
  open(name: string | number, value: object): void {
    const { context } = this
    if (!this.#enter(name, value)) return
    if (isArray(value)) {
      const length = lengthOfArray(value)
      context.literal(OPEN_ARRAY)
      this.#frame = {
        value,
        keys: undefined,
        length,
        close: CLOSE_ARRAY,
        turn: undefined,
        at: 0,
        outer: this.#frame,
      }
      return
    }
    const keys = this.rules.keys ?? keysOf(value)
    context.literal(OPEN_OBJECT)
    const { length } = keys
    this.#frame = { value, keys, length, close: CLOSE_OBJECT, turn: undefined, at: 0, outer: this.#frame }
  }

  /** Opens a Map, whose keys are values too: MessagePack writes both. */
  openMap(name: string | number, value: ReadonlyMap<unknown, unknown>): void {
    if (!this.#enter(name, value)) return
    this.context.literal(OPEN_MAP)
    const entries: unknown[] = []
    eachOf(value, (item, key) => {
      entries[entries.length] = key
      entries[entries.length] = item
    })
    const { length } = entries
    let item: unknown
    const turn = (frame: OpenValue): void => {
      const index = frame.at - 1
      const key = entries[index - (index % 2)]
      const step = nameOf(key, index)
      if (index % 2 === 1) {
        this.write(step, item, this.bare)
        return
      }
      item = this.prepare(value, step, entries[index + 1])
      const prepared = this.prepare(value, '', key)
      if (hasJson(item) && hasJson(prepared)) this.write(step, prepared, this.bare)
      else frame.at += 1
    }
    this.#frame = { value, keys: undefined, length, close: CLOSE_MAP, turn, at: 0, outer: this.#frame }
  }

  /** Writes a part that differs: `json` writes it for JSON alone, `msgpack` for MessagePack alone. */
  writeEither(json: () => void, msgpack: () => void): void {
    const { context } = this
    const { rules } = context
    const { target } = rules
    if (typeof target !== 'object') return
    const turn = ({ at }: OpenValue): void => {
      context.rules = at === 1 ? target.msgpack : rules
      context.isPart = at === 1
      context.literal(at === 1 ? ONLY_MSGPACK : IN_BOTH)
      if (at === 1) msgpack()
    }
    this.#frame = { value: rules, keys: undefined, length: 2, close: 0, turn, at: 0, outer: this.#frame }
    context.rules = target.json
    context.isPart = true
    context.literal(ONLY_JSON)
    json()
  }

  /** Puts a container on the path as `enter` does. */
  #enter(name: string | number, value: object): boolean {
    const { context } = this
    if (this.#deep === undefined && context.depth < DEEP_FROM) return enter(context, name, value)
    // From here on it must know every container, those of less depth too.
    this.#deep ??= new DeepPath(context)
    return this.#deep.enter(name, value)
  }

  #leave(value: object): void {
    this.#deep?.leave(value)
    this.context.depth -= 1
  }
}

/** Returns the name that a path gives to the value at a key of a Map. */
function nameOf(key: unknown, index: number): string | number {
  if (typeof key === 'string') return key
  return isObject(key) || typeof key === 'symbol' ? index : toText(key)
}

/** Does ToLength of a length that a proxy may give. */
function lengthOfArray(value: readonly unknown[]): number {
  const length = truncate(toNumber(value.length))
  // NaN is excluded too.
  if (!(0 < length)) return 0
  // V8 throws this error.
  if (MOST_ELEMENTS < length) throw new RangeError('Maximum call stack size exceeded')
  return length
}

const MOST_ELEMENTS = 2 ** 32 - 1
