/**
 * Calls every noun of the package and compares the results with Node's own functions. Runs in any Node, on any platform, with
 * nothing but the package: `node smoke.mjs [package or path of its index.js]`. Its exit code is 1 if a noun fails.
 *
 * OFFLOOP_SMOKE_OUT: a file for the lines, as a node.exe under wine cannot write to a pipe. OFFLOOP_SMOKE_BYTES: size of the
 * large inputs. OFFLOOP_SMOKE_HOOKS: the addon has test hooks, whose panics must be caught.
 */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const { OFFLOOP_SMOKE_OUT, OFFLOOP_SMOKE_BYTES = '3000000', OFFLOOP_SMOKE_HOOKS, OFFLOOP_ADDON } = process.env
const SIZE = Number(OFFLOOP_SMOKE_BYTES)
const TIMEOUT_MS = 120_000
/** Lengths around the blocks of every kernel. */
const LENGTHS = Array.from({ length: 200 }, (_, length) => length)

const name = process.argv[2] ?? 'offloop'
const offloop = await import(/[\\/]/.test(name) ? pathToFileURL(resolve(name)).href : name)
const folder = mkdtempSync(join(tmpdir(), 'offloop-smoke-'))

const NOUNS = {
  encode,
  lines,
  msgpack,
  snapshots,
  parse,
  split,
  base64,
  experts,
  log,
  repair,
  read,
  save,
  errors,
  abort,
  panics,
}

async function run(noun, check) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('it takes too long')), TIMEOUT_MS)
  })
  try {
    await Promise.race([check(), late])
    say(`ok   ${noun}`)
  } catch (error) {
    process.exitCode = 1
    say(`FAIL ${noun}: ${error.stack}`)
  } finally {
    clearTimeout(timer)
  }
}

function say(line) {
  if (OFFLOOP_SMOKE_OUT === undefined) console.log(line)
  else appendFileSync(OFFLOOP_SMOKE_OUT, `${line}\n`)
}

// ───────────────────────────── inputs ─────────────────────────────

function bytesOf(length) {
  const bytes = Buffer.alloc(length)
  let state = 12_345
  for (let index = 0; index < length; index += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    bytes[index] = state >>> 24
  }
  return bytes
}

function rowOf(id) {
  return {
    id,
    score: id / 7,
    count: id * 7_919_317 - 500_000_000,
    text: `é\u2028"\\ 😀${'x'.repeat(id % 70)}\n\u0001`,
    wide: 'Ж'.repeat(id % 40),
    nested: { list: [1, 2.5, -3e10, 12_345_678_901_234, true, null, 1e21, 5e-324], empty: [[], {}] },
    absent: undefined,
    tokens: Array.from({ length: 50 }, (_, index) => index * id),
  }
}

function rowsOf(count) {
  return Array.from({ length: count }, (_, id) => rowOf(id))
}

/** Returns what a promise rejects with. */
async function rejectionOf(promise) {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('the promise did not reject')
}

// ───────────────────────────── JSON ─────────────────────────────

async function encode() {
  const rows = rowsOf(Math.ceil(SIZE / 600))
  assert.equal((await offloop.encode(rows)).toString(), JSON.stringify(rows))
  assert.equal(
    (await offloop.encode(rows.slice(0, 9), { space: 2, newline: true })).toString(),
    `${JSON.stringify(rows.slice(0, 9), null, 2)}\n`,
  )
  for (const row of rows.slice(0, 50)) assert.equal(offloop.encodeSync(row).toString(), JSON.stringify(row))
  const long = { text: `${'a'.repeat(SIZE)}é` }
  assert.equal((await offloop.encode(long)).toString(), JSON.stringify(long))
  const typed = {
    floats: Float32Array.of(0.1, 1.5, 3e38),
    doubles: Float64Array.of(0.1, -0),
    ints: Int16Array.of(-5, 300),
  }
  const text = '{"floats":[0.1,1.5,3e+38],"doubles":[0.1,0],"ints":[-5,300]}'
  assert.equal((await offloop.encode(typed, { typedArrays: 'array' })).toString(), text)
  const doubles = Array.from(bytesOf(8000), (byte, index) => byte / (index + 1))
  assert.equal((await offloop.encode(doubles)).toString(), JSON.stringify(doubles))
}

async function lines() {
  assert.equal((await offloop.encodeLines([1, { a: 2 }, 'x'])).toString(), '1\n{"a":2}\n"x"\n')
}

async function msgpack() {
  const list = [
    1,
    -1,
    128,
    65_536,
    2 ** 40,
    1.5,
    'é',
    true,
    null,
    Buffer.from([1, 2]),
    new Map([[1, 2]]),
    Int16Array.of(-300),
  ]
  const expected = '9c01ffcc80ce00010000cf0000010000000000cb3ff8000000000000a2c3a9c3c0c402010281010291d1fed4'
  assert.equal((await offloop.encodeMsgpack(list)).toString('hex'), expected)
}

async function snapshots() {
  const snapshot = offloop.capture({ b: [1, 2], a: 'x' })
  assert.equal((await snapshot.json()).toString(), '{"b":[1,2],"a":"x"}')
  assert.equal(await snapshot.digest(), createHash('sha256').update('{"a":"x","b":[1,2]}').digest('hex'))
  assert.equal((await snapshot.msgpack()).toString('hex'), '82a162920102a161a178')
  assert.equal((await offloop.encode({ raw: offloop.rawJson('{"z":[1.0]}') })).toString(), '{"raw":{"z":[1.0]}}')
}

const LIFT = { '/image': 'base64', '/**/ids': 'int32', '/**/logprobs': 'float64', '/raw': 'raw' }

function bodyOf(image) {
  const ids = Array.from({ length: 10_000 }, (_, index) => index * 3 - 7)
  const logprobs = ids.map((id) => id / 7)
  const body = { name: 'é😀', image: image.toString('base64'), choices: [{ ids, logprobs }], raw: { x: [1, 2] } }
  return { bytes: Buffer.from(JSON.stringify(body)), ids, logprobs }
}

async function parse() {
  const image = bytesOf(SIZE)
  const { bytes, ids, logprobs } = bodyOf(image)
  const chunks = []
  for (let start = 0; start < bytes.length; start += 65_536) chunks.push(bytes.subarray(start, start + 65_536))
  const stream = (async function* () {
    yield* chunks
  })()
  for (const input of [bytes, chunks, stream]) {
    const value = await offloop.parse(input, { lift: LIFT })
    assert.equal(value.name, 'é😀')
    assert.ok(value.image.equals(image))
    assert.deepEqual(value.choices[0].ids, Int32Array.from(ids))
    assert.deepEqual(value.choices[0].logprobs, Float64Array.from(logprobs))
    assert.equal(value.raw.toString(), '{"x":[1,2]}')
  }
  const own = Buffer.from(Uint8Array.from(bytes).buffer)
  assert.ok((await offloop.parse(own, { lift: LIFT, transfer: true })).image.equals(image))
  assert.equal(own.length, 0)
}

async function split() {
  const image = bytesOf(5000)
  const { json, lifted } = await offloop.split(bodyOf(image).bytes, { lift: { '/image': 'base64' } })
  assert.equal(JSON.parse(json).image, null)
  assert.ok(lifted[0].value.equals(image))
}

// ───────────────────────────── bytes ─────────────────────────────

async function base64() {
  const bytes = bytesOf(SIZE + 1)
  const text = bytes.toString('base64')
  assert.equal((await offloop.encodeBase64(bytes)).toString(), text)
  assert.equal((await offloop.encodeBase64(bytes, { alphabet: 'base64url' })).toString(), bytes.toString('base64url'))
  for (const mode of ['node', 'forgiving', 'strict']) {
    assert.ok((await offloop.decodeBase64(text, { mode })).equals(bytes))
    assert.ok((await offloop.decodeBase64(Buffer.from(text), { mode })).equals(bytes))
  }
  assert.ok((await offloop.decodeBase64(text.replaceAll(/.{76}/g, '$&\r\n'))).equals(bytes))
  for (const length of LENGTHS) {
    const part = bytes.subarray(0, length)
    assert.equal((await offloop.encodeBase64(part)).toString(), part.toString('base64'))
    assert.ok((await offloop.decodeBase64(part.toString('base64'), { mode: 'strict' })).equals(part))
  }
}

async function experts() {
  const turn = (rows, start) => {
    return {
      experts: { data: Buffer.from(rows).toString('base64'), shape: [rows.length, 1, 1], dtype: 'uint8' },
      start,
    }
  }
  const joined = await offloop.concatExperts([turn([1, 3, 5], 0), turn([40, 50], 3)], { tokens: 6 })
  assert.deepEqual([...joined.data], [1, 3, 5, 40, 50, 0])
  const large = bytesOf(SIZE - (SIZE % 8))
  const shape = [large.length / 8, 4, 2]
  const { data } = await offloop.concatExperts([{ experts: { data: large.toString('base64'), shape } }], {
    tokens: shape[0] + 1,
  })
  assert.ok(data.subarray(0, large.length).equals(large))
  assert.ok(data.subarray(large.length).every((byte) => byte === 0))
}

// ───────────────────────────── files ─────────────────────────────

const path = join(folder, 'ünï rows.jsonl')

async function log() {
  const opened = await offloop.openJsonl(path)
  const { code } = await rejectionOf(offloop.openJsonl(path))
  assert.equal(code, 'ERR_OFFLOOP_LOCKED')
  await Promise.all(rowsOf(300).map((row) => opened.append(row)))
  const { written, bad } = await opened.appendMany([{ a: 1 }, { b: 10n }, { c: 2 }])
  assert.deepEqual([written, bad.length], [2, 1])
  const last = opened.append({ last: true })
  opened.flushSync()
  await last
  await opened.close()
  const again = await offloop.openJsonl(path)
  await again.append({ more: 1 })
  await again.close()
  const expected = [...rowsOf(300), { a: 1 }, { c: 2 }, { last: true }, { more: 1 }]
  assert.equal(readFileSync(path, 'utf8'), expected.map((row) => `${JSON.stringify(row)}\n`).join(''))
}

async function repair() {
  const torn = join(folder, 'torn.jsonl')
  writeFileSync(torn, '{"a":1}\n{"b":')
  const { action, sidecar } = await offloop.repair(torn)
  assert.equal(action, 'quarantined')
  assert.ok(existsSync(sidecar))
  assert.equal(readFileSync(torn, 'utf8'), '{"a":1}\n')
  writeFileSync(torn, '{"a":1}\n{"b":2}')
  assert.equal((await offloop.repair(torn)).action, 'terminated')
}

async function read() {
  const rows = []
  for await (const batch of offloop.readJsonl(path, { as: 'value' })) rows.push(...batch.map(({ value }) => value))
  assert.equal(JSON.stringify(rows), `[${readFileSync(path, 'utf8').trimEnd().split('\n').join(',')}]`)
  const last = []
  for await (const batch of offloop.readJsonl(path, { as: 'value', last: 2 }))
    last.push(...batch.map(({ value }) => value))
  assert.deepEqual(last, [{ last: true }, { more: 1 }])
}

async function save() {
  const file = join(folder, 'saved')
  const bytes = bytesOf(SIZE)
  assert.equal((await offloop.saveFile(file, { a: 1 })).bytes, 7)
  assert.equal(readFileSync(file, 'utf8'), '{"a":1}')
  await offloop.saveFile(file, bytes, { format: 'bytes' })
  assert.ok(readFileSync(file).equals(bytes))
  await offloop.saveFile(file, [1, 2], { format: 'jsonl' })
  assert.equal(readFileSync(file, 'utf8'), '1\n2\n')
}

// ───────────────────────────── failures ─────────────────────────────

async function errors() {
  const base64Error = await rejectionOf(offloop.decodeBase64('QUJD*', { mode: 'strict' }))
  assert.ok(base64Error instanceof offloop.OffloopError)
  assert.deepEqual([base64Error.code, base64Error.offset], ['ERR_OFFLOOP_BASE64', 4])
  const jsonError = await rejectionOf(offloop.parse(Buffer.from('{"a":]'), { lift: { '/a': 'raw' } }))
  assert.deepEqual([jsonError.code, jsonError.offset], ['ERR_OFFLOOP_JSON', 5])
  const missing = await rejectionOf(offloop.saveFile(join(folder, 'no', 'such', 'folder'), 1))
  assert.deepEqual([missing.code, typeof missing.errno], ['ENOENT', 'number'])
  assert.equal((await rejectionOf(offloop.encode(1, { unknown: true }))).code, 'ERR_INVALID_ARG_VALUE')
}

async function abort() {
  const reason = new Error('the reason')
  assert.equal(await rejectionOf(offloop.encodeBase64(bytesOf(SIZE), { signal: AbortSignal.abort(reason) })), reason)
  // More calls than run at once: the last one waits when it is aborted.
  const controller = new AbortController()
  const bytes = bytesOf(1_000_000)
  const calls = Array.from({ length: 24 }, () => offloop.encodeBase64(bytes, { signal: controller.signal }))
  controller.abort(reason)
  const ends = await Promise.allSettled(calls)
  assert.equal(ends.at(-1).reason, reason)
  for (const end of ends) assert.ok(end.status === 'fulfilled' ? 1_000_000 < end.value.length : end.reason === reason)
  while (offloop.stats().running !== 0) await new Promise((next) => setTimeout(next, 1))
  assert.equal(offloop.stats().backend, 'native')
}

/** A panic is an error of one call, in a task and on the JS thread. */
async function panics() {
  if (OFFLOOP_SMOKE_HOOKS === undefined) return
  const hooks = createRequire(import.meta.url)(OFFLOOP_ADDON)
  const failures = [
    hooks.panicSync('here'),
    ...(await Promise.all([1, 2, 3].map((bug) => hooks.panicTask(`bug ${bug}`)))),
  ]
  for (const { code } of failures) assert.equal(code, 'ERR_OFFLOOP_INTERNAL')
}

for (const [noun, check] of Object.entries(NOUNS)) await run(noun, check)
rmSync(folder, { recursive: true, force: true })
const where = `${process.platform}-${process.arch}, Node ${process.versions.node}, offloop ${offloop.version}`
say(process.exitCode === 1 ? `SMOKE FAILED ${where}` : `SMOKE OK ${where}`)
