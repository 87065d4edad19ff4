/** Inputs: copied into recycled memory, or taken. Outputs: memory that V8 owns and nobody else has. */

import { invalidType, invalidValue, OffloopError } from './errors.ts'
import {
  allocUnsafe,
  allocUnsafeSlow,
  bufferFrom,
  bufferOf,
  clone,
  isArrayBuffer,
  isReadable,
  isResizable,
  isUint8Array,
  lengthOf,
  offsetOf,
  sizeOf,
} from './intrinsics.ts'
import { check, Source } from './native.ts'
import { isStream, readStream } from './stream.ts'

/** What results are: accepted by fetch, Blob, fs, streams. */
export type Bytes = Buffer<ArrayBuffer>

/** A body as it comes: whole, in chunks, or as a stream (`response.body`). Chunks are copied into recycled memory as they arrive; nothing is joined on the JS thread. */
export type Body = Uint8Array | ArrayBuffer | readonly Uint8Array[] | AsyncIterable<Uint8Array>

/** Results from here on have an ArrayBuffer of their own, which can be transferred. */
const OWN_BUFFER = 64 * 1024

/** An input on its way to a task. `taken` is all of it, where it is in one piece that was taken from the caller. */
export interface Input {
  readonly source: Source
  readonly taken: Uint8Array<ArrayBuffer> | undefined
}

/** Refuses what is no `Uint8Array` that can be read: of another type, detached, or reaching past its memory. */
export function checkBytes(name: string, value: unknown): Uint8Array {
  if (!isUint8Array(value)) throw invalidType(name, 'an instance of Uint8Array', value)
  if (lengthOf(value) === 0 && !isReadable(value)) {
    throw invalidValue(name, 'is detached or out of the bounds of its memory', value)
  }
  return value
}

/** What `body` is now, read before this returns; a promise where it is a stream. Nothing is read or taken of a body that is refused. */
export function gather(
  name: string,
  body: unknown,
  transfer: boolean,
  signal: AbortSignal | undefined,
): Input | Promise<Input> {
  if (isUint8Array(body)) return gatherChunks([checkBytes(name, body)], transfer)
  if (isArrayBuffer(body)) return gatherChunks([viewOf(name, body)], transfer)
  if (Array.isArray(body)) return gatherChunks(checkChunks(name, body), transfer)
  if (isStream(body)) return gatherStream(name, body, transfer, signal)
  throw invalidType(name, 'a Uint8Array, an ArrayBuffer, an array of Uint8Arrays or an async iterable of them', body)
}

/** One piece of bytes. */
export function gatherBytes(bytes: Uint8Array, transfer: boolean): Input {
  return gatherChunks([bytes], transfer)
}

/** Memory for a result that a task fills: its own, which nobody reaches before the promise resolves. */
export function allocate(size: number): Bytes {
  return allocated(size, allocUnsafeSlow)
}

/** Memory for a result that is filled at once: small ones share Node's pool. */
export function allocateNow(size: number): Bytes {
  return allocated(size, size < OWN_BUFFER ? allocUnsafe : allocUnsafeSlow)
}

/** The first `length` bytes of memory made for a result. */
export function resultOf(memory: Uint8Array<ArrayBuffer>, length: number): Bytes {
  return bufferFrom(memory.buffer, memory.byteOffset, length)
}

function allocated(size: number, allocator: (size: number) => Buffer): Bytes {
  try {
    const { buffer, byteOffset } = allocator(size)
    if (isArrayBuffer(buffer)) return bufferFrom(buffer, byteOffset, size)
  } catch (cause) {
    throw new OffloopError('ERR_OFFLOOP_TOO_LARGE', `no memory for a result of ${size} bytes`, { cause })
  }
  throw new OffloopError('ERR_OFFLOOP_INTERNAL', 'memory for a result is shared')
}

function viewOf(name: string, buffer: ArrayBuffer): Uint8Array {
  try {
    return new Uint8Array(buffer)
  } catch {
    throw invalidValue(name, 'is detached', buffer)
  }
}

/** A copy of the list, every element read once. */
function checkChunks(name: string, chunks: readonly unknown[]): Uint8Array[] {
  const checked: Uint8Array[] = []
  for (const chunk of chunks) checked.push(checkBytes(`${name}[${checked.length}]`, chunk))
  return checked
}

function gatherChunks(chunks: readonly Uint8Array[], transfer: boolean): Input {
  const source = new Source()
  if (transfer) return takeChunks(source, chunks)
  let size = 0
  for (const chunk of chunks) size += lengthOf(chunk)
  check(source.reserve(size))
  for (const chunk of chunks) check(source.copy(chunk))
  return { source, taken: undefined }
}

function takeChunks(source: Source, chunks: readonly Uint8Array[]): Input {
  // Memory that stands in the list twice is copied: taking it for one place would empty the other.
  const uses = new Map<ArrayBufferLike, number>()
  for (const chunk of chunks) uses.set(bufferOf(chunk), (uses.get(bufferOf(chunk)) ?? 0) + 1)
  let taken: Uint8Array<ArrayBuffer> | undefined
  for (const chunk of chunks) {
    taken = uses.get(bufferOf(chunk)) === 1 ? take(chunk) : undefined
    if (taken === undefined) check(source.copy(chunk))
    else source.take(taken)
  }
  return { source, taken: chunks.length === 1 ? taken : undefined }
}

/** The caller's memory, its view left empty, where it covers a whole ArrayBuffer of its own. */
function take(bytes: Uint8Array): Uint8Array<ArrayBuffer> | undefined {
  const buffer = bufferOf(bytes)
  if (!isArrayBuffer(buffer) || isResizable(buffer) || offsetOf(bytes) !== 0) return undefined
  if (lengthOf(bytes) === 0 || lengthOf(bytes) !== sizeOf(buffer)) return undefined
  try {
    return new Uint8Array(clone(buffer, { transfer: [buffer] }))
  } catch {
    // DataCloneError: Node's pool, external memory, a WebAssembly memory, or marked as untransferable.
    return undefined
  }
}

async function gatherStream(
  name: string,
  stream: AsyncIterable<unknown>,
  transfer: boolean,
  signal: AbortSignal | undefined,
): Promise<Input> {
  const source = new Source()
  try {
    await readStream(stream, signal, (chunk) => {
      const bytes = checkBytes(`a chunk of ${name}`, chunk)
      const taken = transfer ? take(bytes) : undefined
      if (taken === undefined) check(source.copy(bytes))
      else source.take(taken)
    })
  } catch (error) {
    source.clear()
    throw error
  }
  return { source, taken: undefined }
}
