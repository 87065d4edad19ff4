/** Values without an end, which user code makes: each entry point must refuse them, within the heap that it has. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  capture,
  createEncoder,
  encode,
  encodeLines,
  encodeMsgpack,
  encodeSync,
  openJsonl,
  saveFile,
  type EncodeOptions,
} from '../../src/index.ts'
import { createBatcher } from '../../src/kit/index.ts'
import { expect, play } from '../fixtures/scenario.ts'

interface Endless {
  readonly value: unknown
  readonly options: EncodeOptions
  /** How the pointer of the error begins. */
  readonly pointer: string
  /** MessagePack asks no replacer and no `default`. */
  readonly isJsonOnly: boolean
}

class Answering {
  toJSON(): object {
    return { n: new Answering() }
  }
}

function getting(): object {
  return {
    get n() {
      return getting()
    },
  }
}

function selfSimilar(): object {
  return new Proxy(
    {},
    {
      ownKeys: () => ['n'],
      get: (_, key) => (key === 'n' ? selfSimilar() : undefined),
      getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }),
    },
  )
}

function arraysInArrays(): object {
  return new Proxy([], { get: (_, key) => (key === 'length' ? 1 : key === '0' ? arraysInArrays() : undefined) })
}

const STEPS = 16
const NAMED = '/n'.repeat(STEPS)
const NUMBERED = '/0'.repeat(STEPS)

const ENDLESS: Readonly<Record<string, Endless>> = {
  toJSON: { value: new Answering(), options: {}, pointer: NAMED, isJsonOnly: false },
  getter: { value: getting(), options: {}, pointer: NAMED, isJsonOnly: false },
  proxy: { value: selfSimilar(), options: {}, pointer: NAMED, isJsonOnly: false },
  'proxy of an array': { value: arraysInArrays(), options: {}, pointer: NUMBERED, isJsonOnly: false },
  replacer: { value: 1, options: { replacer: (_, value) => [value] }, pointer: NUMBERED, isJsonOnly: true },
  default: { value: () => 1, options: { default: (value) => [value] }, pointer: NUMBERED, isJsonOnly: true },
}

function isRefused(error: unknown, pointer: string): boolean {
  if (!(error instanceof Error)) return false
  return Reflect.get(error, 'code') === 'ERR_OFFLOOP_TOO_LARGE' && Reflect.get(error, 'pointer') === pointer
}

async function refuse(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'offloop-endless-'))
  for (const [name, { value, options, pointer, isJsonOnly }] of Object.entries(ENDLESS)) {
    const encoder = createEncoder(options)
    const path = join(folder, `${name}.jsonl`)
    const log = await openJsonl(path, { durability: 'none', encode: options })
    const drops: unknown[] = []
    const batcher = createBatcher({
      send: () => Promise.resolve(),
      encode: options,
      onDrop: ({ error }) => drops.push(error),
    })
    const entries: Readonly<Record<string, () => unknown>> = {
      encode: () => encode(value, options),
      encodeSync: () => encodeSync(value, options),
      encodeLines: () => encodeLines([1, value], options),
      capture: () => capture(value, options),
      'an encoder': () => encoder.encode(value),
      'an encoder, at once': () => encoder.encodeSync(value),
      append: () => log.append(value),
      saveFile: () => saveFile(path, value, { durability: 'none', encode: options }),
      msgpack: () => (isJsonOnly ? encode(value, options) : encodeMsgpack(value)),
      batcher() {
        batcher.add(value)
        throw drops[0]
      },
    }
    for (const [entry, run] of Object.entries(entries)) {
      let outcome: unknown = 'a result'
      try {
        outcome = await run()
      } catch (error) {
        outcome = error
      }
      expect(isRefused(outcome, pointer), `${entry} to refuse an endless ${name}, not ${String(outcome)}`)
    }
    expect(encodeSync([1]).toString() === '[1]', 'what comes next to be encoded')
    await log.close()
  }
  rmSync(folder, { recursive: true })
}

/** As deep as a value may be. */
async function allowed(): Promise<void> {
  const depth = 100_000
  let arrays: unknown = 1
  let objects: unknown = 1
  for (let level = 0; level < depth; level += 1) {
    arrays = [arrays]
    objects = { a: objects }
  }
  const inArrays = `${'['.repeat(depth)}1${']'.repeat(depth)}`
  const inObjects = `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
  for (let round = 0; round < 3; round += 1) {
    expect((await encode(arrays)).toString() === inArrays, 'arrays')
    expect(encodeSync(objects).toString() === inObjects, 'objects')
    expect((await encode(objects, { sortKeys: true })).toString() === inObjects, 'sorted objects')
    expect((await encodeMsgpack(arrays)).length === depth + 1, 'MessagePack')
    using snapshot = capture(arrays)
    expect((await snapshot.json()).toString() === inArrays, 'a snapshot')
  }
}

await play({ refuse, allowed })
