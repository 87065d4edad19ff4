/** Reading in a process of its own, whose memory nothing else uses. */

import { resourceUsage } from 'node:process'
import { readJsonl, type ReadOptions } from '../../src/index.ts'
import { expect, play } from '../fixtures/scenario.ts'

const LENGTH = 2.6e9
const MEBIBYTE = 1024 * 1024

/** The file has a row, a row of 2.6 GB, and a row. No way of reading it may have needed memory for the long one. */
async function huge(): Promise<void> {
  const path = process.env['OFFLOOP_PATH'] ?? ''
  const bounded = { maxRowBytes: MEBIBYTE } as const
  const offsets = `0 ${8 + LENGTH + 1}`
  const bad: unknown[] = []
  const onBadRow = (row: unknown): number => bad.push(row)
  const before = resourceUsage().maxRSS
  const ways: readonly ((options: ReadOptions) => AsyncIterable<readonly { readonly offset: number }[]>)[] = [
    (options) => readJsonl(path, { ...options, reuse: true }),
    (options) => readJsonl(path, { ...options, last: 2, fields: ['/a'] }),
  ]
  for (const way of ways) {
    const found: number[] = []
    for await (const batch of way({ ...bounded, onBadRow })) for (const { offset } of batch) found.push(offset)
    expect(found.join(' ') === offsets, `rows at ${offsets}, not ${found.join(' ')}`)
  }
  const row = JSON.stringify({ offset: 8, length: LENGTH, cause: 'too-long' })
  expect(JSON.stringify(bad) === `[${row},${row}]`, `the long row, not ${JSON.stringify(bad)}`)
  const kibibytes = resourceUsage().maxRSS - before
  expect(kibibytes < 48 * 1024, `less than 48 MiB of memory, not ${kibibytes} KiB`)
}

await play({ huge })
