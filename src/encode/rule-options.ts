/** Reads the options that become capture rules, once a call, on the JS thread. `config.ts` and `index.ts` call it. */

import { arePlain, NO_RULES, type Replace, type CaptureRules } from '../capture/rules.ts'
import { invalidType } from '../runtime/errors.ts'
import { isArray, isNumberObject, isStringObject, newSet, toText } from '../runtime/intrinsics.ts'
import { choose, copyOptions, readInteger, tableOf } from '../runtime/options.ts'
import type { EncodeLinesOptions, Unchecked } from './options.ts'

const TYPED_ARRAYS = tableOf({ object: 'object', array: 'array', base64: 'base64' } as const)
const BIGINTS = tableOf({ throw: 'throw', number: 'number', string: 'string' } as const)
const NON_FINITE = tableOf({ null: false, throw: true })

/** Returns `NO_RULES` itself for the rules of plain JSON.stringify. */
export function readRules(options: Unchecked<EncodeLinesOptions>): CaptureRules {
  const { replacer, typedArrays, bigint, nonFinite, circular, default: ask, defaultFor, maxDepth } = options
  const rules: CaptureRules = {
    ...readReplacer(replacer),
    typedArrays: choose('options.typedArrays', typedArrays, TYPED_ARRAYS, NO_RULES.typedArrays),
    bigint: choose('options.bigint', bigint, BIGINTS, NO_RULES.bigint),
    isFinite: choose('options.nonFinite', nonFinite, NON_FINITE, NO_RULES.isFinite),
    circular: readCircular(circular),
    ...readAsk(ask, defaultFor),
    target: NO_RULES.target,
    maxDepth: readMaxDepth(maxDepth) ?? NO_RULES.maxDepth,
  }
  return arePlain(rules) ? NO_RULES : rules
}

/** Bound of `maxDepth`: a deeper path does not fit a heap of 512 MB. */
const DEEPEST = 1_000_000

export function readMaxDepth(maxDepth: unknown): number | undefined {
  return readInteger('options.maxDepth', maxDepth, 0, DEEPEST)
}

function readCircular(circular: unknown): string | undefined {
  if (circular === undefined || circular === 'throw') return undefined
  if (typeof circular !== 'object' || circular === null) {
    throw invalidType('options.circular', "'throw' or of type object", circular)
  }
  const { text }: { readonly text?: unknown } = copyOptions(circular, CIRCULAR_KEYS, 'options.circular')
  if (typeof text !== 'string') throw invalidType('options.circular.text', 'of type string', text)
  return text
}

const CIRCULAR_KEYS = tableOf({ text: true })

type AskRules = Pick<CaptureRules, 'ask' | 'asksUndefined' | 'asksTypedArrays'>

/** Kinds of `defaultFor`. */
const ASKED_KINDS = tableOf({ undefined: 'undefined', typedArray: 'typedArray' } as const)

function readAsk(ask: unknown, defaultFor: unknown): AskRules {
  const kinds = readAskedKinds(defaultFor)
  if (ask === undefined) return { ask: undefined, asksUndefined: false, asksTypedArrays: false }
  if (typeof ask !== 'function') throw invalidType('options.default', 'of type function', ask)
  return {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a function of the user is called with what the type says
    ask: ask as NonNullable<CaptureRules['ask']>,
    asksUndefined: kinds.has('undefined'),
    asksTypedArrays: kinds.has('typedArray'),
  }
}

function readAskedKinds(defaultFor: unknown): ReadonlySet<string> {
  const kinds = newSet<string>()
  if (defaultFor === undefined) return kinds
  if (!isArray(defaultFor)) throw invalidType('options.defaultFor', 'an Array', defaultFor)
  const { length } = defaultFor
  for (let index = 0; index < length; index += 1) {
    // `choose` takes undefined for an option that is not given.
    kinds.add(choose(`options.defaultFor[${index}]`, defaultFor[index] ?? null, ASKED_KINDS, ''))
  }
  return kinds
}

/** Reads a replacer as JSON.stringify does: it ignores values that are neither function nor array. */
function readReplacer(replacer: unknown): Pick<CaptureRules, 'replace' | 'keys'> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a function of the user is called with what the type says
  if (typeof replacer === 'function') return { replace: replacer as Replace, keys: undefined }
  if (!isArray(replacer)) return { replace: undefined, keys: undefined }
  const keys: string[] = []
  const seen = newSet<string>()
  const add = (key: string): void => {
    if (!seen.has(key)) keys[keys.length] = key
    seen.add(key)
  }
  const { length } = replacer
  for (let index = 0; index < length; index += 1) {
    const item = replacer[index]
    if (typeof item === 'string') add(item)
    else if (typeof item === 'number' || isNumberObject(item) || isStringObject(item)) add(toText(item))
  }
  return { replace: undefined, keys }
}
