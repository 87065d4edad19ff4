/** A client that asks an orchestrator for its health 100 times a second, whether it has answered before or not. */

import { Agent, get } from 'node:http'
import { answerTo } from '../channel.ts'

const PERIOD_MS = 10

let latencies: number[] = []
const agent = new Agent({ keepAlive: true })
const pending = new Set<Promise<void>>()
let timer: NodeJS.Timeout | undefined

answerTo('ping', async (port: number) => {
  // The first connection is no part of it.
  await ping(port, performance.now())
  latencies = []
  let due = performance.now() + PERIOD_MS
  timer = setInterval(() => {
    // Those that this process comes late to count from when they were due.
    for (; due <= performance.now(); due += PERIOD_MS) note(ping(port, due))
  }, PERIOD_MS / 2)
})

/** Rejects where a ping was not answered at all. */
answerTo('stop', async () => {
  clearInterval(timer)
  await Promise.all(pending)
  return latencies
})

function note(sent: Promise<void>): void {
  pending.add(sent)
  void sent.then(
    () => pending.delete(sent),
    () => undefined,
  )
}

async function ping(port: number, due: number): Promise<void> {
  while (!(await isAnswered(port))) continue
  latencies.push(performance.now() - due)
}

/** Not where a connection was kept that the other side has closed meanwhile. */
function isAnswered(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const asked = get({ host: '127.0.0.1', port, path: '/health', agent }, (answer) => {
      answer.resume().once('end', () => resolve(true))
    })
    asked.once('error', (error) => (asked.reusedSocket ? resolve(false) : reject(error)))
  })
}
