/** The public functions and types of the main entry. */

export { decodeBase64, encodeBase64, type Base64Options } from './base64/base64.ts'
export { parseEvents, type EventsOptions, type ServerEvent } from './parse/events.ts'
export { parse, split, type SplitResult } from './parse/parse.ts'
export type {
  ElementType,
  Lift,
  Lifted,
  NumberArray,
  ParseOptions,
  Ragged,
  SplitOptions,
  Tensor,
} from './parse/config.ts'
export type { Body, Bytes } from './runtime/bytes.ts'
export {
  concatExperts,
  decodeExperts,
  type ConcatOptions,
  type ExpertsDtype,
  type ExpertsHints,
  type ExpertsTurn,
  type ExpertsWire,
  type RoutedExperts,
} from './experts/experts.ts'
export { OffloopError, type ErrorCode } from './runtime/errors.ts'
export { capture, createEncoder, encode, encodeLines, encodeMsgpack, encodeSync, type Encoder } from './encode/index.ts'
export type { Durability } from './jsonl/durability.ts'
export { openJsonl, type JsonlFile, type JsonlOptions } from './jsonl/log.ts'
export {
  repair,
  type BadRow,
  type BadRowCause,
  type RepairOptions,
  type RepairReport,
  type TailPolicy,
} from './jsonl/repair.ts'
export type { EncodeLinesOptions, EncodeOptions, MsgpackOptions } from './encode/options.ts'
export type { Snapshot } from './encode/snapshot.ts'
export { rawJson, RawJson } from './capture/raw-json.ts'
export { version } from './runtime/native.ts'
export type { Bounded, BytesInput, Cancellable } from './runtime/options.ts'
export { configure, stats } from './runtime/pool.ts'
export { release } from './runtime/release.ts'
export {
  readJsonl,
  type ReadOptions,
  type Row,
  type RowWithBytes,
  type RowWithFields,
  type RowWithValue,
} from './jsonl/read.ts'
export { saveFile, type SaveOptions } from './jsonl/save.ts'
