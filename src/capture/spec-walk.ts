/**
 * Captures values by JSON.stringify's own algorithm, step by step (ECMA-262, SerializeJSONProperty and what it calls),
 * on the JS thread. It takes no shortcuts, and has a stack of its own instead of the engine's. `root.ts` and
 * `fast-walk.ts` call it for values that are not plain, are deep, or are under a replacer.
 */

import { isMap, isRawJson, isTypedArray, toText, type TypedArray } from '../runtime/intrinsics.ts'
import type { CaptureContext } from './context.ts'
import { textWithin } from './engine.ts'
import { writeKey, writePrimitive } from './keys.ts'
import { refuse } from './open-path.ts'
import type { PathEdge } from './path-node.ts'
import { unsupported } from './pointer.ts'
import { rawJsonBytesOf } from './raw-json.ts'
import { SpecFrames } from './spec-frames.ts'
import { hasJson, type TwofoldValue } from './spec-values.ts'
import { checkBigints, hasBigints, writeTypedArray } from './typed-array.ts'

/** Captures the value at `key` of `holder`. Returns false if JSON.stringify would leave it out. */
export function captureProperty(context: CaptureContext, holder: object, key: string, value: unknown): boolean {
  const walk = new SpecWalk(context)
  return walk.start(holder, key, value, walk.bare) && walk.run()
}

/** Captures a value whose `toJSON` was read: it is in `context.toJSON`. */
export function captureExactly(
  context: CaptureContext,
  name: string | number,
  value: unknown,
  edge: PathEdge,
): boolean {
  const walk = new SpecWalk(context)
  return walk.write(name, walk.prepareRead(name, value, context.takeToJson()), edge) && walk.run()
}

/** Captures an object or array that no user code replaces any more. */
export function captureContainer(context: CaptureContext, name: string | number, value: object): void {
  const walk = new SpecWalk(context)
  walk.open(name, value)
  walk.run()
}

class SpecWalk extends SpecFrames {
  // Without it, the engine would iterate over the arguments, with an iterator that may be replaced.
  // oxlint-disable-next-line eslint/no-useless-constructor -- see above
  constructor(context: CaptureContext) {
    super(context)
  }

  override write(name: string | number, value: unknown, edge: PathEdge): boolean {
    const twofold = this.takeTwofold()
    if (twofold !== undefined && twofold.json === value && hasJson(value)) {
      this.#writeTwofold(name, twofold, edge)
      return true
    }
    switch (typeof value) {
      case 'number':
        // NaN or an infinity.
        if (this.rules.isFinite && value - value !== 0) throw unsupported(this.context, name, value)
        writePrimitive(this.context, name, value, edge)
        return true
      case 'string':
      case 'boolean':
        writePrimitive(this.context, name, value, edge)
        return true
      case 'bigint':
        this.#writeBigint(name, value, edge)
        return true
      case 'object':
        if (value === null) {
          writePrimitive(this.context, name, value, edge)
          return true
        }
        writeKey(this.context, edge, name)
        this.#writeObject(name, value)
        return true
      default:
        return false
    }
  }

  #writeTwofold(name: string | number, { bytes, json }: TwofoldValue, edge: PathEdge): void {
    writeKey(this.context, edge, name)
    this.writeEither(
      () => this.write(name, json, this.bare),
      () => writeTypedArray(this.context, name, bytes),
    )
  }

  #writeBigint(name: string | number, value: bigint, edge: PathEdge): void {
    const { context } = this
    const { bigint, target } = this.rules
    checkBigints(context)
    const digits = toText(value)
    const print = (): void => context.json(digits, 0, digits.length)
    writeKey(context, edge, name)
    context.room()
    if (target === 'msgpack') {
      if (isOf64Bits(value)) print()
      else refuse(context, unsupported(context, name, value))
    } else if (target === 'json' || (bigint !== 'string' && isOf64Bits(value))) {
      if (bigint === 'string') context.string(digits)
      else print()
    } else {
      const again = (): void => this.#writeBigint(name, value, this.bare)
      this.writeEither(again, again)
    }
  }

  #writeObject(name: string | number, value: object): void {
    const fragment = rawJsonBytesOf(value)
    if (fragment !== undefined) this.context.raw(fragment)
    else if (isRawJson(value)) this.context.json(value.rawJSON, 0, value.rawJSON.length)
    else if (isTypedArray(value)) this.#writeElements(name, value)
    else if (this.rules.target === 'json' || !isMap(value)) this.open(name, value)
    else this.#writeMap(name, value)
  }

  #writeMap(name: string | number, value: ReadonlyMap<unknown, unknown>): void {
    if (this.rules.target === 'msgpack') this.openMap(name, value)
    else {
      this.writeEither(
        () => this.open(name, value),
        () => this.openMap(name, value),
      )
    }
  }

  /** Writes a typed array, in the form of the rules. */
  #writeElements(name: string | number, value: TypedArray): void {
    const { context } = this
    const { typedArrays, target } = this.rules
    const writeBytes = (): void => writeTypedArray(context, name, value)
    const writeKeys = (): void => {
      // It has as many keys as elements; nothing lists them faster than the engine.
      const text = context.isPart && hasBigints(value) ? undefined : textWithin(context, value)
      if (typeof text === 'string') context.json(text, 0, text.length)
      else this.open(name, text?.value ?? value)
    }
    if (typedArrays !== 'object' || target === 'msgpack') writeBytes()
    else if (target === 'json') writeKeys()
    else this.writeEither(writeKeys, writeBytes)
  }
}

function isOf64Bits(value: bigint): boolean {
  return LEAST_INT64 <= value && value <= MOST_UINT64
}

const LEAST_INT64 = -(2n ** 63n)
const MOST_UINT64 = 2n ** 64n - 1n
