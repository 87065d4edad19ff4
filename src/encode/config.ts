/**
 * The configuration that the options of a call come to. Read once a call, on the JS thread; `index.ts`, snapshots, logs,
 * batchers and saves call it.
 */

import { MSGPACK_RULES, NO_RULES, type CaptureRules } from '../capture/rules.ts'
import { invalidType } from '../runtime/errors.ts'
import {
  isNumberObject,
  isStringObject,
  leastOf,
  repeatString,
  sliceString,
  stringifyJson,
  toNumber,
  toText,
  truncate,
} from '../runtime/intrinsics.ts'
import { Layout } from '../runtime/native.ts'
import { choose, readBoolean, readLimit, tableOf } from '../runtime/options.ts'
import type { EncodeLinesOptions, EncodeOptions, MsgpackOptions, Unchecked } from './options.ts'
import { readMaxDepth, readRules } from './rule-options.ts'

/** How a tape is printed. */
export interface PrintOptions {
  /** Bits of `Layout`. */
  readonly layout: number
  /** White space of one level; undefined for none at all. */
  readonly gap: string | undefined
  /** Most bytes of the result. */
  readonly maxBytes: number
  /** Levels of nesting that MessagePack may have, if fewer than the capture allowed. */
  readonly maxDepth?: number | undefined
}

/** Resolved encoding options: how to capture a value, and how to print it. */
export interface EncodeConfig extends PrintOptions {
  readonly rules: CaptureRules
  /** Whether the result ends with one "\n". */
  readonly newline: boolean
  /** Whether typed arrays and Buffers of 64 KiB or more are taken. */
  readonly transfer: boolean
}

export const DEFAULT_CONFIG: EncodeConfig = {
  rules: NO_RULES,
  layout: 0,
  gap: undefined,
  newline: false,
  transfer: false,
  maxBytes: Infinity,
}

export type OnBadRow = (error: unknown, index: number) => void

export function readEncodeConfig(options: Unchecked<EncodeOptions>): EncodeConfig {
  const { space, newline } = options
  const hasNewline = readBoolean('options.newline', newline, false)
  return { ...readRowConfig(options), gap: readSpace(space), newline: hasNewline }
}

/** Reads the options that rows have. */
export function readRowConfig(options: Unchecked<EncodeLinesOptions>): EncodeConfig {
  const sortKeys = readBoolean('options.sortKeys', options.sortKeys, false)
  const transfer = readTransfer(options.transfer)
  const layout = sortKeys ? Layout.SortedKeys : 0
  return { ...DEFAULT_CONFIG, rules: readRules(options), layout, transfer, maxBytes: readMaxBytes(options.maxBytes) }
}

export function readMaxBytes(maxBytes: unknown): number {
  return readLimit('options.maxBytes', maxBytes, 0)
}

export function readTransfer(transfer: unknown): boolean {
  return readBoolean('options.transfer', transfer, false)
}

const MOST_SPACE = 10
/** Whether V8 breaks lines, without indentation, for a space between 0 and 1. */
const HAS_EMPTY_GAP = stringifyJson([0], undefined, 0.5) !== '[0]'

/** Reads `space` as JSON.stringify does. */
export function readSpace(given: unknown): string | undefined {
  let space = given
  if (isNumberObject(space)) space = toNumber(space)
  else if (isStringObject(space)) space = toText(space)
  if (typeof space === 'string') return space === '' ? undefined : sliceString(space, 0, MOST_SPACE)
  if (typeof space !== 'number') return undefined
  const count = leastOf(MOST_SPACE, truncate(space))
  if (1 <= count) return repeatString(' ', count)
  return 0 < space && HAS_EMPTY_GAP ? '' : undefined
}

export function readOnBadRow(onBadRow: unknown): OnBadRow | undefined {
  if (onBadRow === undefined || onBadRow === 'throw') return undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a function of the user is called with what the type says
  if (typeof onBadRow === 'function') return onBadRow as OnBadRow
  throw invalidType('options.onBadRow', "'throw' or of type function", onBadRow)
}

const FLOATS = tableOf({ float64: 0, float32: Layout.Singles })

/** Configuration of MessagePack without options. */
export const MSGPACK_CONFIG: EncodeConfig = { ...DEFAULT_CONFIG, rules: MSGPACK_RULES, layout: Layout.Msgpack }

export function readMsgpackOptions({ floats, maxBytes, maxDepth }: Unchecked<MsgpackOptions>): PrintOptions {
  const layout = Layout.Msgpack | choose('options.floats', floats, FLOATS, 0)
  return { layout, gap: undefined, maxBytes: readMaxBytes(maxBytes), maxDepth: readMaxDepth(maxDepth) }
}

/** Here the capture keeps to `maxDepth`, and can name the place of a value that is too deep. The printer need not. */
export function readMsgpackConfig(options: Unchecked<MsgpackOptions>): EncodeConfig {
  const { layout, maxBytes, maxDepth = MSGPACK_RULES.maxDepth } = readMsgpackOptions(options)
  const transfer = readTransfer(options.transfer)
  return { ...DEFAULT_CONFIG, layout, rules: { ...MSGPACK_RULES, maxDepth }, transfer, maxBytes }
}
