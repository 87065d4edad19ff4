/**
 * Receives what a measured process sends: as a server that reads bodies, and as a client that reads responses. Runs in a
 * process of its own; `sinks.ts` starts it. The SHA-256 of the bytes is made where it is asked for: before anything is timed.
 */

import { createHash } from 'node:crypto'
import { Agent, createServer, get, type IncomingMessage } from 'node:http'
import { answerTo, listen } from '../channel.ts'
import { HASH_PATH, type GetOrder } from './receiver-paths.ts'

const agent = new Agent({ keepAlive: true, maxSockets: 1 })
const server = createServer((request, response) => {
  void read(request, request.url === HASH_PATH).then((hash) => response.end(hash))
})

answerTo('listen', () => listen(server))

answerTo('get', ({ port, isHashed }: GetOrder): Promise<string> => {
  return new Promise((resolve, reject) => {
    get({ port, host: '127.0.0.1', agent }, (response) => {
      read(response, isHashed).then(resolve, reject)
    }).on('error', reject)
  })
})

/** Reads a body to its end; returns its SHA-256, or an empty text. */
async function read(body: IncomingMessage, isHashed: boolean): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of body) if (isHashed) hash.update(chunk)
  return isHashed ? hash.digest('hex') : ''
}
