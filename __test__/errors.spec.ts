import { readFileSync } from 'node:fs'
import test from 'ava'
import { decodeBase64, OffloopError } from '../src/index.ts'
import { check, InputBytes } from '../src/runtime/native.ts'
import { runScenario } from './fixtures/child.ts'

test('an OffloopError says what, where and why', (t) => {
  const cause = new Error('below')
  const error = new OffloopError('ERR_OFFLOOP_TORN', 'a torn row', { path: 'a.jsonl', offset: 7, cause })
  t.true(error instanceof Error)
  t.is(error.name, 'OffloopError')
  t.is(String(error), 'OffloopError: a torn row')
  t.true(error.stack?.startsWith('OffloopError: a torn row\n    at '))
  t.like(error, { code: 'ERR_OFFLOOP_TORN', path: 'a.jsonl', offset: 7, cause })
  t.false('pointer' in error)
  t.false('turn' in error)
  t.deepEqual(Object.keys(new OffloopError('ERR_OFFLOOP_LIFT', '', { pointer: '/a', turn: 0 })), [
    'code',
    'pointer',
    'turn',
  ])
})

for (const [what, text] of [
  ['at once', '*'],
  ['in a task', Buffer.alloc(2_000_000, '*')],
  ['in parts', '*'.repeat(2_000_000)],
] as const) {
  test(`the stack of what fails ${what} shows the caller`, async (t) => {
    async function callerOfOffloop(): Promise<void> {
      await decodeBase64(text)
    }
    const error = await t.throwsAsync(callerOfOffloop(), { code: 'ERR_OFFLOOP_BASE64' })
    t.regex(error?.stack ?? '', /at (async )?callerOfOffloop .*errors\.spec\.ts/)
  })
}

test('the addon’s codes are those of the contract', (t) => {
  const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
  const known = new Set(read('../src/runtime/errors.ts').match(/ERR_OFFLOOP_\w+/g))
  const used = read('../crates/binding/failure.rs').match(/ERR_OFFLOOP_\w+/g) ?? []
  t.true(used.length > 0)
  for (const code of used) t.true(known.has(code), code)
})

test('memory for an input that cannot be had is a failure with its code', (t) => {
  const source = new InputBytes()
  t.like(source.reserve(2 ** 60), { code: 'ERR_OFFLOOP_TOO_LARGE' })
  t.throws(() => check(source.reserve(2 ** 60)), { instanceOf: OffloopError, code: 'ERR_OFFLOOP_TOO_LARGE' })
  t.is(source.length, 0)
})

test('memory for a result that cannot be had rejects with ERR_OFFLOOP_TOO_LARGE and takes nothing', async (t) => {
  const ended = await runScenario('exhausted', 'results')
  t.is(ended.stdout, 'played\n', ended.stderr)
})

for (const [name, what] of [
  ['task', 'a panic in a task rejects with ERR_OFFLOOP_INTERNAL, the process and the other tasks go on'],
  ['sync', 'a panic on the JS thread throws ERR_OFFLOOP_INTERNAL'],
] as const) {
  test(what, async (t) => {
    const ended = await runScenario('panic', name)
    t.is(ended.stdout, 'played\n', ended.stderr)
    t.is(ended.code, 0)
  })
}
