/**
 * Runs the code of large calls once, on small values, when the event loop is first idle after the import. Code that ran
 * before is compiled, and libuv's threads are running: the first large call takes 1–2 ms less. Runs on the JS thread, in
 * slices of about a millisecond; `index.ts` starts it.
 */

import { setTimeout } from 'node:timers'
import { tuning } from '../capture/tuning.ts'

/** Encodes a value for nobody. */
type Encode = (value: unknown) => unknown

/** Values that take each way of a large call. */
const SAMPLES: readonly (() => unknown)[] = [
  // JSON.stringify; the text becomes bytes at once.
  (): unknown => [{ text: '' }],
  // JSON.stringify; the text becomes bytes in a task.
  (): unknown => repeated(400, ' '.repeat(200)),
  // A walk, which a long string makes worth it.
  (): unknown => ({ text: LONG }),
  (): unknown => ({ text: LONG, ints: [1, 2], doubles: [0.5], part: { a: null, b: true }, list: [{ c: 'd' }] }),
]

/** Longer than a result that is made at once. */
const LONG = ' '.repeat(70_000)

/** Encodes the samples, each in a turn of its own. The timers keep no process alive. */
export function warmWhenIdle(makeEncode: () => Encode): void {
  const begin = (): void => {
    if (tuning.isRehearsed) void warm(makeEncode(), 0)
  }
  setTimeout(begin, 0).unref()
}

async function warm(encode: Encode, index: number): Promise<void> {
  const make = SAMPLES[index]
  if (make === undefined) return
  try {
    await encode(make())
  } catch {
    // A replaced built-in throws. The calls that need it reject; nobody waits for this one.
    return
  }
  setTimeout(() => void warm(encode, index + 1), 0).unref()
}

function repeated(count: number, text: string): string[] {
  const list: string[] = []
  for (let index = 0; index < count; index += 1) list[index] = text
  return list
}
