import { saveFile } from '../../src/index.ts'
import { expect, play } from '../fixtures/scenario.ts'

const path = process.env.OFFLOOP_FILE ?? ''

/** 512 MiB of rows, in a process that has no room for them. */
async function bounded(): Promise<void> {
  const text = 'x'.repeat(2 ** 20)
  await saveFile(path, [text], { format: 'jsonl' })
  const before = process.resourceUsage().maxRSS
  async function* rows(): AsyncGenerator {
    for (let row = 0; row < 512; row += 1) yield text
  }
  await saveFile(path, rows(), { format: 'jsonl', durability: 'none' })
  const grown = (process.resourceUsage().maxRSS - before) / 1024
  expect(grown < 192, `at most 192 MiB, not ${grown}`)
  await saveFile(path, null)
}

async function unawaited(): Promise<void> {
  void saveFile(path, [1, 2], { format: 'jsonl' })
}

await play({ bounded, unawaited })
