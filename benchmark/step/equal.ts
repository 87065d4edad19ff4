/**
 * Checks what a step wrote: experts are those that the server sent, and a digest of rows and batch tells whether two steps
 * wrote the same. Runs on the JS thread of `step.ts`, between measurements.
 */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { unpack } from 'msgpackr'
import { LAYERS, plan, ROW, Routes, TOPK, type Sizes } from './plan.ts'

/** The digest of a step's folder. Throws where rows are missing or experts are wrong. */
export function digestOf(sizes: Sizes, folder: string): string {
  const rows = rowsIn(folder)
  if (rows.length !== sizes.rollouts) throw new Error(`${rows.length} rows of ${sizes.rollouts} rollouts`)
  const hash = createHash('sha256').update(JSON.stringify(rows))
  const routes = new Routes(sizes)
  for (const { id, length } of plan(sizes)) {
    const { routed_experts: experts, ...rest } = sampleIn(folder, id)
    const data = Buffer.concat([routes.of(id, 0, length - 1), Buffer.alloc(ROW)])
    const expected = { data, shape: [length, LAYERS, TOPK], dtype: 'uint8' }
    if (!isDeepStrictEqual(experts, expected)) throw new Error(`sample ${id} has wrong experts`)
    hash.update(JSON.stringify(rest))
  }
  return hash.digest('hex')
}

/** Rows in the order of their ids: they are appended as rollouts end. */
function rowsIn(folder: string): unknown[] {
  const rows = readFileSync(join(folder, 'rollouts.jsonl'), 'utf8').trimEnd().split('\n')
  return rows.map((row): unknown => JSON.parse(row)).toSorted((a, b) => idOf(a) - idOf(b))
}

function idOf(row: unknown): number {
  return Number(Reflect.get(Object(row), 'id'))
}

function sampleIn(folder: string, id: number): { readonly routed_experts?: unknown } {
  const sample: unknown = unpack(readFileSync(join(folder, `sample-${id}.msgpack`)))
  if (typeof sample !== 'object' || sample === null) throw new Error(`sample ${id} is no map`)
  return sample
}
