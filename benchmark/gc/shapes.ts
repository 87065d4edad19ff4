/** Values that `encode.ts` encodes, by name. Runs on the JS thread of `gc.ts` and its processes. */

import { many, prose, Random, rollouts, SHAPES } from '../documents.ts'

const MESSAGES = 300
const MESSAGE_LENGTH = 15_000

/** In the order they are measured in. */
export const VALUES: Readonly<Record<string, () => unknown>> = {
  '10⁶ doubles': () => madeBy('10⁶ doubles'),
  '300 chat messages': () =>
    many(MESSAGES, new Random(1), (random, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: prose(random, MESSAGE_LENGTH),
    })),
  '16 rollouts': () => madeBy('16 rollouts'),
  'one string': () => madeBy('one string'),
  '200 rollouts': () => rollouts(200),
}

function madeBy(name: string): unknown {
  const shape = SHAPES.find((one) => one.name === name)
  if (shape === undefined) throw new Error(`no shape '${name}'`)
  return shape.make()
}
