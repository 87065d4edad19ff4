/**
 * A server between agents and a model, in a process of its own: it holds the body of each request while the model answers.
 * What becomes of a body that is delivered is up to the registry, the first argument. The second, if there is one, is how many
 * MB of other objects live. `GET /` tells the memory; Linux counts the peak.
 */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'

/** How long the model takes. */
const ANSWER_MS = 20

const registries = {
  /** Only ever adds, as what the published numbers are of did: bodies stay until the process ends. */
  naive() {
    const bodies = new Map()
    return { put: (id, body) => bodies.set(id, body), deliver: (id) => bodies.get(id) }
  },
  /** Forgets as the store does, and leaves the rest to V8 and the C library. */
  map() {
    const bodies = new Map()
    const deliver = (id) => {
      const body = bodies.get(id)
      bodies.delete(id)
      return body
    }
    return { put: (id, body) => bodies.set(id, body), deliver }
  },
  async store() {
    const { createRolloutStore } = await import('offloop/kit')
    return createRolloutStore()
  },
}

const [, , kind, liveMb] = process.argv
if (liveMb !== undefined) {
  const { fillHeap } = await import('./heap.ts')
  fillHeap(Number(liveMb))
}
const registry = await registries[kind]()
const delay = monitorEventLoopDelay({ resolution: 1 })

const server = createServer(async (request, response) => {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(request.method === 'GET' ? look() : await turn(request)))
})
server.listen(0, '127.0.0.1', () => process.send(server.address().port))

async function turn(request) {
  delay.enable()
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  registry.put(request.url, Buffer.concat(chunks))
  await sleep(ANSWER_MS)
  const body = registry.deliver(request.url)
  return { digest: createHash('sha256').update(body).digest('hex') }
}

function look() {
  delay.disable()
  const status = readFileSync('/proc/self/status', 'utf8')
  const resident = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)[1]) * 1024
  return { peak: resident('VmHWM'), now: resident('VmRSS'), longestMs: delay.max / 1e6, ...registry.stats?.() }
}
