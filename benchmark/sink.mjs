/** Answers every request when it has read it, with what its first argument is; says its port. */

import { createServer } from 'node:http'

const [, , answer = '{}'] = process.argv
const server = createServer((request, response) => {
  request.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(answer)).resume()
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
