/** Undoes `content-encoding` with streams of node:zlib, whose work is off the JS thread. `receiver.ts` calls it. */

import { Duplex, type Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { ZstdFrames } from './zstd-frames.ts'
import { propertyOf } from '../runtime/intrinsics.ts'

/** Bytes that zlib decodes at once. */
const CHUNK = 128 * 1024

const OPTIONS = { chunkSize: CHUNK }

const DECODERS: ReadonlyMap<string, () => Duplex> = new Map<string, () => Duplex>([
  ['gzip', () => zlib.createGunzip(OPTIONS)],
  ['x-gzip', () => zlib.createGunzip(OPTIONS)],
  ['deflate', () => new LateDecoder(openInflate)],
  ['br', () => zlib.createBrotliDecompress(OPTIONS)],
  ['zstd', () => new LateDecoder(() => zstdOf('createZstdDecompress')(OPTIONS), new ZstdFrames())],
])

/**
 * Returns the encodings that were applied to a body, in order; none where one of them is unknown. Throws for zstd if
 * this Node lacks it.
 */
export function codingsOf(header: string | readonly string[] | undefined): readonly string[] {
  const names = [header ?? ''].flat().join(',').toLowerCase().split(',')
  const codings = names.map((name) => name.trim()).filter((name) => name !== '' && name !== 'identity')
  if (codings.includes('zstd')) zstdOf('createZstdDecompress')
  return codings.every((name) => DECODERS.has(name)) ? codings : []
}

/** Returns a function of node:zlib for zstd. Throws if this Node has none. */
export function zstdOf(name: 'createZstdDecompress'): (options: object) => Transform
export function zstdOf(name: 'zstdCompress'): typeof zlib.gzip
export function zstdOf(name: string): unknown {
  const found: unknown = propertyOf(zlib, name)
  if (typeof found === 'function') return found
  const error = new Error(`zstd needs Node 22.15 or newer; this is ${process.version}`)
  throw Object.assign(error, { code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM' })
}

/** What a decoder calls. */
export interface DecoderEvents {
  take(chunk: Buffer): void
  end(): void
  fail(error: Error): void
  /** More can be written. */
  drain(): void
}

/** Decodes one body. */
export class Decoder {
  readonly #streams: readonly Duplex[]
  readonly #first: Duplex
  readonly #last: Duplex

  constructor(codings: readonly string[], events: DecoderEvents) {
    this.#streams = codings.toReversed().flatMap((name) => DECODERS.get(name)?.() ?? [])
    const [first = new LateDecoder(openInflate)] = this.#streams
    this.#first = first
    this.#last = this.#streams.reduce((from, to) => from.pipe(to))
    for (const stream of this.#streams) stream.on('error', (error) => events.fail(error))
    this.#first.on('drain', () => events.drain())
    this.#last.on('data', (chunk: Buffer) => events.take(chunk)).on('end', () => events.end())
  }

  /** Decodes a chunk that nobody changes. Returns false where the next one should wait for `drain`. */
  write(chunk: Buffer): boolean {
    return this.#first.write(chunk)
  }

  /** Ends the body. */
  end(): void {
    this.#first.end()
  }

  pause(): void {
    this.#last.pause()
  }

  resume(): void {
    this.#last.resume()
  }

  destroy(): void {
    for (const stream of this.#streams) stream.destroy()
  }
}

/** Decodes with a stream that is made when the first bytes are there. */
class LateDecoder extends Duplex {
  readonly #make: (first: number) => Transform
  readonly #frames: ZstdFrames | undefined
  #inner: Transform | undefined

  constructor(make: (first: number) => Transform, frames?: ZstdFrames) {
    super()
    this.#make = make
    this.#frames = frames
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#inner ??= this.#open(chunk[0] ?? 0)
    this.#frames?.add(chunk)
    this.#inner.write(chunk, (error) => done(error))
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.#frames?.isWhole === false) {
      done(
        Object.assign(new Error('unexpected end of file'), { code: 'Z_BUF_ERROR', errno: zlib.constants.Z_BUF_ERROR }),
      )
      return
    }
    if (this.#inner === undefined) this.push(null)
    else this.#inner.end()
    done()
  }

  override _read(): void {
    this.#inner?.resume()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#inner?.destroy()
    done(error)
  }

  #open(first: number): Transform {
    const inner = this.#make(first)
    inner.on('data', (decoded) => {
      if (!this.push(decoded)) inner.pause()
    })
    inner.on('end', () => this.push(null)).on('error', (error) => this.destroy(error))
    return inner
  }
}

/** Makes the stream for `deflate`: zlib's format, or the raw one that some servers send. The first byte tells which. */
function openInflate(first: number): Transform {
  return (first & 0x0f) === 8 ? zlib.createInflate(OPTIONS) : zlib.createInflateRaw(OPTIONS)
}
