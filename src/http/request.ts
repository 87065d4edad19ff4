/** Reads the options of a request and makes its body, on the JS thread and in tasks. `client.ts` calls it. */

import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { readEncodeConfig } from '../encode/config.ts'
import { SYNC_KEYS } from '../encode/option-keys.ts'
import type { EncodeOptions } from '../encode/options.ts'
import { shared } from '../encode/encoder.ts'
import { allocateNow, checkBytes, utf8Of, type Bytes } from '../runtime/bytes.ts'
import { invalidType, invalidValue } from '../runtime/errors.ts'
import { isUint8Array, keysOf, lengthOf, setBytes } from '../runtime/intrinsics.ts'
import {
  choose,
  copyOptions,
  readLimit,
  readSignal,
  tableOf,
  withoutPrototype,
  type Cancellable,
} from '../runtime/options.ts'
import { releaseView } from '../runtime/results.ts'
import { zstdOf } from './decoder.ts'

/** How the body of a request is compressed. `'zstd'` needs Node 22.15 or newer. */
export type Compression = 'gzip' | 'zstd'

/** Options of `request`. */
export interface RequestOptions extends Cancellable {
  /**
   * Most bytes of the response's body, as it is sent and as it is decoded. A larger one rejects with
   * ERR_OFFLOOP_TOO_LARGE at once, and its connection is closed. @default the client's
   */
  readonly maxBytes?: number | undefined
  /** @default 'GET', or 'POST' with a body */
  readonly method?: string | undefined
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>> | undefined
  /** Sent as it is: copied before the call returns. */
  readonly body?: string | Uint8Array | undefined
  /** Encoded off the JS thread and sent as JSON, with `content-type: application/json` unless `headers` has one. Not with `body`. */
  readonly json?: unknown
  /** Options of `encode` for `json`. */
  readonly encode?: Omit<EncodeOptions, 'signal' | 'maxBytes'> | undefined
  /** Compress the request's body off the JS thread, and say so in `content-encoding`. @default none */
  readonly compress?: Compression | undefined
}

export const REQUEST_KEYS: Readonly<Record<string, unknown>> = tableOf({
  body: true,
  compress: true,
  encode: true,
  headers: true,
  json: true,
  maxBytes: true,
  method: true,
  signal: true,
})

/** A request that was read; its body may still be in the making. */
export interface PreparedRequest {
  readonly origin: string
  readonly path: string
  readonly method: string
  readonly headers: Record<string, string | string[]>
  readonly maxBytes: number | undefined
  readonly signal: AbortSignal | undefined
  readonly body: Bytes | Promise<Bytes> | undefined
  /** Whether the body's memory may serve later results, once it has been sent. */
  readonly isOurs: boolean
}

/** Reads a request at once. `own` is a copy of the caller's options; with `isJson` its `json` is sent even if it is undefined. */
export function prepareRequest(url: unknown, own: RequestOptions, isJson: boolean): PreparedRequest {
  const { origin, path } = readUrl(url)
  const signal = readSignal(own.signal)
  const headers = readHeaders(own.headers)
  const compress = choose('options.compress', own.compress, COMPRESSORS, undefined)
  const config = readEncodeConfig(copyOptions(own.encode ?? withoutPrototype({}), SYNC_KEYS, 'options.encode'))
  const maxBytes = own.maxBytes === undefined ? undefined : readLimit('options.maxBytes', own.maxBytes, 0)
  const hasJson = isJson || own.json !== undefined
  if (hasJson && own.body !== undefined) throw invalidValue('options.body', 'cannot be sent with json', own.body)
  const method = readMethod(own.method, hasJson || own.body !== undefined)
  if (compress !== undefined && hasHeader(headers, 'content-encoding')) {
    throw invalidValue('options.compress', 'cannot be combined with a content-encoding in headers', own.compress)
  }
  const plain = hasJson ? shared.encode(own.json, config, signal) : readBody(own.body)
  if (hasJson && !hasHeader(headers, 'content-type')) headers['content-type'] = 'application/json'
  const request = { origin, path, method, headers, maxBytes, signal }
  if (compress === undefined || plain === undefined) return { ...request, body: plain, isOurs: true }
  headers['content-encoding'] = own.compress ?? ''
  return { ...request, body: compressed(plain, compress), isOurs: false }
}

type Compressor = (bytes: Uint8Array) => Promise<Buffer>

const gzip: Compressor = promisify(zlib.gzip)
const zstd: Compressor = (bytes) => promisify(zstdOf('zstdCompress'))(bytes)

const COMPRESSORS = tableOf<Compressor | undefined>({ gzip, zstd })

/** Compresses a body. Its memory is free once zlib has ended; after an error it is left to V8. */
async function compressed(plain: Bytes | Promise<Bytes>, compress: Compressor): Promise<Bytes> {
  const bytes = await plain
  const smaller = await compress(bytes)
  releaseView(bytes)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- zlib makes Buffers over memory of V8
  return smaller as Bytes
}

function readUrl(url: unknown): { readonly origin: string; readonly path: string } {
  if (typeof url !== 'string' && !(url instanceof URL))
    throw invalidType('url', 'of type string or an instance of URL', url)
  const { protocol, origin, pathname, search, username, password } = new URL(url)
  if (protocol !== 'http:' && protocol !== 'https:') throw invalidValue('url', 'must be of http or https', url)
  // The error does not show them.
  if (username !== '' || password !== '') throw invalidValue('url', 'must not have credentials: use headers', origin)
  return { origin, path: pathname + search }
}

function readMethod(method: unknown, hasBody: boolean): string {
  if (method === undefined) return hasBody ? 'POST' : 'GET'
  if (typeof method !== 'string') throw invalidType('options.method', 'of type string', method)
  if (method.toUpperCase() === 'CONNECT') throw invalidValue('options.method', 'cannot be CONNECT', method)
  return method
}

function readHeaders(headers: RequestOptions['headers']): Record<string, string | string[]> {
  const copy: Record<string, string | string[]> = withoutPrototype({})
  if (headers === undefined) return copy
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers) || Symbol.iterator in headers) {
    throw invalidType('options.headers', 'a plain object', headers)
  }
  for (const name of keysOf(headers)) {
    const value = readHeader(name, headers[name])
    if (value !== undefined) copy[name] = value
  }
  return copy
}

function readHeader(name: string, value: unknown): string | string[] | undefined {
  if (value === undefined || typeof value === 'string') return value
  const property = `options.headers['${name}']`
  if (!Array.isArray(value)) throw invalidType(property, 'of type string or an array of strings', value)
  const items: readonly unknown[] = value
  return Array.from(items, (item, index) => {
    if (typeof item !== 'string') throw invalidType(`${property}[${index}]`, 'of type string', item)
    return item
  })
}

function hasHeader(headers: object, name: string): boolean {
  return keysOf(headers).some((key) => key.toLowerCase() === name)
}

/** Copies a body: the caller may change it while it is sent. */
function readBody(body: unknown): Bytes | undefined {
  if (body === undefined) return undefined
  if (typeof body === 'string') return utf8Of(body, allocateNow)
  if (!isUint8Array(body)) throw invalidType('options.body', 'of type string or an instance of Uint8Array', body)
  const bytes = checkBytes('options.body', body)
  const copy = allocateNow(lengthOf(bytes))
  setBytes(copy, bytes, 0)
  return copy
}
