import test from 'ava'
import { runScenario } from './fixtures/child.ts'
import { isFull } from './fixtures/extent.ts'

for (const [name, what] of [
  ['transferred', 'inputs transferred right after the call'],
  ['resized', 'inputs resized right after the call'],
  ['reused', 'an input that is the result of a call still under way to others'],
  ['abandoned', 'results transferred and moved in workers that then end, read afterwards,'],
  ['shared', 'shared memory written while it is read'],
  ['terminated', 'workers terminated with tasks queued and running'],
  ['crowded', 'the addon loaded in eight workers at once'],
  ['garbage', 'the addon called with garbage'],
] as const) {
  test(`${what} neither crash nor change results`, async (t) => {
    const ended = await runScenario('crash', name)
    t.is(ended.stdout, 'played\n', `${ended.signal} ${ended.stderr}`)
    t.is(ended.code, 0, ended.stderr)
  })
}

test('process.exit with tasks queued and running ends with its code', async (t) => {
  const ended = await runScenario('crash', 'exits')
  t.deepEqual([ended.code, ended.signal], [7, null], ended.stderr)
})

if (isFull) {
  test('ten thousand calls of all forms, with collections, leave memory flat', async (t) => {
    const ended = await runScenario('memory', 'flat')
    t.is(ended.stdout, 'played\n', `${ended.signal} ${ended.stderr}`)
  })
}
