/** The trace queue of the examples: whatever calls hold, each is sent or reported. */

import test from 'ava'
import { TraceQueue, type Call, type Lost } from '../../examples/trace-queue.ts'
import { startServer, type TestServer } from '../fixtures/server.ts'

const MIB = 2 ** 20
const DATE = new Date(0)

function call(id: string, output: unknown): Call {
  return { id, op: 'test', startedAt: DATE, endedAt: DATE, inputs: [id], output }
}

function circle(): object {
  const value: Record<string, unknown> = {}
  value['self'] = value
  return value
}

function callsOf({ received }: TestServer): Call[] {
  return received.flatMap(({ body }): Call[] => JSON.parse(body.toString()).batch)
}

test('calls of every size and kind are sent, or reported; none stops the others', async (t) => {
  using server = await startServer()
  const lost: Lost[] = []
  const queue = new TraceQueue({ url: server.url, onLost: (one) => lost.push(one) })
  const sizes = [0, 1000, MIB, 10 * MIB, 10 * MIB + 1, 20 * MIB, 70 * MIB, 5]
  const taken = sizes.map((size, index) => queue.record(call(`size ${index}`, 'x'.repeat(size))))
  t.true(taken.every((isTaken) => isTaken))
  t.true(queue.record(call('bigint', { total: 2n ** 70n })))
  t.true(queue.record(call('circle', circle())))
  const throws = {
    toJSON: () => {
      throw new Error('no JSON')
    },
  }
  t.false(queue.record(call('throws', throws)))
  t.true(queue.record(call('after', 'all is well')))
  t.is(await queue.flush(), 0)

  const arrived = new Map(callsOf(server).map(({ id, output }) => [id, output]))
  for (const [index, size] of sizes.entries()) {
    if (size < 64 * MIB) t.is(String(arrived.get(`size ${index}`)).length, size)
  }
  t.deepEqual(arrived.get('bigint'), { total: String(2n ** 70n) })
  t.deepEqual(arrived.get('circle'), { self: '[Circular]' })
  t.is(arrived.get('after'), 'all is well')
  t.is(arrived.size, sizes.length + 2)
  t.deepEqual(
    lost.map(({ calls, reason }) => [calls, reason]),
    [
      [1, 'unencodable'],
      [1, 'too-large'],
    ],
  )
})

test('what is done to an output after it was recorded changes nothing', async (t) => {
  using server = await startServer()
  await using queue = new TraceQueue({ url: server.url, onLost: () => t.fail() })
  const chat = queue.wrap('chat', async (messages: { text: string }[]) => ({
    messages: [...messages],
    usage: { tokens: 5 },
  }))
  const messages = [{ text: 'question' }]
  const output = await chat(messages)
  output.messages.push({ text: 'added' })
  output.usage.tokens = 0
  Object.assign(messages[0] ?? {}, { text: 'changed' })
  await queue.flush()
  const [recorded] = callsOf(server)
  t.deepEqual(recorded?.output, { messages: [{ text: 'question' }], usage: { tokens: 5 } })
  t.deepEqual(recorded?.inputs, [[{ text: 'question' }]])
})

test('an op that throws is recorded, and throws', async (t) => {
  using server = await startServer()
  await using queue = new TraceQueue({ url: server.url, onLost: () => t.fail() })
  const fails = queue.wrap('fails', () => Promise.reject(new RangeError('of an op')))
  await t.throwsAsync(fails(), { instanceOf: RangeError })
  await queue.flush()
  t.is(callsOf(server)[0]?.exception, 'RangeError: of an op')
})

test('a server that is busy is asked again, one that refuses is not', async (t) => {
  const answers = [503, 200, 413]
  using server = await startServer(() => [answers.shift() ?? 500, ''])
  const lost: Lost[] = []
  const queue = new TraceQueue({ url: server.url, onLost: (one) => lost.push(one) })
  queue.record(call('busy', 1))
  t.is(await queue.flush(), 0)
  queue.record(call('refused', 2))
  t.is(await queue.flush(), 0)
  t.deepEqual(
    callsOf(server).map(({ id }) => id),
    ['busy'],
  )
  t.deepEqual(
    lost.map(({ calls, reason }) => [calls, reason]),
    [[1, 'rejected']],
  )
  t.deepEqual(answers, [])
})
