/** Undoes `content-encoding` with streams of node:zlib, whose work is off the JS thread. `receiver.ts` calls it. */

import { Duplex, type Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { propertyOf } from '../runtime/intrinsics.ts'

/** Bytes that zlib decodes at once. */
const CHUNK = 128 * 1024

const OPTIONS = { chunkSize: CHUNK }

const DECODERS: ReadonlyMap<string, () => Duplex> = new Map<string, () => Duplex>([
  ['gzip', () => zlib.createGunzip(OPTIONS)],
  ['x-gzip', () => zlib.createGunzip(OPTIONS)],
  ['deflate', () => new Inflate()],
  ['br', () => zlib.createBrotliDecompress(OPTIONS)],
  ['zstd', () => zstdOf('createZstdDecompress')(OPTIONS)],
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
    const [first = new Inflate()] = this.#streams
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

/** Decodes `deflate`: zlib's format, or the raw one that some servers send. The first byte tells which. */
class Inflate extends Duplex {
  #inner: Transform | undefined

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#inner ??= this.#open(chunk)
    this.#inner.write(chunk, (error) => done(error))
  }

  override _final(done: (error?: Error | null) => void): void {
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

  #open(chunk: Buffer): Transform {
    const isZlib = ((chunk[0] ?? 0) & 0x0f) === 8
    const inner = isZlib ? zlib.createInflate(OPTIONS) : zlib.createInflateRaw(OPTIONS)
    inner.on('data', (decoded) => {
      if (!this.push(decoded)) inner.pause()
    })
    inner.on('end', () => this.push(null)).on('error', (error) => this.destroy(error))
    return inner
  }
}
