/**
 * A connection that reads into one buffer for all its life, on the JS thread. V8 gets no new ArrayBuffer for what
 * arrives. `connector.ts` makes connections; undici reads them; `receiver.ts` copies each piece of a body before undici
 * returns.
 */

import { channel } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { allocUnsafeSlow, apply, bufferFrom, bufferOf, lengthOf, offsetOf, partOf } from '../runtime/intrinsics.ts'

type ReadBuffer = Buffer<ArrayBuffer>

/** Largest chunk that is copied before undici gets it. Heads and ends of bodies come in such chunks. */
const SMALL = 4096

const CR = 0x0d
const LF = 0x0a

/** The connection whose chunk undici reads now. */
let receiving: Connection | undefined

/** The last piece of a body in the chunk that undici reads now. */
let lastPiece: Uint8Array | undefined

/** Notes a piece of a body that undici handed over. */
export function notePiece(piece: Uint8Array): void {
  lastPiece = piece
}

/** Returns the connection whose chunk undici reads now; undefined for an ordinary socket. */
export function currentConnection(): Connection | undefined {
  return receiving
}

/**
 * One connection. undici sees a socket whose `read` returns a view of the buffer.
 *
 * undici keeps views of a chunk in two cases: the chunk ends within a head or trailers, whose pieces undici joins later;
 * or undici puts the end of the chunk back into the socket. The next read would change these views. So a small chunk is
 * copied first, and a large one must end with a piece of a body, or with the framing behind one. If it does not, the
 * connection leaves its buffer to undici and makes another.
 */
export class Connection {
  readonly #size: number
  #buffer: ReadBuffer
  #socket: Socket | undefined
  /** What `read` returns next, while undici reads a chunk. */
  #pending: ReadBuffer | null = null
  #isPaused = false

  constructor(size: number) {
    this.#size = size
    this.#buffer = allocUnsafeSlow(size)
  }

  /** Returns the memory for the next read: `onread.buffer` of `net.connect`. */
  readonly nextBuffer = (): ReadBuffer => this.#buffer

  /** Gives undici the bytes that were read: `onread.callback` of `net.connect`. Returns false to read no more. */
  readonly receive = (length: number): boolean => {
    const socket = this.#socket
    const bytes = partOf(this.#buffer, 0, length)
    // Bytes that undici put back come first.
    if (socket === undefined || socket.readableLength !== 0) return this.#queue(bytes)
    const isSmall = length <= SMALL || isWatched()
    this.#pending = isSmall ? bufferFrom(bytes) : bytes
    offer(this, socket)
    if (this.#pending !== null) {
      this.#pending = null
      return this.#queue(bytes)
    }
    if (!isSmall && (socket.readableLength !== 0 || !endsWithBody(bytes))) this.#buffer = allocUnsafeSlow(this.#size)
    return !this.#isPaused
  }

  attach(socket: Socket): void {
    this.#socket = socket
    // oxlint-disable-next-line typescript/unbound-method -- it is called with its socket
    const { read } = socket
    socket.read = (size?: number): unknown => {
      const chunk = this.#pending
      if (chunk === null || size === 0) return apply(read, socket, [size])
      this.#pending = null
      return chunk
    }
  }

  /** Reads no more until `resume` is called. What was read already is still given to undici. */
  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    // With `onread`, `read` of a socket is what starts to read again.
    this.#socket?.read(0)
  }

  /** Puts a copy into the socket's own queue, for undici to read when it wants to. */
  #queue(bytes: ReadBuffer): boolean {
    return this.#socket?.push(bufferFrom(bytes)) ?? false
  }
}

/** Channels on which undici publishes views of what it reads. A subscriber may keep them, or take their memory away. */
const CHANNELS = ['undici:request:headers', 'undici:request:trailers', 'undici:request:bodyChunkReceived']
const watched = CHANNELS.map((name) => channel(name))

function isWatched(): boolean {
  return watched.some(({ hasSubscribers }) => hasSubscribers)
}

/** Lets undici read the pending chunk: it listens for "readable" and calls `read`. */
function offer(connection: Connection, socket: Socket): void {
  receiving = connection
  lastPiece = undefined
  try {
    socket.emit('readable')
  } finally {
    receiving = undefined
  }
}

/** Returns whether the last piece of a body in the chunk has nothing behind it but the framing of chunked bodies. */
function endsWithBody(chunk: ReadBuffer): boolean {
  if (lastPiece === undefined || bufferOf(lastPiece) !== bufferOf(chunk)) return false
  return isFraming(chunk, offsetOf(lastPiece) + lengthOf(lastPiece) - offsetOf(chunk))
}

/** Returns whether the bytes from `offset` on are a line break, hexadecimal digits and up to two line breaks, or a part of that. */
function isFraming(chunk: ReadBuffer, offset: number): boolean {
  let at = skipBreak(chunk, offset)
  while (isHexDigit(chunk[at])) at += 1
  return skipBreak(chunk, skipBreak(chunk, at)) === lengthOf(chunk)
}

function skipBreak(chunk: ReadBuffer, offset: number): number {
  const at = chunk[offset] === CR ? offset + 1 : offset
  return chunk[at] === LF ? at + 1 : at
}

function isHexDigit(byte: number | undefined): boolean {
  if (byte === undefined) return false
  const lower = byte | 0x20
  return (0x30 <= byte && byte <= 0x39) || (0x61 <= lower && lower <= 0x66)
}
