/** Appending to JSONL files, against what encodeLines makes of the same rows. */

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import test from 'ava'
import {
  array,
  assert,
  asyncProperty,
  bigInt,
  constant,
  constantFrom,
  integer,
  jsonValue,
  oneof,
  record,
  string,
  type Arbitrary,
} from 'fast-check'
import { encodeLines, OffloopError, openJsonl, repair, type JsonlFile, type JsonlOptions } from '../src/index.ts'
import { runScenario, startScenario } from './fixtures/child.ts'
import { makeFile } from './fixtures/folder.ts'

const TORN = '{"a":1}\n{"a":2'

function read(path: string): string {
  return readFileSync(path, 'utf8')
}

/** Of a file that is not there, in folders that are not either. */
function newPath(): string {
  return join(dirname(makeFile('')), 'runs', '1', 'log.jsonl')
}

function circle(): object {
  const value: Record<string, unknown> = {}
  value.self = value
  return value
}

test('a file and its folders are created, and rows appended to it', async (t) => {
  const path = newPath()
  const log = await openJsonl(path)
  t.is(log.path, path)
  t.like(log.repaired, { action: 'none', sizeBefore: 0, size: 0 })
  t.deepEqual(await log.append({ a: 1 }), { offset: 0, length: 7 })
  t.deepEqual(await log.append(['é', null]), { offset: 8, length: 11 })
  t.is(read(path), '{"a":1}\n["é",null]\n')
  await log.close()
  const again = await openJsonl(pathToFileURL(path))
  t.is(again.path, path)
  t.deepEqual(await again.append(1), { offset: 20, length: 1 })
  await again.close()
})

test('a row is read before the call returns', async (t) => {
  const path = newPath()
  const log = await openJsonl(path)
  const row = { a: [1] }
  const appended = log.append(row)
  row.a.push(2)
  const rows = [{ b: 1 }]
  const many = log.appendMany(rows)
  rows.push({ b: 2 })
  await Promise.all([appended, many])
  await log.close()
  t.is(read(path), '{"a":[1]}\n{"b":1}\n')
})

test('rows land in the order of the calls, whichever calls they are', async (t) => {
  const path = newPath()
  const log = await openJsonl(path)
  const stream = log.writable()
  const calls = [log.append(1), log.appendMany([2, 3]), log.append(4)]
  stream.write(5)
  calls.push(log.append(6), log.appendMany([7]))
  await Promise.all(calls)
  await log.close()
  t.is(read(path), '1\n2\n3\n4\n5\n6\n7\n')
})

test('a row that cannot be encoded rejects alone', async (t) => {
  const path = newPath()
  const log = await openJsonl(path)
  const thrown = new Error('from toJSON')
  const hostile = {
    before: 'x'.repeat(300_000),
    toJSON() {
      throw thrown
    },
  }
  const outcomes = await Promise.allSettled(
    [1, circle(), undefined, { a: hostile }, 2n, { deep: [1, { x: 3n }] }, 3].map((row) => log.append(row)),
  )
  t.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'rejected', 'rejected', 'rejected', 'rejected', 'fulfilled'],
  )
  const reasons = outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason : undefined))
  t.like(reasons[1], { name: 'TypeError' })
  t.like(reasons[2], { code: 'ERR_INVALID_ARG_VALUE' })
  t.is(reasons[3], thrown)
  await log.close()
  t.is(read(path), '1\n3\n')
  t.like(log.stats(), { rows: 2, bytes: 4, queuedBytes: 0 })
})

test('code of a row may append rows itself: they stand behind it, good or bad', async (t) => {
  const path = newPath()
  const log = await openJsonl(path)
  const nested: Promise<unknown>[] = []
  const append = (row: unknown): void => void nested.push(log.append(row))
  const deepest = { toJSON: () => (append('third'), 'second') }
  await log.append({ toJSON: () => (append(deepest), 'first') })
  const failing = {
    toJSON() {
      append('of a bad row')
      throw new Error('bad')
    },
  }
  await t.throwsAsync(log.append(failing), { message: 'bad' })
  await log.append('last')
  await Promise.all(nested)
  await log.close()
  t.is(read(path), '"first"\n"second"\n"third"\n"of a bad row"\n"last"\n')
})

test('a flush in the code of a row covers that row too, and flushSync there is refused', async (t) => {
  const log = await openJsonl(newPath())
  let flushed: Promise<number> | undefined
  let refused: unknown
  const row = {
    toJSON() {
      flushed = log.flush().then(() => log.stats().rows)
      void log.append('behind')
      refused = t.throws(() => log.flushSync())
      return 1
    },
  }
  await Promise.all([log.append(0), log.append(row)])
  t.is(await flushed, 2)
  await log.flush()
  t.is(log.stats().rows, 3)
  t.regex(String(refused), /being captured/)
  await log.close()
})

/** A row whose code runs `act` while it is captured. */
const ACTING: Record<string, (act: () => void) => unknown> = {
  toJSON: (act) => ({ toJSON: () => (act(), 'acting') }),
  getter: (act) => ({
    get x() {
      act()
      return 1
    },
  }),
}
/** Adds a row; resolves when it has landed. */
const ADDING: Record<string, (log: JsonlFile, row: unknown) => Promise<unknown>> = {
  append: (log, row) => log.append(row),
  appendMany: (log, row) => log.appendMany([row]),
  'appendMany of a stream': (log, row) => log.appendMany(Readable.from([row])),
  writable: (log, row) => finished(log.writable().end(row)),
  'a stream into writable': (log, row) => pipeline(Readable.from([row]), log.writable()),
}

for (const durability of ['none', 'data'] as const) {
  for (const before of [0, 1]) {
    for (const [code, makeRow] of Object.entries(ACTING)) {
      for (const [way, add] of Object.entries(ADDING)) {
        const name = `${way}, durability ${durability}, ${before} rows before, ${code}`
        const expected = `${'0\n'.repeat(before)}${code === 'getter' ? '{"x":1}' : '"acting"'}\n`

        test(`a row whose code closes the log lands: ${name}`, async (t) => {
          const path = newPath()
          const log = await openJsonl(path, { durability })
          const earlier = Array.from({ length: before }, () => log.append(0))
          let closing: Promise<void> | undefined
          await add(
            log,
            makeRow(() => (closing = log.close())),
          )
          await Promise.all([...earlier, closing])
          t.is(read(path), expected)
          t.is(log.stats().rows, before + 1)
          await t.throwsAsync(log.append(1), { code: 'ERR_OFFLOOP_CLOSED' })
          await (await openJsonl(path)).close()
        })

        test(`a flush in the code of a row waits for that row: ${name}`, async (t) => {
          const path = newPath()
          const log = await openJsonl(path, { durability })
          const earlier = Array.from({ length: before }, () => log.append(0))
          let flushed: Promise<string> | undefined
          await add(
            log,
            makeRow(() => (flushed = log.flush().then(() => read(path)))),
          )
          await Promise.all(earlier)
          t.is(await flushed, expected)
          await log.close()
        })

        test(`flushSync in the code of a row throws, and the row is bad: ${name}`, async (t) => {
          const path = newPath()
          const log = await openJsonl(path, { durability })
          const earlier = Array.from({ length: before }, () => log.append(0))
          const refused = await add(
            log,
            makeRow(() => log.flushSync()),
          ).catch((error: unknown) => ({ bad: [{ index: 0, error }] }))
          t.like(refused, { bad: [{ index: 0, error: { message: 'a row that is being captured cannot be flushed' } }] })
          await Promise.all(earlier)
          log.flushSync()
          await log.close()
          t.is(read(path), '0\n'.repeat(before))
        })
      }
    }
  }
}

test('a bad row whose code closes or flushes the log holds neither up', async (t) => {
  for (const act of ['close', 'flush'] as const) {
    const path = newPath()
    const log = await openJsonl(path)
    let done: Promise<void> | undefined
    const row = {
      toJSON() {
        done = log[act]()
        throw new Error('bad')
      },
    }
    await t.throwsAsync(log.append(row), { message: 'bad' })
    await done
    await log.close()
    t.is(read(path), '')
  }
})

test('a row whose code appends a row that closes the log lands before that', async (t) => {
  const path = newPath()
  const log = await openJsonl(path)
  const calls: Promise<unknown>[] = []
  const inner = { toJSON: () => (calls.push(log.close()), 'inner') }
  const middle = { toJSON: () => (calls.push(log.append(inner), log.append(2).catch(String)), 'middle') }
  calls.push(log.append({ toJSON: () => (calls.push(log.append(middle)), 'outer') }))
  const outcomes = await Promise.all(calls)
  t.is(read(path), '"outer"\n"middle"\n"inner"\n')
  t.true(outcomes.some((outcome) => String(outcome).includes('is closed')))
})

test('of appendMany, the rows up to the one whose code closes the log land', async (t) => {
  const path = newPath()
  const log = await openJsonl(path)
  const rows = [{ toJSON: () => (void log.close(), 1) }, 2]
  await t.throwsAsync(log.appendMany(rows), { code: 'ERR_OFFLOOP_CLOSED' })
  await log.close()
  t.is(read(path), '1\n')
})

test('a log that its exit handler flushes while a row closes it has that row', async (t) => {
  const path = newPath()
  const log = await openJsonl(path)
  const appended = log.append({ toJSON: () => (void log.close(), 1) })
  log.flushSync()
  t.is(read(path), '1\n')
  await appended
  await log.close()
  t.is(read(path), '1\n')
})

test('appendMany tells which rows are bad, of iterables of both kinds', async (t) => {
  const path = newPath()
  const log = await openJsonl(path)
  const rows = [1, circle(), 2, undefined, 3n]
  async function* later(): AsyncGenerator {
    for (const row of rows) {
      await nextTurn()
      yield row
    }
  }
  for (const given of [rows, new Set(rows), later(), Readable.from([1, 2n, 2, 3n, 4n])]) {
    const { written, bad } = await log.appendMany(given)
    t.is(written, 2)
    t.is(bad.length, 3)
    for (const { error } of bad) t.true(error instanceof TypeError)
    if (!(given instanceof Readable))
      t.deepEqual(
        bad.map(({ index }) => index),
        [1, 3, 4],
      )
  }
  t.deepEqual(await log.appendMany([]), { written: 0, bad: [] })
  await log.close()
  t.is(read(path), '1\n2\n'.repeat(4))
})

test('an iterator that throws rejects, when what it gave has landed', async (t) => {
  const path = newPath()
  const log = await openJsonl(path)
  function* rows(): Generator {
    yield 1
    throw new Error('no more')
  }
  await t.throwsAsync(log.appendMany(rows()), { message: 'no more' })
  t.is(read(path), '1\n')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers without types may pass it
  await t.throwsAsync(log.appendMany(7 as never), { code: 'ERR_INVALID_ARG_TYPE', message: /"rows" argument/ })
  await log.close()
})

test('what is torn is repaired on open, whatever else is there', async (t) => {
  for (const [policy, left, action] of [
    [undefined, '{"a":1}\n', 'quarantined'],
    ['truncate', '{"a":1}\n', 'truncated'],
    ['isolate', `${TORN}\n`, 'isolated'],
    [false, TORN, 'none'],
  ] as const) {
    const path = makeFile(TORN)
    const log = await openJsonl(path, { repair: policy })
    t.is(log.repaired.action, action)
    t.is(log.repaired.sizeBefore, TORN.length)
    t.is(log.repaired.size, left.length)
    await log.append(3)
    await log.close()
    t.is(read(path), `${left}3\n`)
    t.is(existsSync(`${path}.torn-8-0`), policy === undefined)
  }
  const path = makeFile(TORN)
  await t.throwsAsync(openJsonl(path, { repair: 'strict' }), { instanceOf: OffloopError, code: 'ERR_OFFLOOP_TORN' })
  t.is(read(path), TORN)
  const open = await openJsonl(makeFile('{"a":1}'), {})
  t.is(open.repaired.action, 'terminated')
  await open.close()
})

test('a second writer, and a repair that would change the file, are refused while it is open', async (t) => {
  const path = makeFile(TORN)
  const log = await openJsonl(path, { repair: false })
  const locked = { instanceOf: OffloopError, code: 'ERR_OFFLOOP_LOCKED' }
  t.like(await t.throwsAsync(openJsonl(path), locked), { path })
  await t.throwsAsync(repair(path), locked)
  t.is((await repair(path, { policy: 'report' })).action, 'quarantined')
  const beside = await openJsonl(path, { lock: false, repair: false })
  await beside.close()
  await log.close()
  t.is((await repair(path)).action, 'quarantined')
})

for (const [name, what] of [
  ['worker', 'a log of a worker is locked for others, until the worker is gone'],
  ['exit', 'rows that nobody waited for are written before the process ends'],
  ['delayed', 'a row that waits for company keeps the process alive'],
  ['idle', 'an open log without rows keeps nothing alive'],
  ['exitHandler', 'flushSync writes everything in an exit handler'],
  ['crowded', 'flushSync writes what has no slot in the pool, and the rows are told once'],
  ['forgotten', 'a log that is forgotten lets go of the file'],
  ['turning', 'an iterator that never waits lets the loop turn'],
] as const) {
  test(what, async (t) => {
    const path = newPath()
    const ended = await runScenario('log', name, { OFFLOOP_FILE: path })
    t.is(ended.stdout, 'played\n', `${ended.signal} ${ended.stderr}`)
    t.is(ended.code, 0)
    if (name !== 'worker' && name !== 'idle' && name !== 'forgotten' && name !== 'turning') {
      t.is(read(path), Array.from({ length: 1000 }, (_, row) => `{"row":${row}}\n`).join(''))
    }
  })
}

test('a log of another process is locked until that is gone', async (t) => {
  const path = newPath()
  const child = startScenario('log', 'holder', { OFFLOOP_FILE: path })
  await once(child.stdout, 'data')
  await t.throwsAsync(openJsonl(path), { code: 'ERR_OFFLOOP_LOCKED' })
  child.kill('SIGKILL')
  await once(child, 'close')
  const log = await openJsonl(path)
  t.is(read(path), '{"held":true}\n')
  await log.close()
})

test('rows of one turn leave in one write, those that come meanwhile in the next', async (t) => {
  const log = await openJsonl(newPath())
  await Promise.all(Array.from({ length: 64 }, (_, row) => log.append({ row })))
  t.like(log.stats(), { rows: 64, writes: 1, syncs: 1, queuedBytes: 0 })
  const first = log.append('first')
  await nextTurn()
  const others = Array.from({ length: 100 }, (_, row) => log.append({ row }))
  t.true(0 < log.stats().queuedBytes)
  await Promise.all([first, ...others])
  t.like(log.stats(), { rows: 165, writes: 3, syncs: 3, queuedBytes: 0 })
  await log.close()
})

test('a batch takes no more rows once it is full', async (t) => {
  const log = await openJsonl(newPath(), { maxBatchBytes: 1 })
  await Promise.all([1, 2, 3].map((row) => log.append(row)))
  t.is(log.stats().writes, 3)
  await log.close()
})

test('a row waits for company, but not for a flush, nor at the end', async (t) => {
  const path = newPath()
  const log = await openJsonl(path, { maxDelayMs: 100_000_000 })
  const first = log.append(1)
  await nextTurn()
  await nextTurn()
  const second = log.append(2)
  t.is(log.stats().writes, 0)
  await log.flush()
  t.is(log.stats().writes, 1)
  await Promise.all([first, second])
  const third = log.append(3)
  log.flushSync()
  t.is(read(path), '1\n2\n3\n')
  await third
  const fourth = log.append(4)
  await log.close()
  await fourth
  t.is(read(path), '1\n2\n3\n4\n')
})

test('a batch that is full does not wait', async (t) => {
  const log = await openJsonl(newPath(), { maxDelayMs: 100_000_000, maxBatchBytes: 1000 })
  await log.append('x'.repeat(1000))
  t.is(log.stats().writes, 1)
  await log.close()
})

test('without durability a flush alone syncs', async (t) => {
  const path = newPath()
  const log = await openJsonl(path, { durability: 'none' })
  await Promise.all([log.append(1), log.append(2)])
  await log.append(3)
  t.like(log.stats(), { writes: 2, syncs: 0 })
  await log.flush()
  const { syncs } = log.stats()
  t.true(0 < syncs)
  await log.flush()
  t.is(log.stats().syncs, syncs)
  void log.append(4)
  log.flushSync()
  t.is(log.stats().syncs, syncs + 1)
  t.is(read(path), '1\n2\n3\n4\n')
  await log.close()
})

test('full durability syncs every group, and a flush nothing more', async (t) => {
  const log = await openJsonl(newPath(), { durability: 'full' })
  await log.append(1)
  await log.flush()
  t.like(log.stats(), { writes: 1, syncs: 1 })
  await log.close()
})

test('a flush waits for what was appended before it', async (t) => {
  for (const durability of ['none', 'data', 'full'] as const) {
    const path = newPath()
    const log = await openJsonl(path, { durability, maxBatchBytes: 100 })
    await log.flush()
    for (let row = 0; row < 50; row += 1) void log.append({ row })
    await log.flush()
    t.is(read(path).split('\n').length, 51)
    await log.close()
  }
})

test('flushSync while a group is being written keeps the order', async (t) => {
  const path = newPath()
  const log = await openJsonl(path)
  const rows = Array.from({ length: 10 }, (_, row) => ({ row, text: 'x'.repeat(100_000) }))
  const appended = [log.append(rows[0])]
  await nextTurn()
  for (const row of rows.slice(1)) appended.push(log.append(row))
  log.flushSync()
  const expected = rows.map((row) => JSON.stringify(row))
  t.is(read(path), `${expected.join('\n')}\n`)
  t.is(log.stats().queuedBytes === 0 || log.stats().rows < 10, true)
  const places = await Promise.all(appended)
  let offset = 0
  for (const [index, text] of expected.entries()) {
    t.deepEqual(places[index], { offset, length: text.length })
    offset += text.length + 1
  }
  t.like(log.stats(), { rows: 10, bytes: offset, queuedBytes: 0 })
  await log.close()
})

test('an async iterable is not read while too much is queued', async (t) => {
  const path = newPath()
  const log = await openJsonl(path, { maxQueuedBytes: 10_000, maxBatchBytes: 5000 })
  const row = { text: 'x'.repeat(1000) }
  let most = 0
  async function* rows(): AsyncGenerator {
    for (let index = 0; index < 500; index += 1) {
      most = Math.max(most, log.stats().queuedBytes)
      yield row
    }
  }
  t.is((await log.appendMany(rows())).written, 500)
  t.true(5000 < most && most <= 12_000, `${most}`)
  await log.close()
})

test('a stream waits while too much is queued, and finishes when its rows are durable', async (t) => {
  const path = newPath()
  const log = await openJsonl(path, { maxQueuedBytes: 10_000, maxBatchBytes: 5000 })
  let most = 0
  async function* rows(): AsyncGenerator {
    for (let row = 0; row < 500; row += 1) {
      most = Math.max(most, log.stats().queuedBytes)
      yield { row, text: 'x'.repeat(1000) }
    }
  }
  await pipeline(rows(), log.writable())
  t.is(read(path).split('\n').length, 501)
  t.is(log.stats().rows, 500)
  t.true(5000 < most && most <= 12_000, `${most}`)
  await pipeline(Readable.from([1]), log.writable())
  await log.close()
})

test('a bad row destroys its stream; the rows before it land, and the file stays open', async (t) => {
  const path = newPath()
  const log = await openJsonl(path)
  await t.throwsAsync(pipeline(Readable.from([1, 2n, 3]), log.writable()), { instanceOf: TypeError })
  await log.append('after')
  t.is(read(path), '1\n"after"\n')
  const stream = log.writable()
  // What user code throws need not be an error.
  const thrown = once(stream, 'error')
  stream.write({
    toJSON() {
      throw 'a string'
    },
  })
  const [error] = await thrown
  t.is(Reflect.get(Object(error), 'cause'), 'a string')
  await log.close()
})

test('closing writes what was appended, once, and then nothing more is taken', async (t) => {
  const path = newPath()
  const log = await openJsonl(path)
  const appended = log.append(1)
  const closing = log.close()
  t.is(log.close(), closing)
  const closed = { instanceOf: OffloopError, code: 'ERR_OFFLOOP_CLOSED' }
  await t.throwsAsync(log.append(2), closed)
  await t.throwsAsync(log.appendMany([2]), closed)
  await t.throwsAsync(log.flush(), closed)
  await Promise.all([appended, closing])
  t.notThrows(() => log.flushSync())
  await t.throwsAsync(pipeline(Readable.from([2]), log.writable()), closed)
  await log[Symbol.asyncDispose]()
  t.is(read(path), '1\n')
})

test('options of encoding are those of encodeLines', async (t) => {
  const path = newPath()
  const rows = [{ b: 1, a: new Float32Array([0.1]) }, 12n, new Map([[1, 2]])]
  const options = {
    sortKeys: true,
    typedArrays: 'array',
    bigint: 'string',
    default: (value: unknown) => (value instanceof Map ? [...value] : undefined),
  } as const
  const log = await openJsonl(path, { encode: options })
  await log.appendMany(rows)
  await log.close()
  t.is(read(path), (await encodeLines(rows, options)).toString())
})

test('a row of many megabytes is written whole', async (t) => {
  const path = newPath()
  const log = await openJsonl(path)
  const row = { text: 'é"\n'.repeat(5_000_000), numbers: Array.from({ length: 100_000 }, Math.random) }
  const [, { offset, length }] = await Promise.all([log.append(1), log.append(row), log.append(2)])
  await log.close()
  const bytes = readFileSync(path)
  t.is(bytes.length, length + 5)
  t.is(offset, 2)
  t.deepEqual(JSON.parse(bytes.toString('utf8', offset, offset + length)), row)
})

test('a new file has the mode asked for, an old one keeps its own', async (t) => {
  const path = newPath()
  await (await openJsonl(path, { mode: 0o600 })).close()
  t.is(statSync(path).mode & 0o777, 0o600)
  await (await openJsonl(path, { mode: 0o666 })).close()
  t.is(statSync(path).mode & 0o777, 0o600)
})

test('what is no regular file is refused, and not waited for', async (t) => {
  const folder = dirname(makeFile(''))
  await t.throwsAsync(openJsonl(folder), { code: 'EISDIR' })
  execFileSync('mkfifo', [join(folder, 'fifo')])
  await t.throwsAsync(openJsonl(join(folder, 'fifo')), { code: 'ESPIPE' })
  const inFile = join(makeFile(''), 'a', 'b')
  await t.throwsAsync(openJsonl(inFile), { code: 'ENOTDIR' })
})

test('a link is followed, to a file that is not there yet too', async (t) => {
  const folder = dirname(makeFile(''))
  symlinkSync('to/log.jsonl', join(folder, 'link'))
  const log = await openJsonl(join(folder, 'link'))
  await log.append(1)
  await log.close()
  t.is(read(join(folder, 'to', 'log.jsonl')), '1\n')
})

test('rows go on behind what somebody else has appended, or cut off', async (t) => {
  const path = makeFile('1\n')
  const log = await openJsonl(path)
  writeFileSync(path, '2\n3\n', { flag: 'a' })
  t.deepEqual(await log.append(4), { offset: 6, length: 1 })
  writeFileSync(path, '')
  t.deepEqual(await log.append(5), { offset: 0, length: 1 })
  renameSync(path, `${path}.1`)
  t.deepEqual(await log.append(6), { offset: 2, length: 1 })
  await log.close()
  t.is(read(`${path}.1`), '5\n6\n')
})

for (const [options, code] of [
  [{ durable: 'data' }, 'ERR_INVALID_ARG_VALUE'],
  [{ durability: 'disk' }, 'ERR_INVALID_ARG_VALUE'],
  [{ repair: 'report' }, 'ERR_INVALID_ARG_VALUE'],
  [{ repair: true }, 'ERR_INVALID_ARG_VALUE'],
  [{ lock: 'yes' }, 'ERR_INVALID_ARG_TYPE'],
  [{ maxDelayMs: -1 }, 'ERR_OUT_OF_RANGE'],
  [{ maxDelayMs: '1' }, 'ERR_INVALID_ARG_TYPE'],
  [{ maxDelayMs: 2 ** 31 }, 'ERR_OUT_OF_RANGE'],
  [{ maxBatchBytes: 0 }, 'ERR_OUT_OF_RANGE'],
  [{ maxQueuedBytes: 1.5 }, 'ERR_OUT_OF_RANGE'],
  [{ mode: 0o10000 }, 'ERR_OUT_OF_RANGE'],
  [{ encode: { space: 1 } }, 'ERR_INVALID_ARG_VALUE'],
  [{ encode: { bigint: 'text' } }, 'ERR_INVALID_ARG_VALUE'],
  [{ encode: null }, 'ERR_INVALID_ARG_TYPE'],
  [null, 'ERR_INVALID_ARG_TYPE'],
] as const) {
  test(`the options ${JSON.stringify(options)} are refused, and nothing is created`, async (t) => {
    const path = newPath()
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers without types may pass it
    await t.throwsAsync(openJsonl(path, options as never), { code })
    t.false(existsSync(dirname(path)))
  })
}

test('a path is a string or a file: URL without NULs', async (t) => {
  await t.throwsAsync(openJsonl('a\0b'), { code: 'ERR_INVALID_ARG_VALUE' })
  await t.throwsAsync(openJsonl(new URL('http://a/b')), { code: 'ERR_INVALID_URL_SCHEME' })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers without types may pass it
  await t.throwsAsync(openJsonl(7 as never), { code: 'ERR_INVALID_ARG_TYPE' })
})

type Step =
  | { readonly append: unknown }
  | { readonly many: readonly unknown[] }
  | { readonly stream: readonly unknown[] }
  | 'turn'
  | 'flush'
  | 'flushSync'
  | 'reopen'

const anyRow = oneof(jsonValue(), constant(undefined), bigInt(), string({ unit: 'binary', maxLength: 3000 }))
const anyStep: Arbitrary<Step> = oneof(
  record({ append: anyRow }),
  record({ many: array(anyRow, { maxLength: 5 }) }),
  record({ stream: array(oneof(integer(), string()), { maxLength: 5 }) }),
  constantFrom('turn', 'flush', 'flushSync', 'reopen'),
)
const anyOptions: Arbitrary<JsonlOptions> = record({
  durability: constantFrom('none', 'data', 'full'),
  maxBatchBytes: constantFrom(1, 100, 2000, 1 << 20),
  maxQueuedBytes: constantFrom(0, 1000, 64 << 20),
  maxDelayMs: constantFrom(0, 1),
})

/** Rows that can be encoded, as the file then has them. */
function linesOf(rows: readonly unknown[]): string[] {
  return rows.filter((row) => row !== undefined && typeof row !== 'bigint').map((row) => JSON.stringify(row))
}

test('whatever is done with a log, its file holds the good rows in order, where they were said to be', async (t) => {
  await assert(
    asyncProperty(anyOptions, array(anyStep, { maxLength: 30 }), async (options, steps) => {
      const path = newPath()
      let log = await openJsonl(path, options)
      const expected: string[] = []
      const told: Promise<unknown>[] = []
      const check = async (lines: readonly string[], step: Promise<unknown>): Promise<void> => {
        const outcome = await step.then(
          (value) => JSON.stringify(value, ['offset', 'length', 'written']),
          () => 'bad',
        )
        if (outcome.includes('offset')) {
          const { offset, length } = JSON.parse(outcome)
          const bytes = readFileSync(path).subarray(offset, offset + length)
          if (bytes.toString() !== lines[0]) throw new Error(`${bytes.toString()} instead of ${lines[0]}`)
        } else if (outcome !== 'bad' && outcome !== JSON.stringify({ written: lines.length })) {
          throw new Error(`${outcome} of ${lines.length}`)
        } else if (outcome === 'bad' && lines.length !== 0) throw new Error('a good row was rejected')
      }
      for (const step of steps) {
        if (step === 'turn') await nextTurn()
        else if (step === 'flush') told.push(log.flush())
        else if (step === 'flushSync') {
          log.flushSync()
          const text = read(path)
          if (text !== expected.map((line) => `${line}\n`).join('')) throw new Error('not flushed')
        } else if (step === 'reopen') {
          await log.close()
          log = await openJsonl(path, options)
        } else if ('append' in step) {
          const lines = linesOf([step.append])
          expected.push(...lines)
          told.push(check(lines, log.append(step.append)))
        } else if ('many' in step) {
          const lines = linesOf(step.many)
          expected.push(...lines)
          told.push(check(lines, log.appendMany(step.many)))
        } else {
          // In a turn of its own, as streams take their time.
          expected.push(...linesOf(step.stream))
          await pipeline(Readable.from(step.stream), log.writable())
        }
      }
      await log.close()
      await Promise.all(told)
      const text = read(path)
      if (text !== expected.map((line) => `${line}\n`).join('')) throw new Error('other rows in the file')
      if (log.stats().queuedBytes !== 0) throw new Error('bytes are left in the queue')
    }),
    { numRuns: 150 },
  )
  t.pass()
})
