/**
 * Knows when the memory of a request's body is free again, on the JS thread. `client.ts` registers bodies, and
 * `receiver.ts` asks before it gives memory back.
 *
 * undici publishes `undici:client:sendHeaders` with the socket before it writes a request, and `undici:request:bodySent`
 * right after it has called `socket.write` with the body. The latter says nothing about the socket: what the kernel did
 * not take yet stays in the socket's queue and refers to our memory. A socket's `writableLength` counts the bytes of each
 * write until the write's callback, that is until the kernel has taken them, or TLS has encrypted and written them. So
 * the memory is free when both hold: the body was sent, and `writableLength` is 0.
 */

import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { propertyOf } from '../runtime/intrinsics.ts'
import { releaseView } from '../runtime/results.ts'

/** Bodies under way, by the very object that undici was given. */
const bodies = new WeakMap<object, RequestMemory>()

/** The memory of one request's body. */
export class RequestMemory {
  readonly #bytes: Uint8Array
  #socket: Socket | undefined
  #isSent = false
  #isLost = false

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    bodies.set(bytes, this)
    watchRequests()
  }

  /** Notes that undici writes the request to this socket. A request that is written again leaves its memory to V8. */
  start(socket: Socket): void {
    if (this.#socket !== undefined) this.#isLost = true
    this.#socket = socket
  }

  send(): void {
    this.#isSent = true
  }

  /** Notes that the head of the response came. If it came before the body had left, the memory is left to V8. */
  answer(): void {
    if (!this.#hasLeft()) this.#isLost = true
  }

  /** Gives the memory back if the body left before the response came. Called once the response has ended well. */
  end(): void {
    if (this.#isLost || !this.#hasLeft()) return
    this.#isLost = true
    // Views that others may have, such as subscribers of diagnostics channels, become empty.
    releaseView(this.#bytes)
  }

  #hasLeft(): boolean {
    return this.#isSent && this.#socket?.writableLength === 0
  }
}

let isWatching = false

function watchRequests(): void {
  if (isWatching) return
  isWatching = true
  subscribe('undici:client:sendHeaders', (message) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- undici documents the message
    const { socket } = message as { readonly socket: Socket }
    memoryOf(message)?.start(socket)
  })
  subscribe('undici:request:bodySent', (message) => memoryOf(message)?.send())
}

/** Returns the memory of the message's request. Messages of other clients have none. */
function memoryOf(message: unknown): RequestMemory | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- undici documents the message
  const { request } = message as { readonly request: object }
  const body = propertyOf(request, 'body')
  return typeof body === 'object' && body !== null ? bodies.get(body) : undefined
}
