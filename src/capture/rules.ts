/**
 * CaptureRules of a capture: the encoding options beyond those of plain JSON.stringify. Both walks read them on the JS thread.
 */

/** A replacer, called as JSON.stringify calls it. */
export type Replace = (this: unknown, key: string, value: unknown) => unknown

export interface CaptureRules {
  readonly replace: Replace | undefined
  /** Keys to keep, where the replacer is a list. */
  readonly keys: readonly string[] | undefined
  readonly typedArrays: 'object' | 'array' | 'base64'
  readonly bigint: 'throw' | 'number' | 'string'
  /** Whether NaN and infinities throw. */
  readonly isFinite: boolean
  /** Text that replaces an ancestor that is found again. */
  readonly circular: string | undefined
  /** The option `default`. */
  readonly ask: ((value: unknown) => unknown) | undefined
  /** Whether `ask` is also called for undefined. False without `ask`. */
  readonly asksUndefined: boolean
  /** Whether `ask` is also called for typed arrays and Buffers. False without `ask`. */
  readonly asksTypedArrays: boolean
  /** Formats that the tape will become. */
  readonly target: Target
  /** Most levels of nesting. */
  readonly maxDepth: number
}

export type Target =
  | 'json'
  | 'msgpack'
  /** Both formats, with the rules for the parts that differ. */
  | { readonly json: CaptureRules; readonly msgpack: CaptureRules }

/** CaptureRules of plain JSON.stringify. */
export const NO_RULES: CaptureRules = {
  replace: undefined,
  keys: undefined,
  typedArrays: 'object',
  bigint: 'throw',
  isFinite: false,
  circular: undefined,
  ask: undefined,
  asksUndefined: false,
  asksTypedArrays: false,
  target: 'json',
  maxDepth: 100_000,
}

/** CaptureRules of `encodeMsgpack`. */
export const MSGPACK_RULES: CaptureRules = { ...NO_RULES, target: 'msgpack' }

/** Makes rules for a tape that may become JSON and MessagePack. */
export function forBoth(rules: CaptureRules): CaptureRules {
  return { ...rules, target: { json: rules, msgpack: { ...rules, target: 'msgpack' } } }
}

/** Whether every value must be looked at one by one, as `spec-walk.ts` does. */
export function concernsAll({ replace, keys, isFinite, ask }: CaptureRules): boolean {
  return replace !== undefined || keys !== undefined || isFinite || ask !== undefined
}

/** Whether the rules are those of plain JSON.stringify. */
export function arePlain(rules: CaptureRules): boolean {
  const { typedArrays, bigint, circular, maxDepth } = rules
  if (maxDepth !== NO_RULES.maxDepth) return false
  return !concernsAll(rules) && typedArrays === 'object' && bigint === 'throw' && circular === undefined
}
