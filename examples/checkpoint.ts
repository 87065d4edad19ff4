/**
 * An evaluation that can be killed at any moment and then goes on where it was. Each item's row is appended as soon as it
 * is there, durably, without holding the event loop; what has a row when the evaluation starts again is not run again.
 */

import { openJsonl, readJsonl, saveFile } from 'offloop'

export interface Item {
  readonly id: string
}

export interface Evaluation<T extends Item> {
  /** Of checkpoints, one row for each item, in the order in which they are done. */
  readonly path: string
  readonly items: readonly T[]
  /** What is to be kept of an item. What it throws ends the evaluation; what was kept by then stays. */
  readonly run: (item: T) => Promise<object>
  /** @default 32 */
  readonly concurrency?: number
}

/** Tells how many items had a row already, and how many have been run. */
export async function evaluate<T extends Item>(
  evaluation: Evaluation<T>,
): Promise<{ readonly resumed: number; readonly evaluated: number }> {
  const { path, items, run, concurrency = 32 } = evaluation
  // First, whatever is there: it repairs what a crash has torn, and keeps a second evaluation out.
  const log = await openJsonl(path)
  try {
    const done = await idsIn(path)
    const waiting = items.filter(({ id }) => !done.has(id))
    const queue = waiting.values()
    const work = async (): Promise<void> => {
      for (const item of queue) await log.append({ id: item.id, ...(await run(item)) })
    }
    await Promise.all(Array.from({ length: concurrency }, work))
    return { resumed: items.length - waiting.length, evaluated: waiting.length }
  } finally {
    await log.close()
  }
}

async function idsIn(path: string): Promise<Set<unknown>> {
  const ids = new Set<unknown>()
  for await (const rows of readJsonl(path, { fields: ['/id'] })) {
    for (const { fields } of rows) ids.add(fields['/id'])
  }
  return ids
}

/** The rows in the order of the items, in a file that is there as a whole or not at all. */
export async function publish(path: string, items: readonly Item[], to: string): Promise<void> {
  const rows = new Map<unknown, unknown>()
  for await (const batch of readJsonl<Item>(path, { as: 'value' })) {
    for (const { value } of batch) rows.set(value.id, value)
  }
  await saveFile(
    to,
    items.flatMap(({ id }) => rows.get(id) ?? []),
    { format: 'jsonl' },
  )
}
