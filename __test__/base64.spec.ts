import { Readable } from 'node:stream'
import test from 'ava'
import * as fc from 'fast-check'
import { decodeBase64, encodeBase64, OffloopError, type Base64Options } from '../src/index.ts'
import { inChunks, noise } from './fixtures/text.ts'
import { isFull } from './fixtures/extent.ts'

type Mode = NonNullable<Base64Options['mode']>
type Alphabet = NonNullable<Base64Options['alphabet']>

const MODES: readonly Mode[] = ['node', 'forgiving', 'strict']
const ALPHABETS: readonly Alphabet[] = ['base64', 'base64url']

/** The decoder of newer Nodes, where there is one. */
const fromBase64: unknown = Reflect.get(Uint8Array, 'fromBase64')

/** Node's own decoders; undefined where they refuse the text. */
function oracle(text: string, mode: Mode, alphabet: Alphabet): Buffer | undefined {
  if (mode === 'node') return Buffer.from(text, 'base64')
  try {
    if (typeof fromBase64 === 'function') {
      const lastChunkHandling = mode === 'strict' ? 'strict' : 'loose'
      return Buffer.from(fromBase64(text, { alphabet, lastChunkHandling }))
    }
    return Buffer.from(atob(inStandard(text, alphabet, mode)), 'latin1')
  } catch {
    return undefined
  }
}

/** What atob, which knows only the forgiving mode of the standard alphabet, accepts if and only if the text is valid. */
function inStandard(text: string, alphabet: Alphabet, mode: Mode): string {
  const swapped =
    alphabet === 'base64' ? text : text.replaceAll(/[-_+/]/g, (character) => ({ '-': '+', _: '/' })[character] ?? '*')
  if (mode === 'forgiving') return swapped
  const data = swapped.replaceAll(/[\t\n\f\r ]/g, '')
  if (data.length % 4 !== 0) return '*'
  const canonical = btoa(atob(swapped))
  return canonical === data ? data : '*'
}

async function decoded(text: string | Uint8Array, options: Base64Options): Promise<Buffer | OffloopError> {
  try {
    return await decodeBase64(text, options)
  } catch (error) {
    if (error instanceof OffloopError) return error
    throw error
  }
}

test('every length encodes as Node encodes and decodes in every mode', async (t) => {
  for (let size = 0; size <= 300; size += 1) {
    const bytes = noise(size, size + 1)
    for (const alphabet of ALPHABETS) {
      const text = await encodeBase64(bytes, { alphabet })
      t.is(text.toString('latin1'), bytes.toString(alphabet))
      t.deepEqual(await decodeBase64(text, { mode: 'forgiving', alphabet }), bytes)
      t.deepEqual(await decodeBase64(text.toString('latin1'), { mode: 'node' }), bytes)
    }
    const padded = await encodeBase64(bytes, { alphabet: 'base64url', padding: true })
    t.deepEqual(await decodeBase64(padded, { mode: 'strict', alphabet: 'base64url' }), bytes)
    const bare = await encodeBase64(bytes, { padding: false })
    t.is(bare.toString('latin1'), bytes.toString('base64').replaceAll('=', ''))
  }
})

test('every alignment of a view decodes alike', async (t) => {
  const bytes = noise(256)
  const text = Buffer.from(bytes.toString('base64'))
  for (let offset = 0; offset < 64; offset += 1) {
    const memory = Buffer.alloc(text.length + 64, '*')
    memory.set(text, offset)
    t.deepEqual(await decodeBase64(memory.subarray(offset, offset + text.length)), bytes)
  }
})

const CHARACTERS = fc.oneof(
  { weight: 40, arbitrary: fc.constantFrom(...'ABCQVWXYZabcxyz0189'.split('')) },
  { weight: 4, arbitrary: fc.constantFrom(...'+/-_'.split('')) },
  { weight: 3, arbitrary: fc.constantFrom(...'= \n\r\t\f'.split('')) },
  { weight: 1, arbitrary: fc.constantFrom('\0', '*', '\v', '\x7f', '\x80', '\xff', '\u0141', '\u2028', '\ud800') },
)

test('any text decodes as Node decodes it, or fails where Node fails, given as a string or as bytes', async (t) => {
  const texts = fc.array(CHARACTERS, { maxLength: 90 }).map((characters) => characters.join(''))
  await fc.assert(
    fc.asyncProperty(texts, fc.constantFrom(...MODES), fc.constantFrom(...ALPHABETS), async (text, mode, alphabet) => {
      const expected = oracle(text, mode, alphabet)
      const actual = await decoded(text, { mode, alphabet })
      if (expected === undefined) t.true(actual instanceof OffloopError, text)
      else t.deepEqual(actual, expected, JSON.stringify(text))
      // eslint-disable-next-line no-control-regex
      if (/^[\0-\xff]*$/.test(text)) {
        const ofBytes = await decoded(Buffer.from(text, 'latin1'), { mode, alphabet })
        if (actual instanceof OffloopError) t.like(ofBytes, { code: actual.code, offset: actual.offset })
        else t.deepEqual(ofBytes, actual)
      }
    }),
    { numRuns: 4000 },
  )
})

const INVALID: readonly (readonly [text: string, offset: number, mode: Mode])[] = [
  ['*', 0, 'forgiving'],
  ['QUJD*', 4, 'forgiving'],
  ['QU-D', 2, 'forgiving'],
  ['QUJD\u4e00', 4, 'forgiving'],
  ['*\u4e00', 0, 'forgiving'],
  ['QQ==\u0141', 4, 'forgiving'],
  ['Q', 1, 'forgiving'],
  ['QUJDQ', 5, 'forgiving'],
  ['Q ', 2, 'forgiving'],
  ['=', 0, 'forgiving'],
  ['Q=', 1, 'forgiving'],
  ['QQ=', 3, 'forgiving'],
  ['QQ= \n', 5, 'forgiving'],
  ['QQ=Q', 3, 'forgiving'],
  ['QQ===', 4, 'forgiving'],
  ['QUI==', 4, 'forgiving'],
  ['QUJD=', 4, 'forgiving'],
  ['QQ==QQ==', 4, 'forgiving'],
  ['QQ', 2, 'strict'],
  ['QUI', 3, 'strict'],
  ['Q', 1, 'strict'],
  ['QR==', 1, 'strict'],
  ['Q R = =', 2, 'strict'],
  ['QUF=', 2, 'strict'],
  ['QUJDQUF=', 6, 'strict'],
]

for (const [text, offset, mode] of INVALID) {
  test(`${JSON.stringify(text)} is invalid at ${offset} in ${mode} mode`, async (t) => {
    const error = await t.throwsAsync(decodeBase64(text, { mode }), { instanceOf: OffloopError })
    t.like(error, { code: 'ERR_OFFLOOP_BASE64', offset })
  })
}

test('texts that only look invalid', async (t) => {
  t.is((await decodeBase64('QR==')).toString(), 'A')
  t.is((await decodeBase64('QQ')).toString(), 'A')
  t.is((await decodeBase64(' Q\tQ\n=\f=\r ', { mode: 'strict' })).toString(), 'A')
  t.is(
    (await decodeBase64('A\u0141AA', { mode: 'node' })).toString('hex'),
    Buffer.from('A\u0141AA', 'base64').toString('hex'),
  )
  t.is((await decodeBase64('AA==AAAA', { mode: 'node' })).length, 1)
  t.is((await decodeBase64('', { mode: 'strict' })).length, 0)
  t.is((await decodeBase64([])).length, 0)
  t.is((await decodeBase64(inChunks(new Uint8Array(), 1))).length, 0)
  t.is((await decodeBase64([new Uint8Array(), new Uint8Array()])).length, 0)
  t.is((await encodeBase64(new Uint8Array(), { transfer: true })).length, 0)
})

test('every text of four characters over a small alphabet is judged as Node judges it', async (t) => {
  const characters = ['A', 'B', '/', '_', '-', '=', ' ', '*', '\u0141']
  for (let index = 0; index < characters.length ** 4; index += 1) {
    const digits = [0, 1, 2, 3].map((place) => Math.floor(index / characters.length ** place) % characters.length)
    const text = digits.map((digit) => characters[digit]).join('')
    const expected = oracle(text, 'forgiving', 'base64')
    const actual = await decoded(text, {})
    if (expected === undefined) t.true(actual instanceof OffloopError, text)
    else t.deepEqual(actual, expected, text)
  }
})

// Sizes around every threshold: at once, a task, several parts of a string.
const SIZES = [100_000, 392_000, 400_000, 800_000, 1_500_000, 6_000_000]

for (const size of SIZES) {
  test(`${size} bytes come and go in every form`, async (t) => {
    const bytes = noise(size, size)
    const text = bytes.toString('base64')
    t.true((await encodeBase64(bytes)).equals(Buffer.from(text)))
    const encoded = Buffer.from(text)
    const forms: readonly (string | Parameters<typeof decodeBase64>[0])[] = [
      text,
      `${text.slice(0, 1000)}\n${text.slice(1000)}`,
      encoded,
      new Uint8Array(encoded).buffer,
      [encoded.subarray(0, 77), encoded.subarray(77, 78), encoded.subarray(78)],
      inChunks(encoded, 65_521),
      Readable.from(inChunks(encoded, 65_521), { objectMode: false }),
      new Blob([encoded]).stream(),
    ]
    for (const form of forms) t.true((await decodeBase64(form)).equals(bytes))
    t.true((await decodeBase64(bytes.toString('base64url'), { alphabet: 'base64url' })).equals(bytes))
    t.true((await decodeBase64(Buffer.from(text), { transfer: true })).equals(bytes))
    t.true((await encodeBase64(new Uint8Array(bytes), { transfer: true })).equals(Buffer.from(text)))
  })

  test(`a bad character in ${size} bytes is found where it is`, async (t) => {
    const text = noise(size).toString('base64')
    const places = [0, 1, 4093, Math.floor(text.length / 2) + 3, text.length - 5]
    for (const offset of places) {
      const bad = `${text.slice(0, offset)}*${text.slice(offset + 1)}`
      const wide = `${text.slice(0, offset)}\u{1f600}${text.slice(offset + 2)}`
      const expected = { code: 'ERR_OFFLOOP_BASE64', offset }
      for (const form of [bad, wide, Buffer.from(bad), [Buffer.from(bad.slice(0, 7)), Buffer.from(bad.slice(7))]]) {
        t.like(await t.throwsAsync(decodeBase64(form, { mode: 'strict' })), expected)
      }
      t.like(await t.throwsAsync(decodeBase64(Buffer.from(bad), { transfer: true })), expected)
      // t.deepEqual takes more than a minute for all of these.
      t.true((await decodeBase64(bad, { mode: 'node' })).equals(Buffer.from(bad, 'base64')))
      t.true((await decodeBase64(wide, { mode: 'node' })).equals(Buffer.from(wide, 'base64')))
    }
  })
}

test('lines of any length, which make every part of a string end inside a quantum', async (t) => {
  const bytes = noise(2_000_000)
  for (const length of [1, 19, 76, 4097]) {
    const text = bytes.toString('base64').replaceAll(new RegExp(`.{${length}}`, 'g'), '$&\r\n')
    t.true((await decodeBase64(text, { mode: 'strict' })).equals(bytes))
    t.true((await decodeBase64(Buffer.from(text))).equals(bytes))
    t.true((await decodeBase64(Buffer.from(text), { transfer: true, mode: 'node' })).equals(bytes))
  }
})

test('strings that V8 keeps in pieces or as two bytes a character', async (t) => {
  const bytes = noise(3_000_000)
  const text = bytes.toString('base64')
  const rope = Array.from({ length: 100 }, (_, index) => text.slice(index * 40_000, (index + 1) * 40_000)).join('')
  const halves = text.slice(0, 2_000_001) + text.slice(2_000_001)
  for (const form of [rope, halves]) t.true((await decodeBase64(form)).equals(bytes))
  for (const length of [262_144, 262_148, 1_048_576, 1_048_580, 4_000_000]) {
    const twoBytes = `\u4e00${text}`.slice(1, 1 + length)
    const expected = bytes.subarray(0, (length / 4) * 3)
    for (const mode of MODES) t.true((await decodeBase64(twoBytes, { mode })).equals(expected))
    for (const offset of [0, 70_000, length - 1]) {
      const wide = `${twoBytes.slice(0, offset)}\u4e00${twoBytes.slice(offset + 1)}`
      t.like(await t.throwsAsync(decodeBase64(wide)), { code: 'ERR_OFFLOOP_BASE64', offset })
    }
  }
})

if (isFull) {
  test('a gigabyte of text, more than a string can hold: taken, copied, and in chunks', async (t) => {
    const [size, count] = [2 ** 30, 16]
    const part = noise((size / 4 / count) * 3)
    const text = Buffer.from(part.toString('base64'))
    const isRepeated = (whole: Buffer, slice: Buffer): boolean =>
      whole.length === slice.length * count &&
      Array.from({ length: count }, (_, index) => index * slice.length).every((start) =>
        whole.subarray(start, start + slice.length).equals(slice),
      )
    const bytes = await decodeBase64(Buffer.alloc(size, text), { transfer: true })
    t.true(isRepeated(bytes, part))
    const again = await encodeBase64(bytes)
    t.true(isRepeated(again, text))
    t.true(isRepeated(await decodeBase64(inChunks(again, 99_999_999)), part))
  })
}
