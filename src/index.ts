export { decodeBase64, encodeBase64, type Base64Options } from './base64.ts'
export type { Body, Bytes } from './bytes.ts'
export { OffloopError, type ErrorCode } from './errors.ts'
export {
  createEncoder,
  encode,
  encodeLines,
  encodeSync,
  type EncodeLinesOptions,
  type EncodeOptions,
  type Encoder,
} from './json.ts'
export { rawJson, RawJson } from './capture/raw.ts'
export { version } from './native.ts'
export type { BytesInput, Cancellable } from './options.ts'
export { configure, stats } from './pool.ts'
