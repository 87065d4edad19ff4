import test from 'ava'
import { decodeBase64, encode, stats } from '../src/index.ts'
import { keepTrimmed, trimMemory } from '../src/kit/index.ts'
import { runScenario } from './fixtures/child.ts'
import { hasGlibc } from './fixtures/glibc.ts'
import { noise } from './fixtures/text.ts'

test.serial('memory is trimmed by a task, where the C library has a call for it', async (t) => {
  const { completed } = stats()
  const { trimmed, rssBefore, rssAfter } = await trimMemory()
  t.is(trimmed, hasGlibc)
  t.true(completed < stats().completed)
  t.true(10e6 < rssBefore && 10e6 < rssAfter)
})

test.serial('recycled memory that is idle goes back', async (t) => {
  await decodeBase64(Buffer.from(noise(3_000_000).toString('base64')))
  await encode(Array.from({ length: 300_000 }, (_, index) => index / 3))
  t.true(0 < stats().idleBytes)
  await trimMemory()
  t.is(stats().idleBytes, 0)
  t.is((await encode([1])).toString(), '[1]')
})

test.serial('trims may overlap each other and everything else', async (t) => {
  const text = Buffer.from(noise(600_000).toString('base64'))
  const calls = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? trimMemory() : decodeBase64(text)))
  t.is((await Promise.all(calls)).length, 20)
})

const WRONG: readonly (readonly [what: string, options: unknown, code: string])[] = [
  ['null', null, 'ERR_INVALID_ARG_TYPE'],
  ['a number', 10, 'ERR_INVALID_ARG_TYPE'],
  ['an unknown option', { intervalMs: 10 }, 'ERR_INVALID_ARG_VALUE'],
  ['an interval of zero', { everyMs: 0 }, 'ERR_OUT_OF_RANGE'],
  ['an interval that timers do not take', { everyMs: 2 ** 31 }, 'ERR_OUT_OF_RANGE'],
  ['an interval that is a string', { everyMs: '10' }, 'ERR_INVALID_ARG_TYPE'],
]

for (const [what, options, code] of WRONG) {
  test(`keepTrimmed refuses ${what} with ${code}`, (t) => {
    t.throws(() => Reflect.apply(keepTrimmed, undefined, [options]), { code })
  })
}

for (const [name, what, needsGlibc] of [
  ['trimmed', 'freed pages of the heap go back to the system', true],
  ['kept', 'memory that is let go is trimmed before long, and only then', true],
  ['disposed', 'a keeper that is disposed trims no more', true],
  ['keeping', 'a keeper keeps no process alive', false],
] as const) {
  const run = needsGlibc && !hasGlibc ? test.skip : test
  run(what, async (t) => {
    const { stdout, stderr } = await runScenario('kit', name)
    t.is(stdout, 'played\n', stderr)
  })
}
