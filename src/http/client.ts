/** `createClient`: HTTP for large JSON, on the JS thread. undici does HTTP; bodies arrive in recycled memory. */

import type { Agent, Dispatcher } from 'undici'
import { ReceivedBody, type BodyParseOptions, type ResponseBody } from './body.ts'
import { createConnect } from './connector.ts'
import { Receiver, type ResponseHeaders } from './receiver.ts'
import { RequestMemory } from './request-memory.ts'
import { prepareRequest, REQUEST_KEYS, type PreparedRequest, type RequestOptions } from './request.ts'
import { undici } from './undici.ts'
import type { Bytes } from '../runtime/bytes.ts'
import { BODY_KEYS } from '../parse/config.ts'
import { planParse } from '../parse/parse.ts'
import { invalidType, invalidValue, OffloopError } from '../runtime/errors.ts'
import { ownKeysOf, propertyOf } from '../runtime/intrinsics.ts'
import { copyOptions, readInteger, readLimit, tableOf, withoutPrototype } from '../runtime/options.ts'

/** Options of `createClient`. */
export interface ClientOptions {
  /**
   * Most bytes of a response's body, as it is sent and as it is decoded. A larger one rejects with
   * ERR_OFFLOOP_TOO_LARGE at once, and its connection is closed. @default Infinity
   */
  readonly maxBytes?: number | undefined
  /**
   * Options of undici's Agent: `connect` (TLS, `socketPath`, timeouts), `connections`, `pipelining`, `headersTimeout`,
   * `bodyTimeout`, … They go to undici as they are, but `connect` cannot be a function, and there are no `factory`, no
   * `interceptors` and no HTTP/2: each of these would see memory that the next read changes.
   */
  readonly agent?: Agent.Options | undefined
  /** Proxy for all requests. Its connections are undici's own, and cost as much as those. @default none */
  readonly proxy?: string | URL | undefined
  /** Bytes that one connection reads at once, from 4 KiB to 16 MiB. Each connection has so much memory. @default 256 KiB */
  readonly readBytes?: number | undefined
}

/** A response whose head has arrived. */
export interface Response {
  readonly status: number
  /** Header fields by their lower-case names. A field that came several times is a list. */
  readonly headers: ResponseHeaders
  readonly body: ResponseBody
}

/** Options of `post`. */
export interface PostOptions extends Omit<RequestOptions, 'json' | 'body'>, BodyParseOptions {}

/** A client with connections of its own. Every method that returns a promise rejects rather than throws. */
export interface Client extends AsyncDisposable {
  /**
   * Sends a request. Resolves when the head of the response has arrived. Rejects with undici's errors, with the
   * signal's reason, or with ERR_OFFLOOP_CLOSED after `close`. A request is sent once: retries are the caller's.
   */
  request(url: string | URL, options?: RequestOptions): Promise<Response>
  /**
   * Encodes and sends a value, checks that the status is 2xx, and parses the answer. Another status rejects with
   * ERR_OFFLOOP_STATUS: the error has the `status`, and its `cause` has the first 64 KiB of text as `body`.
   */
  post<T = unknown>(url: string | URL, json: unknown, options?: PostOptions): Promise<T>
  /** Waits for requests under way, until their bodies have arrived or were discarded; then closes the connections. */
  close(): Promise<void>
  /** Ends requests under way, which reject with ERR_OFFLOOP_CLOSED, and closes the connections. */
  destroy(): Promise<void>
  /** Calls `close`. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Creates a client. Throws for a wrong option. A response's body arrives in recycled memory, and a request's JSON is made
 * off the JS thread, so neither makes garbage for V8. The memory of a request's body serves later results once it was
 * sent and answered.
 */
export function createClient(options: ClientOptions = {}): Client {
  const own = copyOptions(options, CLIENT_KEYS)
  const maxBytes = readLimit('options.maxBytes', own.maxBytes, 0)
  const readBytes = readInteger('options.readBytes', own.readBytes, LEAST_READ, MOST_READ) ?? READ_BYTES
  return new PooledClient(openDispatcher(readAgent(own.agent), own.proxy, readBytes), maxBytes)
}

const CLIENT_KEYS = tableOf({ agent: true, maxBytes: true, proxy: true, readBytes: true })
const { json: _json, body: _body, ...ONLY_REQUEST } = REQUEST_KEYS
const POST_KEYS = tableOf({ ...ONLY_REQUEST, ...BODY_KEYS })

const READ_BYTES = 256 * 1024
const LEAST_READ = 4096
const MOST_READ = 16 * 1024 * 1024

/** Bytes of a body that the error for a status shows. */
const SHOWN = 64 * 1024

class PooledClient implements Client {
  readonly #dispatcher: Dispatcher
  readonly #maxBytes: number
  /** Requests that undici has. */
  readonly #receivers = new Set<Receiver>()
  /** Requests whose bodies are being made. */
  #preparing = 0
  #isDestroyed = false
  #closing: Promise<void> | undefined
  #onQuiet: (() => void) | undefined

  constructor(dispatcher: Dispatcher, maxBytes: number) {
    this.#dispatcher = dispatcher
    this.#maxBytes = maxBytes
  }

  async request(url: string | URL, options: RequestOptions = NO_OPTIONS): Promise<Response> {
    const own = copyOptions(options, REQUEST_KEYS)
    return await this.#send(this.#prepare(url, own, false))
  }

  async post<T = unknown>(url: string | URL, json: unknown, options: PostOptions = NO_OPTIONS): Promise<T> {
    const { lift, onMismatch, ...rest } = copyOptions(options, POST_KEYS)
    const own = withoutPrototype(rest)
    const plan = planParse(withoutPrototype({ lift, onMismatch }))
    const request = this.#prepare(url, withoutPrototype({ ...own, json, method: own.method ?? 'POST' }), true)
    const response = await this.#send(request)
    const isGood = 200 <= response.status && response.status < 300
    if (!isGood) throw await statusError(request, response)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller names the type
    return (await response.body.parsePlanned(plan)) as T
  }

  async close(): Promise<void> {
    this.#closing ??= this.#close()
    await this.#closing
  }

  async destroy(): Promise<void> {
    this.#isDestroyed = true
    this.#closing ??= Promise.resolve()
    const error = destroyedError()
    for (const receiver of this.#receivers) receiver.fail(error)
    await this.#dispatcher.destroy(error)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #prepare(url: string | URL, own: RequestOptions, isJson: boolean): PreparedRequest {
    if (this.#closing !== undefined) throw new OffloopError('ERR_OFFLOOP_CLOSED', 'the client is closed')
    return prepareRequest(url, own, isJson)
  }

  async #send(request: PreparedRequest): Promise<{ status: number; headers: ResponseHeaders; body: ReceivedBody }> {
    const receiver = await this.#start(request)
    const { status, headers } = await receiver.head
    return { status, headers, body: new ReceivedBody(receiver, request.signal) }
  }

  /** Hands the request to undici once its body is made. */
  async #start(request: PreparedRequest): Promise<Receiver> {
    this.#preparing += 1
    try {
      const body = await request.body
      if (this.#isDestroyed) throw destroyedError()
      if (request.signal?.aborted === true) throw request.signal.reason
      return this.#dispatch(request, body)
    } finally {
      this.#preparing -= 1
      this.#reportQuiet()
    }
  }

  #dispatch({ isOurs, ...request }: PreparedRequest, body: Bytes | undefined): Receiver {
    const { origin, path, method, headers, signal, maxBytes = this.#maxBytes } = withoutPrototype(request)
    const memory = isOurs && body !== undefined ? new RequestMemory(body) : undefined
    const receiver = new Receiver({ method, maxBytes, signal, memory, onEnd: (done) => this.#leave(done) })
    this.#receivers.add(receiver)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- undici takes any method
    const options = withoutPrototype({ origin, path, method, headers, body }) as Dispatcher.DispatchOptions
    try {
      this.#dispatcher.dispatch(options, receiver)
    } catch (error) {
      receiver.fail(error)
    }
    return receiver
  }

  #leave(receiver: Receiver): void {
    this.#receivers.delete(receiver)
    this.#reportQuiet()
  }

  #reportQuiet(): void {
    if (this.#preparing === 0 && this.#receivers.size === 0) this.#onQuiet?.()
  }

  async #close(): Promise<void> {
    const quiet = new Promise<void>((resolve) => {
      this.#onQuiet = resolve
    })
    this.#reportQuiet()
    await quiet
    if (!this.#isDestroyed) await this.#dispatcher.close()
  }
}

const NO_OPTIONS: object = tableOf({})

function destroyedError(): OffloopError {
  return new OffloopError('ERR_OFFLOOP_CLOSED', 'the client was destroyed')
}

async function statusError(
  { method, origin, path, signal }: PreparedRequest,
  { status, body }: { readonly status: number; readonly body: ReceivedBody },
): Promise<OffloopError> {
  const cause = Object.assign(new Error(`the server answered ${status}`), { body: await shownOf(body, signal) })
  const [place] = path.split('?')
  const message = `${method} ${origin}${place} was answered with ${status}`
  return new OffloopError('ERR_OFFLOOP_STATUS', message, { status, cause })
}

/** Returns what an error shows of a body: nothing if the body is broken. */
async function shownOf(body: ReceivedBody, signal: AbortSignal | undefined): Promise<string> {
  try {
    return await body.textOfFirst(SHOWN)
  } catch (error) {
    if (signal?.aborted === true) throw error
    // The status says more than an error of its body.
    return ''
  }
}

/** Options of an Agent that would let others see memory that the next read changes. */
const REFUSED = ['factory', 'interceptors', 'allowH2', 'useH2c'] as const

/** Copies the own properties of the agent's options. undici checks all but those that cannot be combined. */
function readAgent(agent: unknown): Agent.Options {
  const copy = copyOwn('options.agent', agent)
  for (const name of REFUSED) {
    const value = copy[name]
    if (value !== undefined && value !== false)
      throw invalidValue(`options.agent.${name}`, 'cannot be combined with the connections of this client', value)
  }
  const { connect } = copy
  if (typeof connect === 'function') {
    throw invalidValue(
      'options.agent.connect',
      'must be options of a connection, not a function: this client makes its connections itself',
      connect,
    )
  }
  if (connect !== undefined) copy['connect'] = copyOwn('options.agent.connect', connect)
  return copy
}

function copyOwn(name: string, value: unknown): Record<string, unknown> {
  const copy: Record<string, unknown> = withoutPrototype({})
  if (value === undefined) return copy
  if (typeof value !== 'object' || value === null) throw invalidType(name, 'of type object', value)
  for (const key of ownKeysOf(value)) {
    if (typeof key === 'string') copy[key] = propertyOf(value, key)
  }
  return copy
}

function openDispatcher(agent: Agent.Options, proxy: unknown, readBytes: number): Dispatcher {
  const { connect: given, ...rest } = withoutPrototype(agent)
  const options = withoutPrototype(rest)
  const connect = typeof given === 'object' ? given : undefined
  if (proxy === undefined) return new undici.Agent({ ...options, connect: createConnect(options, connect, readBytes) })
  if (typeof proxy !== 'string' && !(proxy instanceof URL))
    throw invalidType('options.proxy', 'of type string or an instance of URL', proxy)
  // An HTTP/2 connection through the tunnel would be undici's own, but nothing here needs it.
  const tls: object = { ...connect, allowH2: false }
  return new undici.ProxyAgent({
    ...options,
    uri: String(new URL(proxy)),
    requestTls: tls,
    proxyTls: { allowH2: false },
  })
}
