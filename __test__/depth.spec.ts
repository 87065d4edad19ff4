/** Nesting: how deep values may be, and what becomes of deeper ones. */

import test from 'ava'
import {
  capture,
  createEncoder,
  encode,
  encodeLines,
  encodeMsgpack,
  encodeSync,
  type EncodeOptions,
} from '../src/index.ts'
import { runScenario } from './fixtures/child.ts'

for (const name of ['refuse', 'allowed']) {
  test(`a heap of 512 MB is enough: ${name}`, async (t) => {
    const { code, stderr, stdout } = await runScenario('endless', name, { NODE_OPTIONS: '--max-old-space-size=512' })
    t.is(stderr, '')
    t.is(stdout, 'played\n')
    t.is(code, 0)
  })
}

function nested(levels: number): unknown {
  let value: unknown = 'end'
  for (let level = levels; 0 < level; level -= 1) value = level % 2 === 0 ? [value] : { a: value, 'b/~': level }
  return value
}

/** Rows that functions are generated for: two levels in each. */
const ROWS = Array.from({ length: 400 }, (_, id) => ({ id, inner: { id, list: [id] } }))

const TOO_LARGE = { code: 'ERR_OFFLOOP_TOO_LARGE' }

test('a value is refused from one level more than maxDepth on', async (t) => {
  for (const levels of [1, 2, 3, 15, 99, 100, 101, 130, 1000]) {
    const value = nested(levels)
    const json = Buffer.from(JSON.stringify(value))
    const fits: EncodeOptions = { maxDepth: levels }
    const tooDeep: EncodeOptions = { maxDepth: levels - 1 }
    for (let round = 0; round < 3; round += 1) {
      t.deepEqual(await encode(value, fits), json)
      t.deepEqual(encodeSync(value, { ...fits, circular: { text: '' } }), json)
      t.deepEqual(createEncoder(fits).encodeSync(value), json)
      t.deepEqual(encodeSync(value, { ...fits, replacer: (_, inner) => inner }), json)
      await t.throwsAsync(encode(value, tooDeep), TOO_LARGE)
      t.throws(() => encodeSync(value, tooDeep), TOO_LARGE)
      t.throws(() => createEncoder(tooDeep).encodeSync(value), TOO_LARGE)
      t.throws(() => capture(value, tooDeep), TOO_LARGE)
      await t.throwsAsync(encodeLines([value], tooDeep), TOO_LARGE)
      await t.throwsAsync(encodeMsgpack(value, { maxDepth: levels - 1 }), TOO_LARGE)
      await t.notThrowsAsync(encodeMsgpack(value, { maxDepth: levels }))
    }
  }
})

test('functions that were generated for rows keep to maxDepth', async (t) => {
  const encoder = createEncoder()
  const json = Buffer.from(JSON.stringify(ROWS))
  for (let round = 0; round < 5; round += 1) t.deepEqual(await encoder.encode(ROWS), json)
  for (let round = 0; round < 5; round += 1) {
    t.deepEqual(await encode(ROWS, { maxDepth: 4 }), json)
    const error = await t.throwsAsync(encode(ROWS, { maxDepth: 3 }), TOO_LARGE)
    t.is(Reflect.get(error ?? {}, 'pointer'), '/0/inner/list')
  }
})

test('100,000 levels fit, one more does not, whatever the engine nests', async (t) => {
  const [fits, tooDeep] = [nested(100_000), nested(100_001)]
  const { length } = await encode(fits)
  t.is(encodeSync(fits).length, length)
  t.is((await encode(fits, { newline: true, sortKeys: true })).length, length + 1)
  await t.throwsAsync(encode(tooDeep), TOO_LARGE)
  await t.throwsAsync(encode(tooDeep, { newline: true }), TOO_LARGE)
  t.throws(() => encodeSync(tooDeep), TOO_LARGE)
  await t.throwsAsync(encodeLines([1, tooDeep]), TOO_LARGE)
  await t.throwsAsync(encodeLines([1, { tooDeep }]), TOO_LARGE)
})

test('the error says where', (t) => {
  const error = t.throws(() => encodeSync({ a: [{ 'b/~': [1] }] }, { maxDepth: 3 }), TOO_LARGE)
  t.is(Reflect.get(error ?? {}, 'pointer'), '/a/0/b~1~0')
  t.is(error?.message, 'the value at /a/0/b~1~0 is nested more than maxDepth, 3, levels deep')
  const root = t.throws(() => encodeSync([], { maxDepth: 0 }), TOO_LARGE)
  t.is(root?.message, 'the value is nested more than maxDepth, 0, levels deep')
  t.is(Reflect.get(root ?? {}, 'pointer'), '')
  t.is(encodeSync(1, { maxDepth: 0 }).toString(), '1')
})

test('a row that is too deep is reported, the others are written', async (t) => {
  const bad: unknown[] = []
  const options = {
    maxDepth: 2,
    onBadRow: (error: unknown, index: number) => bad.push([index, Reflect.get(Object(error), 'code')]),
  }
  const lines = await encodeLines([[1], [[2]], [[[3]]], [4]], options)
  t.is(lines.toString(), '[1]\n[[2]]\n[4]\n')
  t.deepEqual(bad, [[2, 'ERR_OFFLOOP_TOO_LARGE']])
})

test('MessagePack of a snapshot keeps to a maxDepth of its own', async (t) => {
  using snapshot = capture({ a: [Buffer.from('x'), new Map([['k', [1]]])] })
  for (let round = 0; round < 2; round += 1) {
    await t.throwsAsync(snapshot.msgpack({ maxDepth: 3 }), TOO_LARGE)
    t.true(0 < (await snapshot.msgpack({ maxDepth: 4 })).length)
  }
  // JSON has levels that MessagePack has not: those of a Buffer's toJSON.
  using bytes = capture([Buffer.from('x')])
  t.is((await bytes.msgpack({ maxDepth: 1 })).length, 4)
})

test('wrong values of maxDepth are refused', async (t) => {
  for (const maxDepth of [-1, 1.5, NaN, Infinity, 1_000_001]) {
    await t.throwsAsync(encode([], { maxDepth }), { code: 'ERR_OUT_OF_RANGE' })
    await t.throwsAsync(encodeMsgpack([], { maxDepth }), { code: 'ERR_OUT_OF_RANGE' })
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a wrong type on purpose
  await t.throwsAsync(encode([], { maxDepth: '1' as unknown as number }), { code: 'ERR_INVALID_ARG_TYPE' })
})
