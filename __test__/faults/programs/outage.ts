/** Writes to logs and files, new ones in new folders among them, until the disk fails; tells what was acknowledged, and waits for a word. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { openJsonl, saveFile, type Durability } from '../../../src/index.ts'
import { contentOf, rowOf } from './rows.ts'
import { tell } from './tell.ts'

export interface Outage {
  readonly folder: string
  readonly durability: Durability
  /** So many logs, and then it ends. */
  readonly logs: number
}

/** What was acknowledged: so many rows of a log; or the content of the file `saved`. */
export interface Acknowledged {
  readonly log: number
  readonly rows: number
  readonly saved: number
}

export const GROUPS = [1, 3, 1, 12] as const

const { folder, durability, logs }: Outage = JSON.parse(process.env.OFFLOOP_ROUND ?? '')
const words = createInterface(process.stdin)[Symbol.asyncIterator]()

async function acknowledge(what: Acknowledged): Promise<void> {
  tell(JSON.stringify(what))
  await words.next()
}

async function writeLog(log: number): Promise<void> {
  const path = join(folder, `of ${log}`, 'deep', 'rows.jsonl')
  await using file = await openJsonl(path, { durability })
  let rows = 0
  for (const size of GROUPS) {
    await Promise.all(Array.from({ length: size }, (_, index) => file.append(rowOf(log, rows + index))))
    rows += size
    await acknowledge({ log, rows, saved: log - 1 })
  }
  await saveFile(join(folder, 'saved'), Buffer.from(contentOf(log)), { format: 'bytes', durability })
  await acknowledge({ log, rows, saved: log })
}

async function play(): Promise<void> {
  mkdirSync(folder, { recursive: true })
  for (let log = 1; log <= logs; log += 1) await writeLog(log)
}

// The disk fails: that is how it is to end.
await play().catch((error: unknown) => tell(`ended ${String(error)}`))
process.exit(0)
