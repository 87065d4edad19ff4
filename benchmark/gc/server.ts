/** An HTTP server in a process of its own, which answers every request with one body. `gc.ts` starts it. */

import { createServer } from 'node:http'
import { answerTo, listen } from '../channel.ts'
import { makeBody } from './bytes.ts'

/** Answers with its port. */
answerTo('start', (size: number): Promise<number> => {
  const body = makeBody(size)
  // A client that is blocked for long would find its connections closed.
  const server = createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, (_, response) => {
    response.writeHead(200, { 'content-length': size }).end(body)
  })
  return listen(server)
})
