import test from 'ava'
import {
  configure,
  createEncoder,
  decodeBase64,
  encode,
  encodeBase64,
  encodeLines,
  encodeSync,
  stats,
} from '../src/index.ts'

/** Calls with arguments that no type checker would let through. */
function call(target: (...args: never[]) => unknown, ...args: readonly unknown[]): unknown {
  return Reflect.apply(target, undefined, args)
}

function unspeakable(): object {
  return Object.defineProperty({}, 'constructor', {
    get() {
      throw new Error('not to be told')
    },
  })
}

/** The methods of an encoder have it as `this`; functions do not look. */
const encoder = createEncoder()
// oxlint-disable-next-line typescript/unbound-method -- they get their `this` when they are called
const { encode: encodeOfEncoder, encodeLines: encodeLinesOfEncoder } = encoder

function nameOf(target: (...args: never[]) => unknown): string {
  return target === encodeOfEncoder || target === encodeLinesOfEncoder ? `${target.name} of an encoder` : target.name
}

const WRONG: readonly (readonly [
  what: string,
  target: (...args: never[]) => unknown,
  args: readonly unknown[],
  code: string,
])[] = [
  ['no text', decodeBase64, [], 'ERR_INVALID_ARG_TYPE'],
  ['null', decodeBase64, [null], 'ERR_INVALID_ARG_TYPE'],
  ['a number', decodeBase64, [1], 'ERR_INVALID_ARG_TYPE'],
  ['a boxed string', decodeBase64, [Object('QQ==')], 'ERR_INVALID_ARG_TYPE'],
  ['another typed array', decodeBase64, [new Uint16Array(4)], 'ERR_INVALID_ARG_TYPE'],
  ['a DataView', decodeBase64, [new DataView(new ArrayBuffer(4))], 'ERR_INVALID_ARG_TYPE'],
  ['a SharedArrayBuffer', decodeBase64, [new SharedArrayBuffer(4)], 'ERR_INVALID_ARG_TYPE'],
  ['an object', decodeBase64, [{}], 'ERR_INVALID_ARG_TYPE'],
  ['chunks that are strings', decodeBase64, [['QQ==']], 'ERR_INVALID_ARG_TYPE'],
  ['a hole in the chunks', decodeBase64, [Array.from({ length: 1 })], 'ERR_INVALID_ARG_TYPE'],
  ['options that are no object', decodeBase64, ['', 1], 'ERR_INVALID_ARG_TYPE'],
  ['null options', decodeBase64, ['', null], 'ERR_INVALID_ARG_TYPE'],
  ['an unknown option', decodeBase64, ['', { modes: 'node' }], 'ERR_INVALID_ARG_VALUE'],
  ['an unknown mode', decodeBase64, ['', { mode: 'Node' }], 'ERR_INVALID_ARG_VALUE'],
  ['a mode of the prototype', decodeBase64, ['', { mode: 'toString' }], 'ERR_INVALID_ARG_VALUE'],
  ['a mode that is no string', decodeBase64, ['', { mode: 1 }], 'ERR_INVALID_ARG_VALUE'],
  ['an unknown alphabet', decodeBase64, ['', { alphabet: 'url' }], 'ERR_INVALID_ARG_VALUE'],
  ['transfer that is no boolean', decodeBase64, ['', { transfer: 1 }], 'ERR_INVALID_ARG_TYPE'],
  ['a signal that is none', decodeBase64, ['', { signal: {} }], 'ERR_INVALID_ARG_TYPE'],
  [
    'half a signal',
    decodeBase64,
    ['', { signal: { aborted: false, addEventListener: () => 1 } }],
    'ERR_INVALID_ARG_TYPE',
  ],
  ['an iterator that is no function', decodeBase64, [{ [Symbol.asyncIterator]: 1 }], 'ERR_INVALID_ARG_TYPE'],
  ['an object that will not be described', decodeBase64, [unspeakable()], 'ERR_INVALID_ARG_TYPE'],
  ['bytes that are a string', encodeBase64, ['abc'], 'ERR_INVALID_ARG_TYPE'],
  ['an ArrayBuffer to encode', encodeBase64, [new ArrayBuffer(4)], 'ERR_INVALID_ARG_TYPE'],
  ['padding that is no boolean', encodeBase64, [new Uint8Array(), { padding: 'yes' }], 'ERR_INVALID_ARG_TYPE'],
  ['an option of decodeBase64', encodeBase64, [new Uint8Array(), { mode: 'node' }], 'ERR_INVALID_ARG_VALUE'],
  ['no value', encode, [], 'ERR_INVALID_ARG_VALUE'],
  ['options that are no object', encode, [1, 1], 'ERR_INVALID_ARG_TYPE'],
  ['null options', encode, [1, null], 'ERR_INVALID_ARG_TYPE'],
  ['an unknown option', encode, [1, { spaces: 2 }], 'ERR_INVALID_ARG_VALUE'],
  ['an option of encodeLines', encode, [1, { onBadRow: 'throw' }], 'ERR_INVALID_ARG_VALUE'],
  ['newline that is no boolean', encode, [1, { newline: '\n' }], 'ERR_INVALID_ARG_TYPE'],
  ['a signal that is none', encode, [1, { signal: {} }], 'ERR_INVALID_ARG_TYPE'],
  ['null for a signal', encode, [1, { signal: null }], 'ERR_INVALID_ARG_TYPE'],
  ['no rows', encodeLines, [], 'ERR_INVALID_ARG_TYPE'],
  ['null for rows', encodeLines, [null], 'ERR_INVALID_ARG_TYPE'],
  ['a number for rows', encodeLines, [1], 'ERR_INVALID_ARG_TYPE'],
  ['rows that are an object', encodeLines, [{ a: 1 }], 'ERR_INVALID_ARG_TYPE'],
  ['rows that are like an array', encodeLines, [{ length: 1, 0: 1 }], 'ERR_INVALID_ARG_TYPE'],
  ['an iterator that is no function', encodeLines, [{ [Symbol.iterator]: 1 }], 'ERR_INVALID_ARG_TYPE'],
  ['options that are no object', encodeLines, [[], 1], 'ERR_INVALID_ARG_TYPE'],
  ['space', encodeLines, [[], { space: 2 }], 'ERR_INVALID_ARG_VALUE'],
  ['newline', encodeLines, [[], { newline: true }], 'ERR_INVALID_ARG_VALUE'],
  ['another word for onBadRow', encodeLines, [[], { onBadRow: 'skip' }], 'ERR_INVALID_ARG_TYPE'],
  ['onBadRow that is an object', encodeLines, [[], { onBadRow: {} }], 'ERR_INVALID_ARG_TYPE'],
  ['a signal that is none', encodeLines, [[], { signal: 1 }], 'ERR_INVALID_ARG_TYPE'],
  ['a value without JSON', encodeOfEncoder, [undefined], 'ERR_INVALID_ARG_VALUE'],
  ['an option of createEncoder', encodeOfEncoder, [1, { space: 2 }], 'ERR_INVALID_ARG_VALUE'],
  ['options that are no object', encodeOfEncoder, [1, 'x'], 'ERR_INVALID_ARG_TYPE'],
  ['a signal that is none', encodeOfEncoder, [1, { signal: [] }], 'ERR_INVALID_ARG_TYPE'],
  ['an option of createEncoder', encodeLinesOfEncoder, [[], { replacer: [] }], 'ERR_INVALID_ARG_VALUE'],
  ['another word for onBadRow', encodeLinesOfEncoder, [[], { onBadRow: true }], 'ERR_INVALID_ARG_TYPE'],
  ['null options', encodeLinesOfEncoder, [[], null], 'ERR_INVALID_ARG_TYPE'],
]

for (const [what, target, args, code] of WRONG) {
  test(`${nameOf(target)} rejects ${what} with ${code}`, async (t) => {
    let promise: unknown
    t.notThrows(() => {
      promise = Reflect.apply(target, encoder, args)
    })
    t.true(promise instanceof Promise)
    await t.throwsAsync(Promise.resolve(promise), { instanceOf: TypeError, code })
  })
}

const REFUSED: readonly (readonly [what: string, options: unknown, code: string])[] = [
  ['null options', null, 'ERR_INVALID_ARG_TYPE'],
  ['options that are no object', 'x', 'ERR_INVALID_ARG_TYPE'],
  ['an unknown option', { indent: 2 }, 'ERR_INVALID_ARG_VALUE'],
  ['a hidden unknown option', Object.defineProperty({}, 'indent', { value: 2 }), 'ERR_INVALID_ARG_VALUE'],
  ['a signal', { signal: new AbortController().signal }, 'ERR_INVALID_ARG_VALUE'],
  ['newline that is no boolean', { newline: 1 }, 'ERR_INVALID_ARG_TYPE'],
  ['null for newline', { newline: null }, 'ERR_INVALID_ARG_TYPE'],
]

for (const [what, options, code] of REFUSED) {
  test(`encodeSync and createEncoder throw for ${what} with ${code}`, (t) => {
    t.throws(() => call(encodeSync, 1, options), { instanceOf: TypeError, code })
    t.throws(() => call(createEncoder, options), { instanceOf: TypeError, code })
  })
}

const MISCONFIGURED: readonly (readonly [what: string, options: unknown, code: string])[] = [
  ['no options', undefined, 'ERR_INVALID_ARG_TYPE'],
  ['an unknown key', { threads: 2 }, 'ERR_INVALID_ARG_VALUE'],
  ['a concurrency of zero', { concurrency: 0 }, 'ERR_OUT_OF_RANGE'],
  ['a fractional concurrency', { concurrency: 1.5 }, 'ERR_OUT_OF_RANGE'],
  ['a concurrency that is a string', { concurrency: '2' }, 'ERR_INVALID_ARG_TYPE'],
  ['negative idle bytes', { concurrency: 7, maxIdleBytes: -1 }, 'ERR_OUT_OF_RANGE'],
  ['more warm bytes than may be idle', { maxIdleBytes: 1, prewarmBytes: 2 }, 'ERR_OUT_OF_RANGE'],
]

for (const [what, options, code] of MISCONFIGURED) {
  test(`configure refuses ${what} and changes nothing`, (t) => {
    const { concurrency } = stats()
    t.throws(() => call(configure, options), { code })
    t.is(stats().concurrency, concurrency)
  })
}

test('the error names the argument, what it should be, and what it is', async (t) => {
  const error = await t.throwsAsync(Promise.resolve(call(decodeBase64, '', { mode: 'loose' })))
  t.is(error?.message, `The property 'options.mode' must be one of: 'node', 'forgiving', 'strict'. Received 'loose'`)
  const wrong = await t.throwsAsync(Promise.resolve(call(encodeBase64, null)))
  t.is(wrong?.message, 'The "bytes" argument must be an instance of Uint8Array. Received null')
})

test('a detached or out-of-bounds view is refused, an empty one is not', async (t) => {
  const detached = new Uint8Array(8)
  structuredClone(detached.buffer, { transfer: [detached.buffer] })
  const refused = { instanceOf: TypeError, code: 'ERR_INVALID_ARG_VALUE' }
  await t.throwsAsync(decodeBase64(detached), refused)
  await t.throwsAsync(encodeBase64(detached, { transfer: true }), refused)
  await t.throwsAsync(decodeBase64(detached.buffer), refused)
  await t.throwsAsync(decodeBase64([new Uint8Array(4), detached]), refused)
  const resizable: ArrayBuffer = Reflect.construct(ArrayBuffer, [16, { maxByteLength: 32 }])
  const view = new Uint8Array(resizable, 8, 8)
  Reflect.apply(Reflect.get(resizable, 'resize'), resizable, [4])
  await t.throwsAsync(decodeBase64(view), refused)
  t.is((await decodeBase64(new Uint8Array(new ArrayBuffer(0)))).length, 0)
})

test('options are read once, and a getter that throws rejects', async (t) => {
  let reads = 0
  const options = Object.defineProperty({}, 'mode', {
    enumerable: true,
    get() {
      reads += 1
      return 'strict'
    },
  })
  t.is((await decodeBase64('QQ==', options)).toString(), 'A')
  t.is(reads, 1)
  const failing = Object.defineProperty({}, 'mode', {
    get() {
      throw new Error('mine')
    },
  })
  await t.throwsAsync(decodeBase64('QQ==', failing), { message: 'mine' })
})
