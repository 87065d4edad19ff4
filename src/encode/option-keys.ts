/** Names of the options that each function takes. Every public function checks its options against one, on the JS thread. */

import { tableOf } from '../runtime/options.ts'

const CAPTURE = {
  replacer: true,
  typedArrays: true,
  bigint: true,
  nonFinite: true,
  circular: true,
  default: true,
  defaultFor: true,
  maxDepth: true,
}
const RULE_KEYS = { ...CAPTURE, sortKeys: true }
const BOUNDED_KEYS = { ...RULE_KEYS, maxBytes: true }
const ENCODER = { ...BOUNDED_KEYS, space: true, newline: true }
export const ENCODER_KEYS: Readonly<Record<string, unknown>> = tableOf(ENCODER)
export const SYNC_KEYS: Readonly<Record<string, unknown>> = tableOf({ ...ENCODER, transfer: true })
export const ENCODE_KEYS: Readonly<Record<string, unknown>> = tableOf({ ...ENCODER, transfer: true, signal: true })
export const ROW_KEYS: Readonly<Record<string, unknown>> = tableOf(RULE_KEYS)
export const SAVED_ROW_KEYS: Readonly<Record<string, unknown>> = tableOf(BOUNDED_KEYS)
export const LINES_KEYS: Readonly<Record<string, unknown>> = tableOf({
  ...BOUNDED_KEYS,
  onBadRow: true,
  transfer: true,
  signal: true,
})
export const SIGNAL_KEYS: Readonly<Record<string, unknown>> = tableOf({ signal: true })
/** Options of calls that may take bytes. */
export const BYTES_KEYS: Readonly<Record<string, unknown>> = tableOf({ transfer: true })
export const CALL_KEYS: Readonly<Record<string, unknown>> = tableOf({ transfer: true, signal: true })
export const ENCODER_LINES_KEYS: Readonly<Record<string, unknown>> = tableOf({
  onBadRow: true,
  transfer: true,
  signal: true,
})
export const CAPTURE_KEYS: Readonly<Record<string, unknown>> = tableOf({ ...CAPTURE, maxBytes: true, transfer: true })
const SNAPSHOT_SIZE = { space: true, newline: true, signal: true }
export const SNAPSHOT_SIZE_KEYS: Readonly<Record<string, unknown>> = tableOf(SNAPSHOT_SIZE)
export const SNAPSHOT_KEYS: Readonly<Record<string, unknown>> = tableOf({
  ...SNAPSHOT_SIZE,
  sortKeys: true,
  maxBytes: true,
})
const MSGPACK = { floats: true, maxBytes: true, maxDepth: true, signal: true }
export const SNAPSHOT_MSGPACK_KEYS: Readonly<Record<string, unknown>> = tableOf(MSGPACK)
export const MSGPACK_KEYS: Readonly<Record<string, unknown>> = tableOf({ ...MSGPACK, transfer: true })
