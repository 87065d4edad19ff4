/** Opens a log, appends, flushes, closes; or saves a file: whenever it is asked to, until nobody asks. Tells how each of these ended. */

import { stat } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { openJsonl, saveFile, type JsonlFile, type JsonlOptions, type SaveOptions } from '../../../src/index.ts'
import { tell } from './tell.ts'

export interface LogCalls {
  readonly path: string
  readonly options: JsonlOptions
  /** Groups of rows: those of one are appended at once. */
  readonly groups: readonly (readonly unknown[])[]
}

export interface SaveCalls {
  readonly path: string
  readonly options: SaveOptions
  readonly value: unknown
}

/** How a promise ended. */
export interface Ended {
  readonly code?: unknown
  readonly syscall?: unknown
  readonly path?: unknown
  readonly cause?: unknown
  readonly message?: string
  readonly value?: unknown
}

async function endOf(call: Promise<unknown>): Promise<Ended> {
  try {
    return { value: await call }
  } catch (error) {
    return errorOf(error)
  }
}

function errorOf(error: unknown): Ended {
  if (!(error instanceof Error)) return { message: String(error) }
  const told = { message: error.message, code: Reflect.get(error, 'code'), path: Reflect.get(error, 'path') }
  const cause = error.cause === undefined ? {} : { cause: errorOf(error.cause) }
  return { ...told, syscall: Reflect.get(error, 'syscall'), ...cause }
}

/** What became of a log, in this order. */
export interface LogEnded {
  readonly opened: Ended
  readonly groups: readonly (readonly Ended[])[]
  readonly flushed: Ended
  readonly closed: Ended
}

async function playLog({ path, options, groups }: LogCalls): Promise<LogEnded> {
  let file: JsonlFile
  try {
    file = await openJsonl(path, options)
  } catch (error) {
    return { opened: errorOf(error), groups: [], flushed: {}, closed: {} }
  }
  const ended: Ended[][] = []
  for (const rows of groups) ended.push(await Promise.all(rows.map((row) => endOf(file.append(row)))))
  const flushed = await endOf(file.flush())
  return { opened: { value: file.repaired }, groups: ended, flushed, closed: await endOf(file.close()) }
}

async function* rowsOf(rows: Iterable<unknown>): AsyncGenerator {
  yield* rows
}

function playSave({ path, options, value }: SaveCalls): Promise<Ended> {
  const isRows = options.format === 'jsonl' && Array.isArray(value)
  const saved = options.format === 'bytes' ? Buffer.from(String(value)) : isRows ? rowsOf(value) : value
  return endOf(saveFile(path, saved, options))
}

async function play(calls: LogCalls | SaveCalls): Promise<void> {
  tell(JSON.stringify('groups' in calls ? await playLog(calls) : await playSave(calls)))
}

// The thread of the pool is there before anybody looks.
await stat('.')
tell(String(process.pid))
for await (const line of createInterface(process.stdin)) await play(JSON.parse(line))
