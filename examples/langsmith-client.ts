/**
 * LangSmith's client with the encoding of runs off the event loop, and no worker: `new OffloopClient()` in the place of `new Client()`.
 * Runs go to the endpoint for batches, whose body is one Buffer. Three seams: the method of the client that serializes, the choice of the
 * endpoint, and `fetchImplementation`. Where a version of the client has no such method, it serializes as it does.
 */

import { Client, type ClientConfig } from 'langsmith'
import { createEncoder, type Encoder } from 'offloop'
import { HttpError, post } from './post.ts'

type Ingest = Parameters<Client['multipartIngestRuns']>

export class OffloopClient extends Client {
  readonly #encoder: Encoder = createEncoder({ bigint: 'string', default: plainOf })

  constructor(config: ClientConfig = {}) {
    super({ fetchImplementation: send, ...config })
    const stock: unknown = Reflect.get(this, '_serializeBody')
    if (typeof stock !== 'function') return
    Reflect.set(this, '_serializeBody', (payload: unknown, context: string): Promise<unknown> =>
      // Circles, and whatever throws, are its own to write.
      this.#encoder.encode(payload).catch((): unknown => Reflect.apply(stock, this, [payload, context])),
    )
  }

  /** The client calls this where its server takes parts, each of which would be copied several times on its way. */
  override async multipartIngestRuns(...[runs, options]: Ingest): Promise<void> {
    const { runCreates = [], runUpdates = [] } = runs
    const haveAttachments = [...runCreates, ...runUpdates].some(({ attachments }) => attachments !== undefined)
    await (haveAttachments ? super.multipartIngestRuns(runs, options) : this.batchIngestRuns(runs, options))
  }
}

/** What the client makes of values that JSON does not know. */
function plainOf(value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries(value)
  if (value instanceof Set) return [...value]
  if (value instanceof RegExp) return String(value)
  if (value instanceof Error) return { name: value.name, message: value.message }
  return undefined
}

/** Bodies that are bytes are not copied; all others are left to fetch. */
const send: typeof fetch = async (input, init = {}) => {
  const { body, signal } = init
  if (!(body instanceof Uint8Array) || typeof input !== 'string') return await fetch(input, init)
  const headers = Object.fromEntries(new Headers(init.headers))
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  try {
    await post(input, bytes, { headers, signal: signal ?? undefined })
    return Response.json({})
  } catch (error) {
    if (error instanceof HttpError) return Response.json({}, { status: error.status })
    throw error
  }
}
