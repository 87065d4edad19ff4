/** Saves one content after the other in the place of the last, until it is killed. */

import { saveFile, type Durability } from '../../../src/index.ts'
import { contentOf, rowOf, shapeOf } from './rows.ts'
import { tell } from './tell.ts'

export interface Saves {
  readonly path: string
  readonly durability: Durability
  /** Of the first content. */
  readonly version: number
}

export interface SavesUntil {
  readonly saves: readonly Saves[]
  /** It kills itself so many microseconds after it began to save so many, and one more. */
  readonly files: number
  readonly microseconds: number
}

const { saves, files, microseconds }: SavesUntil = JSON.parse(process.env.OFFLOOP_ROUND ?? '')
let left = files

async function* rowsOf(version: number, count: number): AsyncGenerator {
  for (let index = 0; index < count; index += 1) yield rowOf(version, index)
}

function save({ path, durability }: Saves, version: number): Promise<unknown> {
  const { format, rows } = shapeOf(version)
  if (format === 'jsonl') return saveFile(path, rowsOf(version, rows), { format, durability })
  if (format === 'bytes') return saveFile(path, Buffer.from(contentOf(version)), { format, durability })
  const value = Array.from({ length: rows }, (_, index) => rowOf(version, index))
  return saveFile(path, value, { format, durability })
}

function die(): void {
  const until = performance.now() + microseconds / 1000
  while (performance.now() < until);
  process.kill(process.pid, 'SIGKILL')
}

async function saveAll(one: Saves, number: number): Promise<never> {
  for (let { version } = one; ; version += 1) {
    const saved = save(one, version)
    if (left === 0) setImmediate(die)
    left -= 1
    await saved
    tell(`${number} saved`)
  }
}

await Promise.all(saves.map(saveAll))
