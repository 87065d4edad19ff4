/**
 * Memory of request bodies that is given back is overwritten at once here: `giveBack` of `src/runtime/results.ts` is
 * replaced. Servers look at every byte that they are sent.
 */

import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import type { Client } from '../../src/http/index.ts'
import { changeModules } from '../fixtures/edit-module.ts'
import { expect, play } from '../fixtures/scenario.ts'

const given = { count: 0 }
Object.assign(globalThis, {
  overwrite: (bytes: Uint8Array): void => {
    // Encoders give memory back too.
    if (new Error('stack').stack?.includes('request-memory') === true) given.count += 1
    bytes.fill(0xee)
  },
})
await changeModules({
  edit: {
    url: new URL('../../src/runtime/results.ts', import.meta.url).href,
    from: 'function giveBack(',
    to: 'function giveBack(bytes) { globalThis.overwrite(bytes) }\nfunction replaced(',
  },
})
const { createClient } = await import('../../src/http/index.ts')

/** More than the kernel takes of a body that nobody reads. */
const LARGE = 24 * 1024 * 1024

function valueOf(seed: number, size: number): object {
  return {
    seed,
    text: String(seed)
      .repeat(Math.ceil(size / String(seed).length))
      .slice(0, size),
  }
}

/** What a server saw. */
interface Seen {
  /** Bodies that arrived whole. */
  whole: number
  /** Bytes that were not those of the request. */
  wrong: number
}

/** Reads requests from a connection and compares every byte of a body with what its seed says. */
class Checker {
  readonly #seen: Seen
  #head = ''
  #expected = Buffer.alloc(0)
  #at = 0
  readonly onHead: () => void
  readonly onBody: () => void

  constructor(seen: Seen, onHead: () => void, onBody: () => void) {
    this.#seen = seen
    this.onHead = onHead
    this.onBody = onBody
  }

  add(chunk: Buffer): void {
    if (this.#expected.length === 0) {
      const start = this.#head.length
      this.#head += chunk.toString('latin1')
      const end = this.#head.indexOf('\r\n\r\n')
      if (end === -1) return
      const [, seed = '', size = ''] = /x-seed: (\d+) (\d+)/.exec(this.#head) ?? []
      this.#expected = Buffer.from(JSON.stringify(valueOf(Number(seed), Number(size))))
      this.#at = 0
      this.#head = ''
      this.onHead()
      if (start <= end + 4) this.add(chunk.subarray(end + 4 - start))
      return
    }
    const rest = this.#expected.subarray(this.#at, this.#at + chunk.length)
    const part = chunk.subarray(0, rest.length)
    if (!part.equals(rest)) this.#seen.wrong += 1
    this.#at += part.length
    if (this.#at < this.#expected.length) return
    this.#expected = Buffer.alloc(0)
    this.#seen.whole += 1
    this.onBody()
    if (part.length < chunk.length) this.add(chunk.subarray(part.length))
  }
}

const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'

/** A server that answers when the head came, or when the body came. A slow one reads nothing for a while. */
async function serve(answersEarly: boolean, isSlow: boolean): Promise<{ url: string; seen: Seen; close: () => void }> {
  const seen: Seen = { whole: 0, wrong: 0 }
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    const early = (): void => {
      if (answersEarly) socket.write(ANSWER)
      if (!isSlow) return
      socket.pause()
      void setTimeout(150).then(() => socket.resume())
    }
    const late = (): void => {
      if (!answersEarly) socket.write(ANSWER)
    }
    const checker = new Checker(seen, early, late)
    socket.on('data', (chunk: Buffer) => checker.add(chunk))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address
  const { port } = server.address() as AddressInfo
  const close = (): void => {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  return { url: `http://127.0.0.1:${port}`, seen, close }
}

async function post(client: Client, url: string, seed: number, size: number, signal?: AbortSignal): Promise<void> {
  await client.post(url, valueOf(seed, size), { headers: { 'x-seed': `${seed} ${size}` }, signal })
}

await play({
  /** Bodies that were sent and answered: all memory comes back, and no server finds other bytes. */
  answered: async () => {
    const { url, seen, close } = await serve(false, false)
    const client = createClient({ agent: { connections: 4 } })
    for (let round = 0; round < 5; round += 1) {
      const calls = Array.from({ length: 12 }, (_, index) =>
        post(client, url, round * 12 + index, 70_000 + index * 300_000),
      )
      await Promise.all(calls)
    }
    await client.close()
    close()
    expect(seen.whole === 60 && seen.wrong === 0, `60 whole bodies, not ${JSON.stringify(seen)}`)
    expect(given.count === 60, `60 bodies given back, not ${given.count}`)
  },

  /** A server that answers before it reads: the memory may still be in the socket's queue. */
  early: async () => {
    const { url, seen, close } = await serve(true, true)
    const client = createClient({ agent: { connections: 4 } })
    await Promise.all(Array.from({ length: 12 }, (_, index) => post(client, url, index, LARGE)))
    for (let tries = 0; tries < 1000 && seen.whole < 12; tries += 1) await setTimeout(10)
    await client.close()
    close()
    expect(seen.wrong === 0, 'no wrong bytes')
    // The last body of a connection may be cut off by `close`, so not all need be whole.
    expect(8 <= seen.whole, `whole bodies, not ${seen.whole}`)
    expect(given.count === 0, `nothing given back, not ${given.count}`)
  },

  /** Requests that are aborted while they are sent. */
  aborted: async () => {
    const { url, seen, close } = await serve(false, true)
    const client = createClient({ agent: { connections: 4 } })
    for (let index = 0; index < 20; index += 1) {
      const call = post(client, url, index, LARGE, AbortSignal.timeout(60 + index * 5))
      const reason: unknown = await call.catch((error: unknown) => error)
      expect(reason instanceof Error && reason.name === 'TimeoutError', 'the reason of the signal')
    }
    await setTimeout(300)
    await client.close()
    close()
    expect(seen.wrong === 0, 'no wrong bytes')
    expect(given.count === 0, `nothing given back, not ${given.count}`)
  },
})
