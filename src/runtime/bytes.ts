/**
 * Byte inputs and the memory of results, on the JS thread. Inputs are copied into recycled memory, or taken. V8 owns
 * the memory of results, and nobody else can reach it. Every noun calls it.
 */

import { invalidType, invalidValue, OffloopError } from './errors.ts'
import {
  allocUnsafe,
  bufferFrom,
  bufferOf,
  byteLengthOfText,
  clone,
  defineProperty,
  addTo,
  clearFrom,
  isArrayBuffer,
  isReadable,
  isUint8Array,
  leastOf,
  lengthOf,
  newMap,
  partOf,
  propertyOf,
  sizeOf,
  writeUtf8,
} from './intrinsics.ts'
import { check, InputBytes } from './native.ts'
import {
  giveBack,
  makeMemory,
  makeResult,
  noteResult,
  OWN_BUFFER,
  renewed,
  takeableOf,
  takeBuffer,
  type Bytes,
} from './results.ts'
import { yieldToLoop } from './yield.ts'
import { cancelStream, isStream, readStream } from './stream.ts'

export { giveBack, makeMemory, OWN_BUFFER, type Bytes } from './results.ts'

/** A body as it comes: whole, in chunks, or as a stream (`response.body`). Chunks are copied into recycled memory as they arrive; nothing is joined on the JS thread. */
export type Body = Uint8Array | ArrayBuffer | readonly Uint8Array[] | AsyncIterable<Uint8Array>

/** An input for a task: bytes gathered natively, or one piece of memory that was taken from the caller. */
export class Input {
  /** Bytes for a task that writes elsewhere. */
  readonly source: InputBytes
  /** The whole input, if it was taken in one piece: a task may write to it. */
  readonly taken: Bytes | undefined
  /** Memory of the result, where it had to be allocated before anything was taken. */
  readonly out: Bytes | undefined
  /** Pieces that were taken. */
  readonly #pieces: Bytes[] = []

  constructor(source: InputBytes, taken?: Bytes, out?: Bytes) {
    this.source = source
    this.taken = taken
    this.out = out
    if (taken !== undefined) this.addTaken(taken)
  }

  addTaken(taken: Bytes): void {
    this.source.take(taken)
    addTo(this.#pieces, taken)
  }

  /** Ends the input once no task reads it. All memory but that of the result goes back. */
  end(result?: Bytes): void {
    this.source.clear()
    for (let index = 0; index < this.#pieces.length; index += 1) {
      const piece = this.#pieces[index]
      if (piece !== undefined && piece !== result) giveBack(piece)
    }
    this.#pieces.length = 0
  }
}

export interface GatherOptions {
  readonly maxBytes: number
  readonly transfer: boolean
  readonly signal: AbortSignal | undefined
}

/** Throws if an input of `size` bytes is larger than the caller allows. */
export function checkSize(name: string, size: number, maxBytes: number): void {
  if (size <= maxBytes) return
  throw new OffloopError('ERR_OFFLOOP_TOO_LARGE', `${name} has ${size} bytes or more, and may have ${maxBytes}`)
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
  const { maxBytes, transfer, signal } = options
  if (isUint8Array(body) || isArrayBuffer(body)) {
    const bytes = isUint8Array(body) ? checkBytes(name, body) : viewOf(name, body)
    checkSize(name, lengthOf(bytes), maxBytes)
    return gatherBytes(bytes, transfer)
  }
  if (Array.isArray(body)) {
    const chunks = checkChunks(name, body)
    // A getter in the list may have aborted the call.
    signal?.throwIfAborted()
    checkSize(name, sizeOfAll(chunks), maxBytes)
    return transfer ? takeChunks(chunks, allocateFor) : gatherChunks(chunks)
  }
  if (isStream(body)) return gatherStream(name, body, options)
  throw invalidType(name, 'a Uint8Array, an ArrayBuffer, an array of Uint8Arrays or an async iterable of them', body)
}

/** Gathers one piece of bytes. */
export function gatherBytes(bytes: Uint8Array, transfer: boolean): Input {
  const input = new Input(new InputBytes(), transfer ? take(bytes) : undefined)
  if (input.taken === undefined) check(input.source.copy(bytes))
  return input
}

/**
 * Allocates memory for a result that a task fills. Nobody reaches it before the promise resolves. The task clears what
 * lies behind it.
 */
export function allocate(size: number): Bytes {
  return size < OWN_BUFFER ? makeMemory(size) : makeResult(size)
}

/** Allocates memory for a result that is filled at once. Small results share Node's pool. */
export function allocateNow(size: number): Bytes {
  if (size < OWN_BUFFER) return allocUnsafe(size)
  const memory = makeResult(size)
  clearFrom(bufferOf(memory), size)
  return memory
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
  noteResult(memory, length)
  return length === lengthOf(memory) ? memory : partOf(memory, 0, length)
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
  return new Input(source)
}

function takeChunks(chunks: readonly Uint8Array[], allocateFor: (size: number) => Bytes): Input {
  // The memory comes first: where there is none, the caller keeps the input.
  const input = new Input(new InputBytes(), undefined, allocateFor(sizeOfAll(chunks)))
  const uses = usesOf(chunks)
  for (const chunk of chunks) addChunk(input, chunk, uses.get(bufferOf(chunk)) === 1)
  return input
}

function sizeOfAll(chunks: readonly Uint8Array[]): number {
  let size = 0
  for (const chunk of chunks) size += lengthOf(chunk)
  return size
}

function addChunk(input: Input, chunk: Uint8Array, transfer: boolean): void {
  const taken = transfer ? take(chunk) : undefined
  if (taken === undefined) check(input.source.copy(chunk))
  else input.addTaken(taken)
}

/** Takes the caller's memory and leaves its view empty, if the view covers a whole ArrayBuffer or is a whole result. */
export function take(bytes: Uint8Array): Bytes | undefined {
  const length = lengthOf(bytes)
  const buffer = takeableOf(bytes)
  const taken = buffer === undefined ? undefined : takeBuffer(buffer)
  return taken === undefined ? undefined : bufferFrom(taken, 0, length)
}

/**
 * Takes the memory of each view that `take` would take, in few calls: each takes several microseconds. Memory that stands
 * in the list twice is not taken.
 *
 * A call empties all memory of its list before it fills other ArrayBuffers with it. V8 counts that as memory that was
 * freed and then made. From 64 MiB on it collects its heap for that, so a call takes less.
 */
export function takeAll(views: readonly Uint8Array[]): (ArrayBuffer | null)[] {
  const uses = usesOf(views)
  const taken: (ArrayBuffer | null)[] = []
  let group: (ArrayBuffer | undefined)[] = []
  let size = 0
  for (let index = 0; index < views.length; index += 1) {
    const view = views[index]
    const buffer = view !== undefined && uses.get(bufferOf(view)) === 1 ? takeableOf(view) : undefined
    const length = buffer === undefined ? 0 : sizeOf(buffer)
    if (MOST_TAKEN < size + length) {
      takeGroup(group, taken)
      group = []
      size = 0
    }
    addTo(group, buffer)
    size += length
  }
  takeGroup(group, taken)
  return taken
}

/** Most bytes that one call takes. */
const MOST_TAKEN = 16 * 1024 * 1024

/** Takes memory and adds it to a list. No method of arrays sees it: they may be replaced. */
function takeGroup(buffers: readonly (ArrayBuffer | undefined)[], taken: (ArrayBuffer | null)[]): void {
  const cloned = cloneAll(buffers)
  let next = 0
  for (let index = 0; index < buffers.length; index += 1) {
    const buffer = buffers[index]
    if (buffer === undefined) addTo(taken, null)
    // One of them cannot be taken. It is copied.
    else if (cloned === undefined) addTo(taken, takeBuffer(buffer) ?? null)
    else addTo(taken, renewed(buffer, cloned[next++] ?? buffer))
  }
}

function cloneAll(buffers: readonly (ArrayBuffer | undefined)[]): ArrayBuffer[] | undefined {
  const takeable: ArrayBuffer[] = []
  for (let index = 0; index < buffers.length; index += 1) {
    const buffer = buffers[index]
    if (buffer !== undefined) addTo(takeable, buffer)
  }
  try {
    return clone(takeable, { transfer: takeable })
  } catch {
    // DataCloneError: one of them cannot be taken.
    return undefined
  }
}

/** Makes an object that keeps all of them from being collected, for the addon to refer to. */
export function keeperOf(memories: readonly (ArrayBuffer | null)[]): Uint8Array {
  return defineProperty(new Uint8Array(0), 'memories', { value: memories })
}

/** Counts the views of each memory: taking it for one view would empty the others. */
function usesOf(views: readonly Uint8Array[]): Map<ArrayBufferLike, number> {
  const uses = newMap<ArrayBufferLike, number>()
  for (let index = 0; index < views.length; index += 1) {
    const view = views[index]
    if (view !== undefined) uses.set(bufferOf(view), (uses.get(bufferOf(view)) ?? 0) + 1)
  }
  return uses
}

async function gatherStream(
  name: string,
  stream: AsyncIterable<unknown>,
  { maxBytes, transfer, signal }: GatherOptions,
): Promise<Input> {
  const input = new Input(new InputBytes())
  let size = 0
  try {
    const announced = announcedSize(stream)
    if (maxBytes < announced) cancelStream(stream)
    checkSize(name, announced, maxBytes)
    // One piece, so that nothing has to be joined.
    check(input.source.reserve(leastOf(announced, MOST_ANNOUNCED)))
    await readStream(stream, signal, (chunk) => {
      const bytes = checkBytes(`a chunk of ${name}`, chunk)
      size += lengthOf(bytes)
      checkSize(name, size, maxBytes)
      addChunk(input, bytes, transfer)
      return yieldToLoop()
    })
  } catch (error) {
    input.end()
    throw error
  }
  return input
}

/** Most memory that is made ready because a server announced it. */
const MOST_ANNOUNCED = 256 * 1024 * 1024

/** Returns the length that an `IncomingMessage` announces; 0 if it announces none, or for other streams. */
function announcedSize(stream: object): number {
  const headers: unknown = propertyOf(stream, 'headers')
  if (typeof headers !== 'object' || headers === null) return 0
  const size = Number(propertyOf(headers, 'content-length'))
  return Number.isSafeInteger(size) && 0 < size ? size : 0
}
