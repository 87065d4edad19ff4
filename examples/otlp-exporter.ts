/**
 * A SpanExporter of OTLP/HTTP JSON: it sends what `@opentelemetry/exporter-trace-otlp-http` does, encoded off the event loop. An export is
 * one request. `new BatchSpanProcessor(new OffloopExporter({ url }))`
 */

import { ExportResultCode, type ExportResult } from '@opentelemetry/core'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-node'
import { createBatcher, type Batcher } from 'offloop/kit'
import { groupsOf } from './otlp-spans.ts'
import { isTemporary, post } from './post.ts'

export interface OffloopExporterOptions {
  /** @default 'http://localhost:4318/v1/traces' */
  readonly url?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** @default 10 000 */
  readonly timeoutMillis?: number | undefined
}

export class OffloopExporter implements SpanExporter {
  readonly #batcher: Batcher<object>
  /** Why spans of the latest exports were dropped. */
  #error: unknown

  constructor(options: OffloopExporterOptions = {}) {
    const { url = 'http://localhost:4318/v1/traces', headers, timeoutMillis } = options
    this.#batcher = createBatcher({
      envelope: ['{"resourceSpans":[', ']}'],
      // What is large is sent as it is, as the stock exporter does.
      maxItemBytes: 2 ** 29,
      maxQueuedBytes: 2 ** 30,
      sendTimeoutMs: timeoutMillis ?? 10_000,
      retry: { attempts: 5, baseMs: 1000, maxMs: 5000, when: isTemporary },
      send: (body, { signal }) => post(url, body, { headers, signal }),
      onDrop: ({ reason, error }) => (this.#error = error ?? new Error(reason)),
    })
  }

  export(spans: readonly ReadableSpan[], tell: (result: ExportResult) => void): void {
    const { dropped } = this.#batcher.stats()
    for (const group of groupsOf(spans)) this.#batcher.add(group)
    void this.#settle(dropped).then(tell)
  }

  async forceFlush(): Promise<void> {
    await this.#batcher.flush()
  }

  async shutdown(): Promise<void> {
    await this.#batcher[Symbol.asyncDispose]()
  }

  /** Nothing was dropped since, if `dropped` is what was before. */
  async #settle(dropped: number): Promise<ExportResult> {
    await this.#batcher.flush()
    if (this.#batcher.stats().dropped === dropped) return { code: ExportResultCode.SUCCESS }
    const error = this.#error instanceof Error ? this.#error : new Error(String(this.#error))
    return { code: ExportResultCode.FAILED, error }
  }
}
