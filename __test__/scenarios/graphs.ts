/**
 * How much of a graph each entry point looks at. The lookups that offloop takes on import are counted, so nothing of it
 * is imported before that. Prints one line of JSON for each graph, entry point and setting of `circular`.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configure } from 'safe-stable-stringify'
import { isFull } from '../fixtures/extent.ts'
import { GRAPHS } from '../fixtures/graphs.ts'
import { play } from '../fixtures/scenario.ts'

/** What one entry point did with one graph. */
export interface GraphReads {
  readonly graph: string
  readonly isCircular: boolean
  readonly entry: string
  /** Written as safe-stable-stringify writes it. */
  readonly isSafe: boolean
  /** Properties that JSON.stringify, or safe-stable-stringify, reads of it in as many calls. */
  readonly reads: number
  readonly lookups: number
  readonly calls: number
  /** Calls that threw. */
  readonly refused: number
}

let lookups = 0

function count(target: object, name: string): void {
  const original: unknown = Reflect.get(target, name)
  if (typeof original !== 'function') throw new Error(`no function ${name}`)
  Reflect.set(target, name, (...args: readonly unknown[]): unknown => {
    lookups += 1
    return Reflect.apply(original, target, args)
  })
}

/** The same graph, all of proxies that count what is read of it. */
function watched(graph: object, read: () => void): unknown {
  const proxies = new WeakMap<object, object>()
  const watch = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value
    const known = proxies.get(value)
    if (known !== undefined) return known
    const proxy = new Proxy(value, {
      get(target, key) {
        read()
        return watch(Reflect.get(target, key))
      },
    })
    proxies.set(value, proxy)
    return proxy
  }
  return watch(graph)
}

/** How many properties it reads. */
function readsOf(graph: object, stringify: (value: unknown) => unknown): number {
  let reads = 0
  try {
    stringify(watched(graph, () => (reads += 1)))
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
  }
  return reads
}

function print(line: GraphReads): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

/** Enough for everything that is learned of a value that comes again. */
const CALLS = isFull ? 40 : 8
const stringifySafely = configure({ circularValue: 'c', deterministic: false })

async function measure(): Promise<void> {
  for (const name of ['getOwnPropertyDescriptor', 'keys']) count(Object, name)
  const { capture, createEncoder, encode, encodeLines, encodeMsgpack, encodeSync, openJsonl } =
    await import('../../src/index.ts')
  const { createBatcher } = await import('../../src/kit/index.ts')
  const folder = mkdtempSync(join(tmpdir(), 'offloop-graphs-'))
  let files = 0
  const ends: (() => unknown)[] = []
  /** Each gives a function that captures a value once. */
  const entries: Readonly<Record<string, (options: object) => (value: unknown) => unknown>> = {
    encode: (options) => (value) => encode(value, options),
    encodeSync: (options) => (value) => encodeSync(value, options),
    encodeLines: (options) => (value) => encodeLines([value], options),
    capture: (options) => (value) => capture(value, options).json(),
    encodeMsgpack: () => (value) => encodeMsgpack(value),
    'encode of an encoder'(options) {
      const encoder = createEncoder(options)
      return (value) => encoder.encode(value)
    },
    append(options) {
      files += 1
      const log = openJsonl(join(folder, `${files}.jsonl`), { durability: 'none', encode: options })
      ends.push(async () => (await log).close())
      return async (value) => (await log).append(value)
    },
    'Batcher.add'(options) {
      const batcher = createBatcher({ send: () => Promise.resolve(), encode: options })
      ends.push(() => batcher.flush())
      return (value) => {
        if (!batcher.add(value)) throw new TypeError('dropped')
      }
    },
  }
  for (const { name, isCircular, make } of GRAPHS) {
    for (const circular of ['throw', { text: 'c' }] as const) {
      const value = make()
      const reads = readsOf(value, circular === 'throw' ? JSON.stringify : stringifySafely)
      for (const [entry, start] of Object.entries(entries)) {
        const run = start({ circular })
        lookups = 0
        let refused = 0
        for (let call = 0; call < CALLS; call += 1) {
          try {
            await run(value)
          } catch (error) {
            if (!(error instanceof TypeError)) throw error
            refused += 1
          }
        }
        const isSafe = circular !== 'throw' && entry !== 'encodeMsgpack'
        print({ graph: name, isCircular, entry, isSafe, reads: reads * CALLS, lookups, calls: CALLS, refused })
      }
    }
  }
  for (const end of ends) await end()
  rmSync(folder, { recursive: true })
}

await play({ measure })
