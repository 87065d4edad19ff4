/**
 * Receives one response, on the JS thread. undici calls it; it copies each piece of the body into recycled memory before
 * it returns, because the next read of the connection changes the piece. `client.ts` makes it, `body.ts` waits for it.
 */

import type { Dispatcher } from 'undici'
import { onAbort } from '../runtime/abort.ts'
import { OffloopError } from '../runtime/errors.ts'
import { bufferFrom, leastOf, lengthOf, partOf } from '../runtime/intrinsics.ts'
import { check, InputBytes } from '../runtime/native.ts'
import { currentConnection, notePiece, type Connection } from './connection.ts'
import { codingsOf, Decoder } from './decoder.ts'
import type { RequestMemory } from './request-memory.ts'

/** Bytes of a body that arrive before its consumer comes. Then the connection pauses. */
const AHEAD = 4 * 1024 * 1024

/** Most memory that is made ready because a server announced it. */
const MOST_ANNOUNCED = 256 * 1024 * 1024

/** Header fields by their lower-case names. A field that came several times is a list. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>

/** Status and header fields of a response. */
export interface ResponseHead {
  readonly status: number
  readonly headers: ResponseHeaders
}

export interface ReceiverOptions {
  readonly method: string
  readonly maxBytes: number
  readonly signal: AbortSignal | undefined
  /** The memory of the request's body, if it is ours. */
  readonly memory: RequestMemory | undefined
  /** Called once, when the response has ended or failed. */
  readonly onEnd: (receiver: Receiver) => void
}

interface Waiter<T> {
  resolve(value: T): void
  reject(reason: unknown): void
}

/** One response. */
export class Receiver implements Dispatcher.DispatchHandler {
  /** Resolves when the head of the response has arrived. */
  readonly head: Promise<ResponseHead>
  readonly #options: ReceiverOptions
  #source = new InputBytes()
  #memory: RequestMemory | undefined
  #forget: (() => void) | undefined
  #controller: Dispatcher.DispatchController | undefined
  #connection: Connection | undefined
  #head: Waiter<ResponseHead> | undefined
  #body: Waiter<InputBytes> | undefined
  /** Waits for the next bytes of a body that is read as it arrives. */
  #chunk: Waiter<InputBytes | undefined> | undefined
  #state: 'open' | 'whole' | 'failed' = 'open'
  #failure: unknown
  /** Encodings of the body that are undone. */
  #codings: readonly string[] = []
  #decoder: Decoder | undefined
  /** Whether the decoder has said that the body is whole. */
  #isDecoded = false
  /** Whether undici has said that the response is whole. */
  #isReceived = false
  #received = 0
  #size = 0
  /** Bytes of the body that are wanted. */
  #limit = Infinity
  #isWanted = false
  #isPaused = false
  /** Whether undici may be told to pause: see `#pause`. */
  #canPause = false

  constructor(options: ReceiverOptions) {
    this.#options = options
    this.#memory = options.memory
    const { signal } = options
    this.head = new Promise((resolve, reject) => {
      this.#head = { resolve, reject }
    })
    // The call may have failed before it waits for the head.
    this.head.catch(() => undefined)
    if (signal !== undefined) this.#forget = onAbort(signal, () => this.fail(signal.reason))
  }

  /** Waits for the body. Its memory belongs to the caller, who may read at most `limit` bytes. */
  waitForBody(limit: number = Infinity): Promise<InputBytes> {
    this.#isWanted = true
    this.#limit = limit
    if (this.#state === 'failed') return Promise.reject(this.#failure)
    if (this.#state === 'whole') return Promise.resolve(this.#source)
    const body = new Promise<InputBytes>((resolve, reject) => {
      this.#body = { resolve, reject }
    })
    if (limit <= this.#size) this.#cut()
    else this.#resume()
    return body
  }

  /**
   * Waits for bytes of the body that have not been returned; undefined at its end. Their memory belongs to the caller, who
   * asks for more when they are used up.
   */
  nextChunk(): Promise<InputBytes | undefined> {
    this.#isWanted = false
    if (this.#state === 'failed') return Promise.reject(this.#failure)
    if (this.#source.length !== 0) return Promise.resolve(this.#takeChunk())
    if (this.#state === 'whole') return Promise.resolve(undefined)
    const chunk = new Promise<InputBytes | undefined>((resolve, reject) => {
      this.#chunk = { resolve, reject }
    })
    this.#resume()
    return chunk
  }

  #takeChunk(): InputBytes {
    const chunk = this.#source
    this.#source = new InputBytes()
    return chunk
  }

  /** Ends the response, for a caller that does not want its body. */
  discard(): void {
    if (this.#state === 'open') this.fail(new OffloopError('ERR_OFFLOOP_CLOSED', 'the body was discarded'))
    else this.#source.clear()
  }

  /** Ends the request, wherever it is. */
  fail(reason: unknown): void {
    if (this.#state !== 'open') return
    this.#state = 'failed'
    this.#failure = reason
    this.#memory = undefined
    this.#source.clear()
    this.#decoder?.destroy()
    this.#abort()
    this.#head?.reject(reason)
    this.#body?.reject(reason)
    this.#chunk?.reject(reason)
    this.#leave()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // The call ended while undici waited for a connection.
    if (this.#state !== 'open') this.#abort()
  }

  onRequestUpgrade(): void {
    this.fail(new OffloopError('ERR_OFFLOOP_INTERNAL', 'the connection was upgraded'))
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: ResponseHeaders): void {
    if (status < 200 || this.#state !== 'open') return
    this.#memory?.answer()
    this.#connection = currentConnection()
    try {
      this.#readHead(status, headers)
    } catch (error) {
      this.fail(error)
      return
    }
    this.#head?.resolve({ status, headers })
    this.#head = undefined
  }

  onResponseData(_: Dispatcher.DispatchController, piece: Buffer): void {
    notePiece(piece)
    if (this.#state !== 'open') return
    this.#received += lengthOf(piece)
    if (this.#options.maxBytes < this.#received) this.#failTooLarge()
    else if (this.#codings.length === 0) this.#add(piece)
    else if (!this.#isDecoded) this.#decode(piece)
  }

  onResponseEnd(): void {
    this.#isReceived = true
    // The next response of the connection is another receiver's.
    if (this.#connection !== undefined) this.#continue()
    if (this.#state !== 'open') return
    this.#memory?.end()
    this.#memory = undefined
    if (this.#decoder === undefined || this.#isDecoded) this.#finish()
    else this.#decoder.end()
  }

  onResponseError(_: unknown, error: Error): void {
    this.fail(error)
  }

  #readHead(status: number, headers: ResponseHeaders): void {
    if (this.#options.method === 'HEAD' || status === 204 || status === 304) return
    const announced = sizeOf(headers)
    if (this.#options.maxBytes < announced) throw this.#tooLarge()
    this.#codings = codingsOf(headers['content-encoding'])
    const isFramed = !Number.isNaN(announced) || headers['transfer-encoding'] !== undefined
    this.#canPause = isFramed && !isClosing(headers['connection'])
    // One piece, so that nothing has to be joined.
    if (0 < announced && this.#codings.length === 0) check(this.#source.reserve(leastOf(announced, MOST_ANNOUNCED)))
  }

  /** Adds bytes of the body. The caller may change them afterwards. */
  #add(piece: Buffer): void {
    const rest = this.#limit - this.#size
    const failure = this.#source.copy(rest < lengthOf(piece) ? partOf(piece, 0, rest) : piece)
    if (failure !== null) {
      this.#failWith(() => check(failure))
      return
    }
    this.#size += lengthOf(piece)
    if (this.#options.maxBytes < this.#size) this.#failTooLarge()
    else if (this.#limit <= this.#size) this.#cut()
    else if (this.#chunk !== undefined) this.#endChunk()
    else if (!this.#isWanted && AHEAD <= this.#source.length) this.#pauseBody()
  }

  #endChunk(): void {
    this.#chunk?.resolve(this.#source.length === 0 ? undefined : this.#takeChunk())
    this.#chunk = undefined
  }

  #decode(piece: Buffer): void {
    this.#decoder ??= new Decoder(this.#codings, {
      take: (chunk) => {
        if (this.#state === 'open') this.#add(chunk)
      },
      end: () => {
        this.#isDecoded = true
        this.#continue()
        if (this.#isReceived) this.#finish()
      },
      fail: (error) => this.fail(error),
      drain: () => this.#continue(),
    })
    if (!this.#decoder.write(bufferFrom(piece))) this.#pause()
  }

  #finish(): void {
    if (this.#state !== 'open') return
    this.#state = 'whole'
    this.#body?.resolve(this.#source)
    this.#endChunk()
    this.#leave()
  }

  /** Ends a body of which enough has arrived. */
  #cut(): void {
    if (this.#state !== 'open') return
    this.#state = 'whole'
    this.#memory = undefined
    this.#decoder?.destroy()
    if (!this.#isReceived) this.#abort()
    this.#body?.resolve(this.#source)
    this.#leave()
  }

  #pauseBody(): void {
    if (this.#decoder === undefined) this.#pause()
    else this.#decoder.pause()
  }

  #resume(): void {
    if (this.#decoder === undefined) this.#continue()
    else this.#decoder.resume()
  }

  /**
   * Pauses the connection. One of ours reads no more; the chunk that undici reads now is still received. An ordinary
   * socket, behind a proxy, is paused by undici. undici 7 cannot bear the end of a connection while it is paused, so
   * there a body that may end with its connection arrives without a pause.
   */
  #pause(): void {
    if (this.#isPaused || this.#isReceived) return
    this.#isPaused = true
    if (this.#connection !== undefined) this.#connection.pause()
    else if (this.#canPause) this.#controller?.pause()
  }

  #continue(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    if (this.#connection !== undefined) this.#connection.resume()
    else if (this.#canPause) this.#controller?.resume()
  }

  /** Lets undici close the connection. The error is seen by nobody but subscribers of diagnostics channels. */
  #abort(): void {
    this.#controller?.abort(this.#failure instanceof Error ? this.#failure : new Error('aborted'))
  }

  #failTooLarge(): void {
    this.fail(this.#tooLarge())
  }

  #tooLarge(): OffloopError {
    return new OffloopError('ERR_OFFLOOP_TOO_LARGE', `the body is larger than ${this.#options.maxBytes} bytes`)
  }

  #failWith(thrower: () => void): void {
    try {
      thrower()
    } catch (error) {
      this.fail(error)
    }
  }

  #leave(): void {
    this.#forget?.()
    this.#forget = undefined
    this.#head = undefined
    this.#body = undefined
    this.#chunk = undefined
    this.#options.onEnd(this)
  }
}

/** Returns the size that a response announces; NaN if it announces none. */
function sizeOf({ 'content-length': text }: ResponseHeaders): number {
  return typeof text === 'string' ? Number(text) : Number.NaN
}

function isClosing(connection: string | string[] | undefined): boolean {
  return /\bclose\b/i.test([connection ?? ''].flat().join())
}
