export { decodeBase64, encodeBase64, type Base64Options } from './base64.ts'
export { parse, split, type Lift, type ParseOptions, type SplitResult } from './body.ts'
export type { Body, Bytes } from './bytes.ts'
export {
  concatExperts,
  decodeExperts,
  type ConcatOptions,
  type ExpertsDtype,
  type ExpertsHints,
  type ExpertsTurn,
  type ExpertsWire,
  type RoutedExperts,
} from './experts.ts'
export { OffloopError, type ErrorCode } from './errors.ts'
export { capture, createEncoder, encode, encodeLines, encodeMsgpack, encodeSync, type Encoder } from './json.ts'
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
export type { EncodeLinesOptions, EncodeOptions, MsgpackOptions } from './forms.ts'
export type { Snapshot } from './snapshot.ts'
export { rawJson, RawJson } from './capture/raw.ts'
export { version } from './native.ts'
export type { BytesInput, Cancellable } from './options.ts'
export { configure, stats } from './pool.ts'
export {
  readJsonl,
  type ReadOptions,
  type Row,
  type RowWithBytes,
  type RowWithFields,
  type RowWithValue,
} from './jsonl/read.ts'
export { saveFile, type SaveOptions } from './jsonl/save.ts'
