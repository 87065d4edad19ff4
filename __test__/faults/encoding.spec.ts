import { readFileSync } from 'node:fs'
import test from 'ava'
import { openJsonl } from '../../src/index.ts'
import { makeFile } from '../fixtures/folder.ts'

test('nothing is written of a row that fails while it is captured, whatever comes before and behind it', async (t) => {
  const path = makeFile('')
  const circle: unknown[] = [1, { deep: ['text'] }]
  circle.push(circle)
  const thrower = {
    first: [1, 2, 3],
    get second(): never {
      throw new Error('no second')
    },
  }
  await using file = await openJsonl(path)
  const rows = [{ a: 1 }, circle, [2], { a: { b: thrower } }, 'three', 10n]
  const outcomes = await Promise.allSettled(rows.map((row) => file.append(row)))
  t.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled', 'rejected'],
  )
  t.is(readFileSync(path, 'utf8'), '{"a":1}\n[2]\n"three"\n')
})
