/** Runs each input of `steps/inputs.ts` at three sizes, and has callgrind write what each took. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { loadHooks } from '../fixtures/hooks.ts'
import { expect, play } from '../fixtures/scenario.ts'
import { INPUTS } from '../steps/inputs.ts'

const hooks = loadHooks()
const only = process.env['OFFLOOP_ONLY']

function collect(): void {
  const { gc } = globalThis
  if (gc === undefined) throw new Error('counting needs --expose-gc')
  gc()
}

async function count(): Promise<void> {
  for (const { name, size, make } of INPUTS) {
    if (only !== undefined && !name.includes(only)) continue
    // What happens once only, code that is loaded and learned, does not grow.
    await make(size)()
    // Three times, as the collector may come in between.
    for (const [index, factor] of [1, 4, 16, 1, 4, 16, 1, 4, 16].entries()) {
      const work = make(size * factor)
      await nextTurn()
      // What earlier inputs left is collected now, not meanwhile: all rounds of an input may come to the same moment.
      if (factor === 16 && index < 3) collect()
      expect(hooks.dumpCounts('before'), 'callgrind to count')
      await work()
      hooks.dumpCounts(`${factor} ${name}`)
    }
  }
}

await play({ count })
