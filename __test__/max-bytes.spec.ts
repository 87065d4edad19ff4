/** The option `maxBytes` of encoding: results are refused exactly above it, and soon. */

import test from 'ava'
import { capture, createEncoder, encode, encodeLines, encodeMsgpack, encodeSync } from '../src/index.ts'

const TOO_LARGE = { code: 'ERR_OFFLOOP_TOO_LARGE' }

const VALUES: Readonly<Record<string, unknown>> = {
  'a small object': { a: 1, b: 'text' },
  'a wide string': 'é…😀'.repeat(50),
  records: Array.from({ length: 3000 }, (_, id) => ({ id, name: `näme ${id}` })),
  numbers: Array.from({ length: 50_000 }, (_, index) => index / 7),
  'a long text': { text: 'a "quoted" text\n'.repeat(40_000) },
}

for (const [name, value] of Object.entries(VALUES)) {
  test(`a result of exactly maxBytes fits, one byte more does not: ${name}`, async (t) => {
    const json = Buffer.from(JSON.stringify(value))
    const size = json.length
    const packed = (await encodeMsgpack(value)).length
    for (let round = 0; round < 3; round += 1) {
      const fits = { maxBytes: size }
      const less = { maxBytes: size - 1 }
      t.true(json.equals(await encode(value, fits)))
      t.true(json.equals(encodeSync(value, fits)))
      t.true(json.equals(await createEncoder(fits).encode(value)))
      t.is((await encodeLines([value], { maxBytes: size + 1 })).length, size + 1)
      t.is((await encodeMsgpack(value, { maxBytes: packed })).length, packed)
      await t.throwsAsync(encode(value, less), TOO_LARGE)
      await t.throwsAsync(encode(value, { ...fits, newline: true }), TOO_LARGE)
      await t.throwsAsync(encode(value, { ...less, sortKeys: true }), TOO_LARGE)
      await t.throwsAsync(encode(value, { maxBytes: 0 }), TOO_LARGE)
      t.throws(() => encodeSync(value, less), TOO_LARGE)
      t.throws(() => createEncoder(less).encodeSync(value), TOO_LARGE)
      await t.throwsAsync(encodeLines([value], { maxBytes: size }), TOO_LARGE)
      await t.throwsAsync(encodeMsgpack(value, { maxBytes: packed - 1 }), TOO_LARGE)
    }
    using snapshot = capture(value)
    t.true(json.equals(await snapshot.json({ maxBytes: size })))
    await t.throwsAsync(snapshot.json({ maxBytes: size - 1 }), TOO_LARGE)
    await t.throwsAsync(snapshot.msgpack({ maxBytes: packed - 1 }), TOO_LARGE)
    using bounded = capture(value, { maxBytes: size })
    t.true(json.equals(await bounded.json()))
  })
}

test('a value that explodes is refused soon', async (t) => {
  // 2 to the power of 200 leaves.
  let value: unknown = { leaf: 'a leaf' }
  for (let level = 0; level < 200; level += 1) value = level % 2 === 0 ? { left: value, right: value } : [value, value]
  const options = { maxBytes: 1e6 }
  await t.throwsAsync(encode(value, options), TOO_LARGE)
  t.throws(() => encodeSync(value, options), TOO_LARGE)
  await t.throwsAsync(encodeLines([1, value], options), TOO_LARGE)
  await t.throwsAsync(encodeMsgpack(value, options), TOO_LARGE)
  t.throws(() => capture(value, options), TOO_LARGE)
  t.is(encodeSync([1], options).toString(), '[1]')
})

test('wrong values of maxBytes are refused', async (t) => {
  for (const maxBytes of [-1, 1.5, NaN]) await t.throwsAsync(encode([], { maxBytes }), { code: 'ERR_OUT_OF_RANGE' })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a wrong type on purpose
  await t.throwsAsync(encode([], { maxBytes: '1' as unknown as number }), { code: 'ERR_INVALID_ARG_TYPE' })
  t.is((await encode([], { maxBytes: Infinity })).toString(), '[]')
})
