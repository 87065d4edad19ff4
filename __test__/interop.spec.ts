/** What others make of what was encoded. Python and its libraries are in a cached environment; where there is none, one line says so. */

import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import test from 'ava'
import { concatExperts, decodeExperts, encodeMsgpack, type RoutedExperts } from '../src/index.ts'
import { python } from '../scripts/python.mjs'
import { Random, randomMix, randomShape, randomTable, randomValue } from './fixtures/values.ts'

const script = fileURLToPath(new URL('fixtures/interop.py', import.meta.url))
const arrays = fileURLToPath(new URL('fixtures/experts.py', import.meta.url))

function bytesOf(byte: number, length: number): string {
  return `b'${`\\x0${byte}`.repeat(length)}'`
}

/** As Python’s literals, which say more than JSON does. */
const LITERALS: Readonly<Record<string, readonly [value: unknown, literal: string]>> = {
  bytes: [
    [Buffer.from('abc'), new Uint8Array(300), Buffer.alloc(70_000, 7)],
    `[b'abc', ${bytesOf(0, 300)}, ${bytesOf(7, 70_000)}]`,
  ],
  keys: [
    new Map<unknown, unknown>([
      [1, 'a'],
      [-5, null],
      ['b', new Map([[2n ** 64n - 1n, 1.5]])],
    ]),
    "{1: 'a', -5: None, 'b': {18446744073709551615: 1.5}}",
  ],
  bigints: [[2n ** 63n, -(2n ** 63n), 1n], '[9223372036854775808, -9223372036854775808, 1]'],
  floats: [[Float32Array.of(0.1, 1), Float64Array.of(1, -0), 0.1], '[[0.10000000149011612, 1.0], [1.0, -0.0], 0.1]'],
  integers: [
    [Int8Array.of(-1, -128), Uint32Array.of(4_294_967_295), 2 ** 53, -(2 ** 60)],
    '[[-1, -128], [4294967295], 9007199254740992, -1152921504606846976]',
  ],
  'golden experts': [[Uint8Array.of(1, 2, 3, 4), [2, 1, 2], 'uint8'], "[b'\\x01\\x02\\x03\\x04', [2, 1, 2], 'uint8']"],
}

/** As Python would read the JSON of it: lone surrogates are none in UTF-8, and integers have no fraction. */
function plain(value: unknown): unknown {
  const text = JSON.stringify(value, (_, part: unknown) => {
    // Its digits are not all of those that the double has.
    if (Number.isInteger(part) && !Number.isSafeInteger(part)) return Number(part) > 0
    if (typeof part === 'string') return Buffer.from(part).toString()
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part
    return Object.fromEntries(Object.entries(part).map(([name, item]) => [Buffer.from(name).toString(), item]))
  })
  return text === undefined ? null : JSON.parse(text)
}

function attempt(make: () => unknown): unknown {
  try {
    return plain(make())
  } catch {
    // Values that have no JSON are tested elsewhere.
    return 'none'
  }
}

const interpreter = python()
const interop = interpreter === undefined ? test.skip : test

interop('msgspec and msgpack-python read the same values, and write the same bytes', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
  try {
    const random = new Random(31)
    const values = random.list(300, () => attempt(() => random.pick([randomValue, randomMix, randomTable])(random)))
    for (let round = 0; round < 40; round += 1) {
      values.push(attempt(() => Array.from({ length: 100 }, randomShape(random))))
    }
    for (const [index, value] of values.entries()) {
      writeFileSync(join(folder, `${index}.json`), JSON.stringify(value))
      writeFileSync(join(folder, `${index}.msgpack`), await encodeMsgpack(value))
    }
    for (const [name, [value, literal]] of Object.entries(LITERALS)) {
      writeFileSync(join(folder, `${name}.literal`), literal)
      writeFileSync(join(folder, `${name}.msgpack`), await encodeMsgpack(value))
    }
    const rows = Array.from({ length: 3 }, (_, id) => ({
      id,
      reward: id / 2,
      ids: Int32Array.of(1, 2, 70_000),
      logprobs: Float32Array.of(-1, -0.5),
      experts: id === 0 ? null : [Uint8Array.of(1, 2, 3, 4), [2, 1, 2], 'uint8'],
    }))
    writeFileSync(join(folder, 'rows.bin'), await encodeMsgpack(rows))
    const { stdout } = await promisify(execFile)(interpreter ?? '', ['-I', script, folder])
    t.is(stdout, `${2 * (values.length + Object.keys(LITERALS).length)} read\n`)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

interop('numpy saves what is decoded here, and reads what comes out', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
  const numpy = async (what: string): Promise<string> => {
    const { stdout } = await promisify(execFile)(interpreter ?? '', ['-I', arrays, what, folder])
    return stdout
  }
  const write = (name: string, { data, shape, dtype }: RoutedExperts): void => {
    writeFileSync(join(folder, `${name}.data`), data)
    writeFileSync(join(folder, `${name}.json`), JSON.stringify({ shape, dtype }))
  }
  try {
    await numpy('make')
    for (const file of readdirSync(folder)) {
      const bytes = readFileSync(join(folder, file))
      const [name = ''] = file.split('.')
      if (name.startsWith('bad')) {
        await t.throwsAsync(decodeExperts(bytes), { code: 'ERR_OFFLOOP_EXPERTS' }, name)
      } else if (file.endsWith('.b85')) {
        const experts = { data: bytes.toString(), shape: [7, 3, 4], dtype: name, encoding: 'base85' } as const
        write(`${name}-b85`, await decodeExperts(experts))
      } else {
        write(name, await decodeExperts(bytes))
        write(`${name}-text`, await concatExperts([{ experts: bytes.toString('base64') }], { tokens: 7 }))
      }
    }
    t.is(await numpy('check'), '45 arrays\n')
  } finally {
    rmSync(folder, { recursive: true })
  }
})
