import { writeSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { evaluate, publish } from '../../examples/checkpoint.ts'
import { play } from '../fixtures/scenario.ts'

const path = process.env.OFFLOOP_FILE ?? ''
const items = Array.from({ length: 1000 }, (_, index) => ({ id: `item-${index}`, index }))

/** Of items, before it kills itself. */
const mostRuns = Number(process.env.OFFLOOP_RUNS ?? Infinity)

/** Says of each item that it is run, and works on each for as many turns as its number says. */
async function evaluation(): Promise<void> {
  let runs = 0
  const run = async ({ index }: { readonly index: number }): Promise<object> => {
    writeSync(1, `run ${index}\n`)
    runs += 1
    for (let turn = 0; turn < index % 7; turn += 1) await nextTurn()
    if (mostRuns <= runs) process.kill(process.pid, 'SIGKILL')
    return { reward: index / 1000, completion: 'x'.repeat((index % 50) * 400) }
  }
  const { resumed, evaluated } = await evaluate({ path, items, run })
  process.stdout.write(`resumed ${resumed} evaluated ${evaluated}\n`)
  await publish(path, items, `${path}.sorted`)
}

await play({ evaluation })
