/**
 * Byte inputs and the memory of results, on the JS thread. Inputs are copied into recycled memory, or taken. V8 owns
 * the memory of results, and nobody else can reach it. Every noun calls it.
 */

import { invalidType, invalidValue, OffloopError } from './errors.ts'
import {
  allocUnsafe,
  allocUnsafeSlow,
  bufferFrom,
  bufferOf,
  byteLengthOfText,
  clone,
  defineProperty,
  isArrayBuffer,
  isReadable,
  isResizable,
  isUint8Array,
  leastOf,
  lengthOf,
  offsetOf,
  partOf,
  propertyOf,
  sizeOf,
  writeUtf8,
} from './intrinsics.ts'
import { check, InputBytes } from './native.ts'
import { yieldToLoop } from './yield.ts'
import { isStream, readStream } from './stream.ts'

/** A byte result. Accepted by fetch, Blob, fs and streams. */
export type Bytes = Buffer<ArrayBuffer>

/** A body as it comes: whole, in chunks, or as a stream (`response.body`). Chunks are copied into recycled memory as they arrive; nothing is joined on the JS thread. */
export type Body = Uint8Array | ArrayBuffer | readonly Uint8Array[] | AsyncIterable<Uint8Array>

/** Least size of a result that has an ArrayBuffer of its own, which can be transferred. */
const OWN_BUFFER = 64 * 1024

/**
 * An input for a task: bytes gathered natively, or one piece of memory that was taken from the caller. `out` is the
 * memory of the result, where it had to be allocated before anything was taken.
 */
export type Input =
  | { readonly source: InputBytes; readonly taken: undefined; readonly out?: Bytes }
  | { readonly source: undefined; readonly taken: Bytes; readonly out?: undefined }

export interface GatherOptions {
  readonly transfer: boolean
  readonly signal: AbortSignal | undefined
}

/**
 * Throws unless the value is a `Uint8Array` that can be read. A detached one, or one that reaches past its memory,
 * cannot.
 */
export function checkBytes(name: string, value: unknown): Uint8Array {
  if (!isUint8Array(value)) throw invalidType(name, 'an instance of Uint8Array', value)
  if (lengthOf(value) === 0 && !isReadable(value)) {
    throw invalidValue(name, 'is detached or out of the bounds of its memory', value)
  }
  return value
}

/**
 * Gathers the body, read before this returns; for a stream it returns a promise. Nothing is read or taken of a body
 * that is refused.
 */
export function gather(
  name: string,
  body: unknown,
  options: GatherOptions,
  allocateFor: (size: number) => Bytes,
): Input | Promise<Input> {
  const { transfer, signal } = options
  if (isUint8Array(body)) return gatherBytes(checkBytes(name, body), transfer)
  if (isArrayBuffer(body)) return gatherBytes(viewOf(name, body), transfer)
  if (Array.isArray(body)) {
    const chunks = checkChunks(name, body)
    // A getter in the list may have aborted the call.
    signal?.throwIfAborted()
    return transfer ? takeChunks(chunks, allocateFor) : gatherChunks(chunks)
  }
  if (isStream(body)) return gatherStream(name, body, transfer, signal)
  throw invalidType(name, 'a Uint8Array, an ArrayBuffer, an array of Uint8Arrays or an async iterable of them', body)
}

/** Gathers one piece of bytes. */
export function gatherBytes(bytes: Uint8Array, transfer: boolean): Input {
  const taken = transfer ? take(bytes) : undefined
  if (taken !== undefined) return { source: undefined, taken }
  const source = new InputBytes()
  check(source.copy(bytes))
  return { source, taken: undefined }
}

/** Returns the input for a task that writes elsewhere. */
export function sourceOf({ source, taken }: Input): InputBytes {
  if (source !== undefined) return source
  const whole = new InputBytes()
  whole.take(taken)
  return whole
}

/** Allocates memory for a result that a task fills. Nobody reaches it before the promise resolves. */
export function allocate(size: number): Bytes {
  return allocated(size, allocUnsafeSlow)
}

/** Allocates memory for a result that is filled at once. Small results share Node's pool. */
export function allocateNow(size: number): Bytes {
  return allocated(size, size < OWN_BUFFER ? allocUnsafe : allocUnsafeSlow)
}

/** Writes the UTF-8 of a text to memory that `make` allocates. */
export function utf8Of(text: string, make: (size: number) => Bytes): Bytes {
  const size = byteLengthOfText(text)
  const bytes = make(size)
  writeUtf8(bytes, text, 0, size)
  return bytes
}

/** Returns the first `length` bytes of memory made for a result. */
export function resultOf(memory: Bytes, length: number): Bytes {
  return length === lengthOf(memory) ? memory : partOf(memory, 0, length)
}

function allocated(size: number, allocator: (size: number) => Bytes): Bytes {
  try {
    return allocator(size)
  } catch (cause) {
    throw new OffloopError('ERR_OFFLOOP_TOO_LARGE', `no memory for a result of ${size} bytes`, { cause })
  }
}

function viewOf(name: string, buffer: ArrayBuffer): Uint8Array {
  try {
    return new Uint8Array(buffer)
  } catch {
    throw invalidValue(name, 'is detached', buffer)
  }
}

/** Copies the list, reading every element once. */
function checkChunks(name: string, chunks: readonly unknown[]): Uint8Array[] {
  const checked: Uint8Array[] = []
  for (const chunk of chunks) checked.push(checkBytes(`${name}[${checked.length}]`, chunk))
  return checked
}

function gatherChunks(chunks: readonly Uint8Array[]): Input {
  const source = new InputBytes()
  check(source.reserve(sizeOfAll(chunks)))
  for (const chunk of chunks) check(source.copy(chunk))
  return { source, taken: undefined }
}

function takeChunks(chunks: readonly Uint8Array[], allocateFor: (size: number) => Bytes): Input {
  // The memory comes first: where there is none, the caller keeps the input.
  const out = allocateFor(sizeOfAll(chunks))
  const source = new InputBytes()
  const uses = usesOf(chunks)
  for (const chunk of chunks) addChunk(source, chunk, uses.get(bufferOf(chunk)) === 1)
  return { source, taken: undefined, out }
}

function sizeOfAll(chunks: readonly Uint8Array[]): number {
  let size = 0
  for (const chunk of chunks) size += lengthOf(chunk)
  return size
}

function addChunk(source: InputBytes, chunk: Uint8Array, transfer: boolean): void {
  const taken = transfer ? take(chunk) : undefined
  if (taken === undefined) check(source.copy(chunk))
  else source.take(taken)
}

/** Takes the caller's memory and leaves its view empty, if the view covers a whole ArrayBuffer of its own. */
function take(bytes: Uint8Array): Bytes | undefined {
  const buffer = takeableOf(bytes)
  const taken = buffer === undefined ? undefined : takeBuffer(buffer)
  return taken === undefined ? undefined : bufferFrom(taken)
}

function takeBuffer(buffer: ArrayBuffer): ArrayBuffer | undefined {
  try {
    return clone(buffer, { transfer: [buffer] })
  } catch {
    // DataCloneError: Node's pool, external memory, a WebAssembly memory, or marked as untransferable.
    return undefined
  }
}

/** Returns the memory of a view that covers all of it. */
function takeableOf(bytes: Uint8Array): ArrayBuffer | undefined {
  const buffer = bufferOf(bytes)
  if (!isArrayBuffer(buffer) || isResizable(buffer) || offsetOf(bytes) !== 0) return undefined
  return lengthOf(bytes) === 0 || lengthOf(bytes) !== sizeOf(buffer) ? undefined : buffer
}

/** Takes the memory of each view that covers all of it, in one call: each call costs several microseconds. */
export function takeAll(views: readonly Uint8Array[]): (ArrayBuffer | null)[] {
  const buffers = views.map(takeableOf)
  const takeable = buffers.filter((buffer) => buffer !== undefined)
  try {
    const taken = clone(takeable, { transfer: takeable })
    let next = 0
    return buffers.map((buffer) => (buffer === undefined ? null : (taken[next++] ?? null)))
  } catch {
    // DataCloneError: one of them cannot be taken, or stands in the list twice. It is copied.
    const uses = usesOf(views)
    return buffers.map((buffer) => {
      if (buffer === undefined || uses.get(buffer) !== 1) return null
      return takeBuffer(buffer) ?? null
    })
  }
}

/** Makes an object that keeps all of them from being collected, for the addon to refer to. */
export function keeperOf(memories: readonly (ArrayBuffer | null)[]): Uint8Array {
  return defineProperty(new Uint8Array(0), 'memories', { value: memories })
}

/** Counts the views of each memory: taking it for one view would empty the others. */
function usesOf(views: readonly Uint8Array[]): Map<ArrayBufferLike, number> {
  const uses = new Map<ArrayBufferLike, number>()
  for (const view of views) uses.set(bufferOf(view), (uses.get(bufferOf(view)) ?? 0) + 1)
  return uses
}

async function gatherStream(
  name: string,
  stream: AsyncIterable<unknown>,
  transfer: boolean,
  signal: AbortSignal | undefined,
): Promise<Input> {
  const source = new InputBytes()
  try {
    // One piece, so that nothing has to be joined.
    check(source.reserve(toldSize(stream)))
    await readStream(stream, signal, (chunk) => {
      addChunk(source, checkBytes(`a chunk of ${name}`, chunk), transfer)
      return yieldToLoop()
    })
  } catch (error) {
    source.clear()
    throw error
  }
  return { source, taken: undefined }
}

/** Most memory that is made ready because a server announced it. */
const MOST_TOLD = 256 * 1024 * 1024

/** Returns the length that an `IncomingMessage` announces; 0 if it announces none, or for other streams. */
function toldSize(stream: object): number {
  const headers: unknown = propertyOf(stream, 'headers')
  if (typeof headers !== 'object' || headers === null) return 0
  const size = Number(propertyOf(headers, 'content-length'))
  return Number.isSafeInteger(size) && 0 < size ? leastOf(size, MOST_TOLD) : 0
}
