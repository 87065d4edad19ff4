import { getEventListeners } from 'node:events'
import { Readable } from 'node:stream'
import test from 'ava'
import { decodeBase64, encodeBase64, stats } from '../src/index.ts'
import { runScenario } from './fixtures/child.ts'
import { noise } from './fixtures/text.ts'

const TEXT = Buffer.from(noise(6_000_000).toString('base64'))

test.serial('a signal already aborted rejects with its reason before anything starts', async (t) => {
  const reason = new Error('mine')
  const { completed } = stats()
  await t.throwsAsync(decodeBase64(TEXT, { signal: AbortSignal.abort(reason) }), { is: reason })
  await t.throwsAsync(encodeBase64(TEXT, { signal: AbortSignal.abort(reason) }), { is: reason })
  await t.throwsAsync(decodeBase64('QQ==', { signal: AbortSignal.abort() }), { any: true, name: 'AbortError' })
  t.is(stats().completed, completed)
})

test('calls that wait are rejected at once, the others are not disturbed', async (t) => {
  const ended = await runScenario('pool', 'aborted')
  t.is(ended.stdout, 'played\n', ended.stderr)
})

test('no listener is left behind, onabort is untouched, and many calls share one listener', async (t) => {
  const { signal } = new AbortController()
  const handler = (): void => undefined
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the property must not be touched
  signal.onabort = handler
  const calls = Array.from({ length: 50 }, () => decodeBase64(TEXT, { signal }))
  t.is(getEventListeners(signal, 'abort').length, 2)
  await Promise.all(calls)
  await t.throwsAsync(decodeBase64('*'.repeat(2_000_000), { signal }))
  t.is(signal.onabort, handler)
  t.is(getEventListeners(signal, 'abort').length, 1)
})

test('calls under way or done when they are aborted reject with the reason or not at all', async (t) => {
  const controller = new AbortController()
  const calls = Array.from({ length: 10 }, () => decodeBase64(TEXT, { signal: controller.signal }))
  controller.abort('enough')
  t.is(getEventListeners(controller.signal, 'abort').length, 0)
  for (const result of await Promise.allSettled(calls)) {
    if (result.status === 'fulfilled') t.is(result.value.length, 6_000_000)
    else t.is(result.reason, 'enough')
  }
})

test('a long string stops between its parts', async (t) => {
  const controller = new AbortController()
  const text = 'QUJD'.repeat(20_000_000)
  const call = decodeBase64(text, { signal: controller.signal })
  setTimeout(() => controller.abort(), 1)
  await t.throwsAsync(call, { any: true, name: 'AbortError' })
  t.is((await decodeBase64('QUJD')).toString(), 'ABC')
})

test('an abort destroys a Node stream that is under way', async (t) => {
  const controller = new AbortController()
  const stream = new Readable({ read: () => undefined })
  stream.push('QUJD')
  const call = decodeBase64(stream, { signal: controller.signal })
  setImmediate(() => controller.abort())
  await t.throwsAsync(call, { any: true, name: 'AbortError' })
  t.true(stream.destroyed)
})

test('an abort cancels a web stream that is under way, with its reason', async (t) => {
  const controller = new AbortController()
  let cancelledWith: unknown
  const stream = new ReadableStream<Uint8Array>({
    cancel(reason) {
      cancelledWith = reason
    },
  })
  const call = decodeBase64(stream, { signal: controller.signal })
  setImmediate(() => controller.abort('stop'))
  t.is(await call.catch((reason: unknown) => reason), 'stop')
  t.is(cancelledWith, 'stop')
})

test('an abort ends any other async iterable', async (t) => {
  const controller = new AbortController()
  let isEnded = false
  const iterable = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise<IteratorResult<Uint8Array>>(() => undefined),
      return: () => {
        isEnded = true
        return Promise.reject(new Error('nobody is told of this'))
      },
    }),
  }
  const call = decodeBase64(iterable, { signal: controller.signal })
  setImmediate(() => controller.abort())
  await t.throwsAsync(call, { any: true, name: 'AbortError' })
  t.true(isEnded)
})

test('a signal already aborted leaves a stream alone', async (t) => {
  const stream = Readable.from([Buffer.from('QUJD')])
  await t.throwsAsync(decodeBase64(stream, { signal: AbortSignal.abort() }), { any: true, name: 'AbortError' })
  t.false(stream.destroyed)
  t.is((await decodeBase64(stream)).toString(), 'ABC')
})

test('a task that runs stops when it next looks, one that libuv has not begun at once', async (t) => {
  const ended = await runScenario('pool', 'stops')
  t.is(ended.stdout, 'played\n', ended.stderr)
})

for (const [name, what] of [
  ['clears', 'a task that clears what is behind its result stops with the piece under way'],
  ['ends', 'a task that decodes or encodes stops with the piece under way'],
  ['calls', 'every call has a look for each piece of its work, and is stopped by any of them'],
] as const) {
  test(what, async (t) => {
    const ended = await runScenario('abort', name)
    t.is(ended.stdout, 'played\n', ended.stderr)
  })
}
