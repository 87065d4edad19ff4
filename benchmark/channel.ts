/**
 * Processes of a benchmark and what they say to each other: questions with one answer, and news. A child ends with its
 * parent. Runs on the JS thread of each; the step and `gc` use it.
 */

import { fork, type ChildProcess } from 'node:child_process'
import type { Server } from 'node:http'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'

interface Message {
  readonly topic: string
  readonly body: unknown
  readonly error?: string
}

/** In a child: what it answers, once it is asked. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- both sides are of one version
export function answerTo<Q>(topic: string, answer: (question: Q) => unknown): void {
  process.on('message', (message: Message) => {
    if (message.topic !== topic) return
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- both sides are of one version
    void settle(topic, () => answer(message.body as Q))
  })
  if (process.listenerCount('disconnect') === 0) process.once('disconnect', () => process.exit())
}

async function settle(topic: string, answer: () => unknown): Promise<void> {
  try {
    tell(topic, await answer())
  } catch (error) {
    process.send?.({ topic, body: null, error: inspect(error) })
  }
}

/** In a child: news. */
export function tell(topic: string, body: unknown): void {
  process.send?.({ topic, body })
}

/** A process of its own, in the one that starts it. */
export class Child {
  readonly #process: ChildProcess
  readonly #name: string
  #isWanted = true

  /** Starts `benchmark/<name>.ts`; `flags` are Node's. */
  constructor(name: string, flags: readonly string[] = []) {
    const path = fileURLToPath(new URL(`${name}.ts`, import.meta.url))
    this.#name = name
    // In a group of its own: a Ctrl-C reaches who started it, which ends it.
    this.#process = fork(path, { detached: true, execArgv: [...process.execArgv, ...flags] })
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- both sides are of one version
  ask<A>(topic: string, body: unknown = null): Promise<A> {
    return new Promise((resolve, reject) => {
      const gone = (): void => {
        if (this.#isWanted) reject(new Error(`the process '${this.#name}' has ended`))
      }
      this.#process.once('exit', gone)
      const take = (message: Message): void => {
        if (message.topic !== topic) return
        this.#process.off('message', take).off('exit', gone)
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- both sides are of one version
        if (message.error === undefined) resolve(message.body as A)
        else reject(new Error(message.error))
      }
      this.#process.on('message', take)
      this.#process.send({ topic, body })
    })
  }

  /** Until what it gives is called. */
  onNews(topic: string, take: (body: unknown) => void): () => void {
    const hear = (message: Message): void => {
      if (message.topic === topic) take(message.body)
    }
    this.#process.on('message', hear)
    return () => this.#process.off('message', hear)
  }

  kill(): Promise<void> {
    this.#isWanted = false
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return Promise.resolve()
    return new Promise((resolve) => {
      this.#process.once('exit', () => resolve())
      this.#process.kill('SIGKILL')
    })
  }
}

/** On a free port of the loopback. */
export function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}
