/**
 * Sinks of encoded values: a response, a file, and a body of fetch. Each takes strings and bytes alike. Runs on the JS
 * thread of a measured process; `calls.ts` opens them.
 */

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { openSync, readFileSync, rmSync, write } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Child, listen } from '../channel.ts'
import { HASH_PATH, type GetOrder } from './receiver-paths.ts'
import type { Sink } from './report.ts'

/** What a sink takes. */
export type Output = string | Uint8Array<ArrayBuffer>

/**
 * Makes an output and sends it. Resolves when the receiver has all bytes, so that their memory may be released. Returns
 * their SHA-256 as the receiver saw them if asked, else an empty text.
 */
export type Send = (make: () => Promise<Output>, isHashed: boolean) => Promise<string>

export function openSink(sink: Sink): Promise<Send> {
  if (sink === 'response') return openResponses()
  if (sink === 'fetch') return openFetch()
  return Promise.resolve(sink === 'file' ? openFile() : keepNothing)
}

async function keepNothing(make: () => Promise<Output>, isHashed: boolean): Promise<string> {
  const output = await make()
  return isHashed ? hashOf(output) : ''
}

/** Answers a GET of the receiver for each output. */
async function openResponses(): Promise<Send> {
  const receiver = new Child('json/receiver')
  const server = createServer()
  const port = await listen(server)
  return async (make, isHashed) => {
    const received = receiver.ask<string>('get', { port, isHashed } satisfies GetOrder)
    const [, response]: readonly unknown[] = await once(server, 'request')
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the second argument of the event
    ;(response as ServerResponse).end(await make())
    return await received
  }
}

async function openFetch(): Promise<Send> {
  const receiver = new Child('json/receiver')
  const port = await receiver.ask<number>('listen')
  return async (make, isHashed) => {
    const url = `http://127.0.0.1:${port}${isHashed ? HASH_PATH : '/'}`
    const response = await fetch(url, { method: 'POST', body: await make() })
    return await response.text()
  }
}

const writeLater = promisify(write)

function openFile(): Send {
  const path = join(tmpdir(), `offloop-calls-${process.pid}.json`)
  const fd = openSync(path, 'w+')
  process.once('exit', () => rmSync(path, { force: true }))
  return async (make, isHashed) => {
    const output = await make()
    await (typeof output === 'string' ? writeLater(fd, output, 0, 'utf8') : writeLater(fd, output, 0, output.length, 0))
    return isHashed ? hashOf(readFileSync(path)) : ''
  }
}

function hashOf(output: Output): string {
  return createHash('sha256').update(output).digest('hex')
}
