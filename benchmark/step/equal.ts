/** Whether both ways wrote the same: rows, batch, experts; and the experts that the server answered with. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { unpack } from 'msgpackr'
import { LAYERS, plan, ROW, Routes, TOPK, type Sizes } from './plan.ts'

/** Throws where something is not. */
export function checkEqual(sizes: Sizes, folders: readonly [plain: string, offloop: string]): void {
  const [plainRows, rows] = [rowsIn(folders[0]), rowsIn(folders[1])]
  if (plainRows.length !== sizes.rollouts || !isDeepStrictEqual(plainRows, rows)) throw new Error('other rows')
  const [plainBatch, batch] = [batchIn(folders[0], sizes.rollouts), batchIn(folders[1], sizes.rollouts)]
  if (!isDeepStrictEqual(plainBatch, batch)) throw new Error('another batch')
  const routes = new Routes(sizes)
  for (const { id, length } of plan(sizes)) {
    const expected = Buffer.concat([routes.of(id, 0, length - 1), Buffer.alloc(ROW)])
    const shape = [length, LAYERS, TOPK]
    const experts = Reflect.get(Object(batch[id]), 'routed_experts')
    if (!isDeepStrictEqual(experts, { data: expected, shape, dtype: 'uint8' })) throw new Error('other experts')
  }
}

/** In the order of their ids: they are appended as rollouts end. */
function rowsIn(folder: string): unknown[] {
  const rows = readFileSync(join(folder, 'rollouts.jsonl'), 'utf8').trimEnd().split('\n')
  return rows.map((row): unknown => JSON.parse(row)).toSorted((a, b) => idOf(a) - idOf(b))
}

function idOf(row: unknown): number {
  return Number(Reflect.get(Object(row), 'id'))
}

function batchIn(folder: string, samples: number): unknown[] {
  const ids = Array.from({ length: samples }, (_, id) => id)
  return ids.map((id): unknown => unpack(readFileSync(join(folder, `sample-${id}.msgpack`))))
}
