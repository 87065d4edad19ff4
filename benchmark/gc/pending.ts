/**
 * MERGE: this file goes away. It stands for what `main` (result pool) and `http` (client) bring; at merge
 *   - `release` and `transfer: true` come from '../../src/index.ts', `resultsMade()` becomes `stats().results.made`,
 *   - `createClient` comes from '../../src/http/index.ts', with the same names as here.
 * Runs on the JS thread; `round.ts`, `receive.ts` and `encode.ts` use it.
 */

import * as offloop from '../../src/index.ts'

const given: unknown = Reflect.get(offloop, 'release')

export function release(...results: readonly unknown[]): void {
  if (typeof given === 'function') Reflect.apply(given, undefined, results)
}

/** Options of a call that takes its bytes. */
export const TRANSFER: { readonly transfer?: true } = typeof given === 'function' ? { transfer: true } : {}

/** ArrayBuffers that were made for results so far; NaN where offloop does not count them yet. */
export function resultsMade(): number {
  const results: unknown = Reflect.get(offloop.stats(), 'results')
  return typeof results === 'object' && results !== null ? Number(Reflect.get(results, 'made')) : Number.NaN
}

interface Client {
  request(url: string): Promise<{ readonly body: { bytes(): Promise<Uint8Array> } }>
  close(): Promise<void>
}

/** A client that is fetch: its rows are meaningless until `offloop/http` takes its place. */
export function createClient(): Client {
  return {
    request: async (url) => {
      const response = await fetch(url)
      return { body: { bytes: async () => new Uint8Array(await response.arrayBuffer()) } }
    },
    close: async () => undefined,
  }
}
