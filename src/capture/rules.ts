/** What options say about values, beyond what JSON.stringify does without any. */

/** Who is asked about a value, as JSON.stringify asks its replacer. */
export type Replace = (this: unknown, key: string, value: unknown) => unknown

export interface Rules {
  readonly replace: Replace | undefined
  /** The list of keys that a replacer may be. */
  readonly keys: readonly string[] | undefined
  readonly typedArrays: 'object' | 'array' | 'base64'
  readonly bigint: 'throw' | 'number' | 'string'
  /** NaN and infinities throw. */
  readonly isFinite: boolean
  /** What is written in the place of an ancestor that is met again. */
  readonly circular: string | undefined
  /** Asked about what has no JSON of its own. */
  readonly ask: ((value: unknown) => unknown) | undefined
  /** What a tape is to become. */
  readonly target: Target
}

export type Target =
  | 'json'
  | 'msgpack'
  /** Both; these are the rules of what is different in them. */
  | { readonly json: Rules; readonly msgpack: Rules }

/** Those of JSON.stringify. */
export const NO_RULES: Rules = {
  replace: undefined,
  keys: undefined,
  typedArrays: 'object',
  bigint: 'throw',
  isFinite: false,
  circular: undefined,
  ask: undefined,
  target: 'json',
}

/** Those of `encodeMsgpack`. */
export const MSGPACK_RULES: Rules = { ...NO_RULES, target: 'msgpack' }

/** The same for values of which JSON and MessagePack may be made. */
export function forBoth(rules: Rules): Rules {
  return { ...rules, target: { json: rules, msgpack: { ...rules, target: 'msgpack' } } }
}

/** Every value must be looked at one by one, as exact.ts does. */
export function concernsAll({ replace, keys, isFinite, ask }: Rules): boolean {
  return replace !== undefined || keys !== undefined || isFinite || ask !== undefined
}

/** They are those of JSON.stringify. */
export function isEngines(rules: Rules): boolean {
  const { typedArrays, bigint, circular } = rules
  return !concernsAll(rules) && typedArrays === 'object' && bigint === 'throw' && circular === undefined
}
