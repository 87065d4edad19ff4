/**
 * The queue of a trace client, as Weave's: calls are recorded as they are now and sent in batches; whatever they hold, none stops the
 * others. `record` takes a fraction of a JSON.stringify of the call, and what is done to its output afterwards changes nothing.
 */

import { createBatcher, type Batcher } from 'offloop/kit'
import { isTemporary, post } from './post.ts'

export interface Call {
  readonly id: string
  readonly op: string
  readonly startedAt: Date
  readonly endedAt: Date
  readonly inputs: unknown
  readonly output?: unknown
  readonly exception?: string | undefined
}

/** Calls that will not arrive, and why. */
export interface Lost {
  readonly calls: number
  readonly reason: string
  readonly error?: unknown
}

export interface TraceQueueOptions {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly onLost: (lost: Lost) => void
}

export class TraceQueue implements AsyncDisposable {
  readonly #batcher: Batcher<Call>

  constructor({ url, headers, onLost }: TraceQueueOptions) {
    this.#batcher = createBatcher({
      envelope: ['{"batch":[', ']}'],
      encode: { bigint: 'string', circular: { text: '[Circular]' } },
      maxBatchBytes: 10 * 2 ** 20,
      retry: { attempts: 5, baseMs: 1000, maxMs: 60_000, when: isTemporary },
      send: (body, { signal }) => post(url, body, { headers, signal }),
      onDrop: ({ items, reason, error }) => onLost({ calls: items, reason, error }),
    })
  }

  /** False if the call is lost already, and reported. Never throws. */
  record(call: Call): boolean {
    return this.#batcher.add(call)
  }

  /** `op`, whose calls are recorded with what they were given, return, and throw. */
  wrap<A extends readonly unknown[], R>(name: string, op: (...inputs: A) => Promise<R>): (...inputs: A) => Promise<R> {
    return async (...inputs) => {
      const begun = { id: crypto.randomUUID(), op: name, startedAt: new Date(), inputs }
      try {
        const output = await op(...inputs)
        this.record({ ...begun, endedAt: new Date(), output })
        return output
      } catch (error) {
        this.record({ ...begun, endedAt: new Date(), exception: String(error) })
        throw error
      }
    }
  }

  /** Before the process exits. Resolves to how many calls are still on their way at the timeout. */
  async flush(timeoutMs?: number): Promise<number> {
    const { pending } = await this.#batcher.flush({ timeoutMs })
    return pending
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#batcher[Symbol.asyncDispose]())
  }
}
