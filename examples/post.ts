/** Sends a body that is one Buffer with node:http, which does not copy it; fetch does. */

import { Agent, request } from 'node:http'

export class HttpError extends Error {
  readonly status: number

  constructor(status: number) {
    super(`the server answers ${status}`)
    this.status = status
  }
}

/** Whether another attempt may go better: the server is busy, or could not be asked. */
export function isTemporary(error: unknown): boolean {
  return !(error instanceof HttpError) || [408, 429, 500, 502, 503, 504].includes(error.status)
}

const agent = new Agent({ keepAlive: true })

export interface PostOptions {
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly signal?: AbortSignal | undefined
}

/** Resolves when all of the answer is there, and rejects where it is none of success. */
export function post(url: string, body: Buffer, { headers = {}, signal }: PostOptions = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = {
      method: 'POST',
      agent,
      headers: { 'Content-Type': 'application/json', 'Content-Length': body.length, ...headers },
      ...(signal !== undefined && { signal }),
    }
    const sent = request(url, options, (response) => {
      const { statusCode = 0 } = response
      response.on('error', reject).on('end', () => (statusCode < 300 ? resolve() : reject(new HttpError(statusCode))))
      response.resume()
    })
    sent.on('error', reject).end(body)
  })
}
