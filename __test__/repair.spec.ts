import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { OffloopError, openJsonl, repair, type RepairReport, type TailPolicy } from '../src/index.ts'
import { runScenario, startScenario } from './fixtures/child.ts'
import { makeFile } from './fixtures/folder.ts'
import { failAt, hasStrace, killAt, trace } from './fixtures/strace.ts'

interface Golden {
  readonly input: string
  readonly error?: string
  readonly action: RepairReport['action']
  readonly cause: RepairReport['cause']
  readonly offset: number | null
  readonly tornBytes: number
  readonly file: string
  readonly isolated: string
}

const goldens: { readonly cases: readonly Golden[] } = JSON.parse(
  readFileSync(new URL('fixtures/vectors/tail.json', import.meta.url), 'utf8'),
)
const POLICIES = ['quarantine', 'truncate', 'isolate', 'strict', 'report'] as const
const TORN = '{"a":1}\n{"a":2'
const CLEAN: RepairReport = {
  action: 'none',
  cause: null,
  sizeBefore: 0,
  size: 0,
  offset: null,
  tornBytes: 0,
  sidecar: null,
  badRows: [],
}

function read(path: string): string {
  return readFileSync(path, 'latin1')
}

function namesBeside(path: string): string[] {
  return readdirSync(dirname(path)).toSorted()
}

/** What a policy makes of a golden: the file, and what is done. */
function expectedOf(golden: Golden, policy: TailPolicy): { file: string; action: RepairReport['action'] } {
  const { input, file, action, isolated } = golden
  const isTorn = action === 'quarantined'
  if (policy === 'isolate') {
    return { file: isolated, action: !isTorn ? action : isolated === input ? 'none' : 'isolated' }
  }
  if (policy === 'truncate') return { file, action: isTorn ? 'truncated' : action }
  return { file: policy === 'quarantine' ? file : input, action }
}

async function checkGolden(t: ExecutionContext, golden: Golden, policy: TailPolicy): Promise<void> {
  const { input, cause, offset, tornBytes, error } = golden
  const path = makeFile(Buffer.from(input, 'latin1'))
  const strictCode = policy === 'strict' && golden.action !== 'none' ? 'ERR_OFFLOOP_TORN' : undefined
  const code = error ?? strictCode
  if (code !== undefined) {
    const thrown = await t.throwsAsync(repair(path, { policy }), { instanceOf: OffloopError, code })
    t.like(thrown, { path })
    t.is(read(path), input)
    t.deepEqual(namesBeside(path), ['rows.jsonl'])
    return
  }
  const report = await repair(path, { policy })
  const { file, action } = expectedOf(golden, policy)
  const size = policy === 'report' ? golden.file.length : file.length
  const sidecar = policy === 'quarantine' && action === 'quarantined' ? `${path}.torn-${offset}-0` : null
  const expected = { action, cause, sizeBefore: input.length, size, offset, tornBytes, sidecar, badRows: [] }
  t.deepEqual(report, expected, `${policy} of ${JSON.stringify(input)}`)
  t.is(read(path), file)
  if (sidecar !== null) t.is(read(sidecar), input.slice(offset ?? 0))
  t.is(namesBeside(path).length, sidecar === null ? 1 : 2)
  if (policy !== 'report') t.is((await repair(path, { policy })).action, 'none')
}

for (const policy of POLICIES) {
  test(`${policy} does to every golden what the rules say, once`, async (t) => {
    for (const golden of goldens.cases) await checkGolden(t, golden, policy)
  })
}

test('a file that is missing is clean', async (t) => {
  t.deepEqual(await repair(join(dirname(makeFile('')), 'no', 'such')), CLEAN)
})

test('torn bytes cut again go to a sidecar of their own', async (t) => {
  const path = makeFile(TORN)
  await repair(path)
  appendFileSync(path, '{"b":')
  const { sidecar } = await repair(path)
  t.is(sidecar, `${path}.torn-8-1`)
  t.is(read(`${path}.torn-8-0`), '{"a":2')
  t.is(read(`${path}.torn-8-1`), '{"b":')
})

test('a torn log whose name is as long as any opens, and its sidecar has a shorter name', async (t) => {
  const path = join(dirname(makeFile('')), 'é'.repeat(127) + 'x')
  writeFileSync(path, TORN)
  const log = await openJsonl(path)
  await log.close()
  const { sidecar } = log.repaired
  t.regex(basename(sidecar ?? ''), /^é{114}~[0-9a-f]{16}\.torn-8-0$/)
  t.is(read(sidecar ?? ''), '{"a":2')
  t.is(read(path), '{"a":1}\n')
})

test('file and sidecar have the mode that the file had', async (t) => {
  const path = makeFile(TORN)
  for (const mode of [0o600, 0o646]) {
    writeFileSync(path, TORN)
    chmodSync(path, mode)
    const { sidecar } = await repair(path)
    t.is(statSync(sidecar ?? '').mode & 0o777, mode)
    t.is(statSync(path).mode & 0o777, mode)
  }
})

for (const durability of ['none', 'data', 'full'] as const) {
  test(`durability ${durability} repairs`, async (t) => {
    const path = makeFile(TORN)
    t.is((await repair(path, { durability })).action, 'quarantined')
    t.is(read(path), '{"a":1}\n')
  })
}

const BAD = [
  ['{"a":1}', null],
  ['{"a":', 'partial'],
  ['{"a":1}{"b":2}', 'glued'],
  ['', null],
  ['{"a":NaN}', 'nonstandard'],
  ['{"a":"\xff"}', 'nonstandard'],
  ['hello', 'garbage'],
  ['{"a":1}\0\0', 'nul'],
  ['12', null],
] as const

test('bad rows before the tail are listed and left alone', async (t) => {
  let text = ''
  const badRows: RepairReport['badRows'][number][] = []
  for (const [row, cause] of BAD) {
    if (cause !== null) badRows.push({ offset: text.length, length: row.length, cause })
    text += `${row}\n`
  }
  const path = makeFile(Buffer.from(`${text}{"torn":`, 'latin1'))
  t.deepEqual((await repair(path, { policy: 'report', verify: 'all' })).badRows, badRows)
  const since = badRows[2]?.offset ?? 0
  const report = await repair(path, { verify: { since } })
  t.deepEqual(report.badRows, badRows.slice(2))
  t.is(read(path), text)
  t.deepEqual((await repair(path)).badRows, [])
  t.deepEqual((await repair(path, { verify: { since: 10_000 } })).badRows, [])
})

test('what is known to be durable is never cut off', async (t) => {
  const path = makeFile(`{"a":1}\nhello\n{"a":`)
  const options = { verify: { since: 14 } }
  await t.throwsAsync(repair(path, options), { code: 'ERR_OFFLOOP_CORRUPT', message: /from byte 8 on/ })
  t.is(read(path), `{"a":1}\nhello\n{"a":`)
})

test('progress goes up to all there is, before the promise settles', async (t) => {
  const path = makeFile(`${'{"a":1}\n'.repeat(3_000_000)}{"a":`)
  const { size } = statSync(path)
  const told: { readonly bytes: number; readonly total: number }[] = []
  let isSettled = false
  const call = repair(path, {
    verify: 'all',
    onProgress: (done) => {
      t.false(isSettled)
      told.push(done)
    },
  })
  await call
  isSettled = true
  const bytes = told.map((done) => done.bytes)
  t.deepEqual(
    bytes,
    bytes.toSorted((a, b) => a - b),
  )
  t.deepEqual(told.at(-1), { bytes: size, total: size })
})

test('what onProgress throws rejects the call', async (t) => {
  const path = makeFile(TORN)
  const thrown = new Error('enough')
  const onProgress = (): void => {
    throw thrown
  }
  t.is(await t.throwsAsync(repair(path, { onProgress })), thrown)
})

test('an aborted signal ends it with its reason', async (t) => {
  const path = makeFile(TORN)
  await t.throwsAsync(repair(path, { signal: AbortSignal.abort(new Error('before')) }), { message: 'before' })
  const controller = new AbortController()
  const call = repair(path, { signal: controller.signal, onProgress: () => {} })
  controller.abort(new Error('after'))
  const outcome = await call.catch((error: unknown) => error)
  // It may have been quicker.
  const isDone = read(path) === '{"a":1}\n'
  t.is(outcome instanceof Error, !isDone)
})

for (const [options, code] of [
  [{ polcy: 'report' }, 'ERR_INVALID_ARG_VALUE'],
  [{ policy: 'delete' }, 'ERR_INVALID_ARG_VALUE'],
  [{ policy: 'constructor' }, 'ERR_INVALID_ARG_VALUE'],
  [{ verify: 'some' }, 'ERR_INVALID_ARG_VALUE'],
  [{ verify: {} }, 'ERR_INVALID_ARG_TYPE'],
  [{ verify: { since: '1' } }, 'ERR_INVALID_ARG_TYPE'],
  [{ verify: { since: -1 } }, 'ERR_OUT_OF_RANGE'],
  [{ verify: { since: 0, until: 1 } }, 'ERR_INVALID_ARG_VALUE'],
  [{ durability: 'some' }, 'ERR_INVALID_ARG_VALUE'],
  [{ lock: 1 }, 'ERR_INVALID_ARG_TYPE'],
  [{ onProgress: 1 }, 'ERR_INVALID_ARG_TYPE'],
  [{ signal: {} }, 'ERR_INVALID_ARG_TYPE'],
  [null, 'ERR_INVALID_ARG_TYPE'],
] as const) {
  test(`the options ${JSON.stringify(options)} are refused`, async (t) => {
    const path = makeFile(TORN)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers without types may pass it
    await t.throwsAsync(repair(path, options as never), { code })
    t.is(read(path), TORN)
  })
}

test('a path is a string or a file: URL without NULs', async (t) => {
  const path = makeFile(TORN)
  t.is((await repair(pathToFileURL(path))).sidecar, `${path}.torn-8-0`)
  await t.throwsAsync(repair('a\0b'), { code: 'ERR_INVALID_ARG_VALUE', instanceOf: TypeError })
  await t.throwsAsync(repair(new URL('file:///a%00b')), { code: 'ERR_INVALID_ARG_VALUE' })
  await t.throwsAsync(repair(new URL('http://a/b')), { code: 'ERR_INVALID_URL_SCHEME' })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers without types may pass it
  await t.throwsAsync(repair(7 as never), { code: 'ERR_INVALID_ARG_TYPE' })
})

test('a symbolic link is followed, and the sidecar lands beside the real file', async (t) => {
  const path = makeFile(TORN)
  const elsewhere = dirname(makeFile(''))
  symlinkSync(path, join(elsewhere, 'absolute'))
  symlinkSync('absolute', join(elsewhere, 'relative'))
  const { sidecar } = await repair(join(elsewhere, 'relative'))
  t.is(sidecar, `${path}.torn-8-0`)
  t.is(read(path), '{"a":1}\n')
  t.deepEqual(namesBeside(join(elsewhere, 'x')), ['absolute', 'relative', 'rows.jsonl'])
  symlinkSync('nowhere', join(elsewhere, 'dangling'))
  t.is((await repair(join(elsewhere, 'dangling'))).action, 'none')
  symlinkSync('loop', join(elsewhere, 'loop'))
  await t.throwsAsync(repair(join(elsewhere, 'loop')), { code: 'ELOOP' })
})

test('a folder is refused with Node’s own error', async (t) => {
  const path = dirname(makeFile(''))
  for (const [policy, syscall] of [
    ['quarantine', 'open'],
    ['report', 'read'],
  ] as const) {
    const error = await t.throwsAsync(repair(path, { policy }), { instanceOf: Error, code: 'EISDIR' })
    t.is(error?.message, `EISDIR: illegal operation on a directory, ${syscall} '${path}'`)
    t.like(error, { errno: -21, code: 'EISDIR', syscall, path })
  }
})

test('FIFOs and sockets are refused, and not waited for', async (t) => {
  const folder = dirname(makeFile(''))
  const fifo = join(folder, 'fifo')
  execFileSync('mkfifo', [fifo])
  for (const policy of POLICIES) await t.throwsAsync(repair(fifo, { policy }), { code: 'ESPIPE' })
  const server = createServer().listen(join(folder, 'socket'))
  await once(server, 'listening')
  await t.throwsAsync(repair(join(folder, 'socket')), { code: 'ENXIO' })
  server.close()
})

/** In a process of somebody who is not root. */
function asNobody(path: string, policy: TailPolicy): string {
  const code = `import { repair } from 'offloop'
    if (process.getuid() === 0) process.setuid(65534)
    const tell = ({ code, syscall, path, action }) => console.log(JSON.stringify({ code, syscall, path, action }))
    await repair(${JSON.stringify(path)}, { policy: '${policy}' }).then(tell, tell)`
  return execFileSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: fileURLToPath(new URL('../', import.meta.url)),
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '' },
  }).trim()
}

test('a file that may not be written is reported on, and not repaired', (t) => {
  const path = makeFile(TORN)
  chmodSync(dirname(path), 0o755)
  chmodSync(path, 0o444)
  t.deepEqual(JSON.parse(asNobody(path, 'report')), { action: 'quarantined' })
  t.deepEqual(JSON.parse(asNobody(path, 'quarantine')), { code: 'EACCES', syscall: 'open', path })
  chmodSync(path, 0)
  t.deepEqual(JSON.parse(asNobody(path, 'report')), { code: 'EACCES', syscall: 'open', path })
})

test('where no sidecar can be made nothing is cut off', (t) => {
  const path = makeFile(TORN)
  const folder = dirname(path)
  chmodSync(folder, 0o555)
  chmodSync(path, 0o666)
  const sidecar = `${path}.torn-8-0`
  t.deepEqual(JSON.parse(asNobody(path, 'quarantine')), { code: 'EACCES', syscall: 'open', path: sidecar })
  chmodSync(folder, 0o755)
  t.is(read(path), TORN)
})

test('a name that is taken, by whatever, is passed over', async (t) => {
  const path = makeFile(TORN)
  mkdirSync(`${path}.torn-8-0`)
  t.is((await repair(path)).sidecar, `${path}.torn-8-1`)
})

test('a file above 4 GiB is repaired at its end', async (t) => {
  const path = makeFile('{"a":1}\n')
  const start = 6 * 2 ** 30
  truncateSync(path, start)
  appendFileSync(path, '\n{"a":1}\n{"a":2}{"a":3')
  const report = await repair(path)
  t.like(report, { action: 'quarantined', cause: 'partial', offset: start + 16, size: start + 17, tornBytes: 6 })
  t.is(read(report.sidecar ?? ''), '{"a":3')
  t.is(statSync(path).size, start + 17)
})

test('a long last row is told to be torn in little memory', async (t) => {
  const path = makeFile('{"a":1}\n{"a":"')
  const file = openSync(path, 'a')
  const mebibyte = Buffer.alloc(2 ** 20, 'x')
  for (let count = 0; count < 256; count += 1) writeSync(file, mebibyte)
  writeSync(file, Buffer.from([0xc3]))
  closeSync(file)
  const ended = await runScenario('repair', 'long', { OFFLOOP_FILE: path })
  truncateSync(path, 0)
  t.is(ended.stdout, 'played\n', ended.stderr)
})

for (const [name, what] of [
  ['handle', 'the lock of another handle of this process refuses what would change the file'],
  ['unlocked', 'without lock nobody is asked'],
  ['worker', 'the lock of a worker goes with the worker'],
] as const) {
  test(what, async (t) => {
    const ended = await runScenario('repair', name)
    t.is(ended.stdout, 'played\n', ended.stderr)
  })
}

test('the lock of another process is gone with it, however it ends', async (t) => {
  const path = makeFile(TORN)
  const child = startScenario('repair', 'holder', { OFFLOOP_FILE: path })
  const [said] = await once(child.stdout, 'data')
  t.is(String(said), 'open\n')
  const error = await t.throwsAsync(repair(path), { instanceOf: OffloopError, code: 'ERR_OFFLOOP_LOCKED' })
  t.is(error?.message, `another process or handle holds the file: '${path}'`)
  child.kill('SIGKILL')
  await once(child, 'close')
  t.is((await repair(path)).action, 'quarantined')
})

test('a clean file costs six system calls, a torn row eight or twenty', (t) => {
  if (!hasStrace) {
    t.log('no strace on this system')
    t.pass()
    return
  }
  const clean = makeFile('{"a":1}\n'.repeat(100_000))
  const calls = trace(clean, {})
  t.true(calls.length <= 6, calls.join(' '))
  const torn = makeFile(`{"a":1}\n{"a":2}{"a":"${'x'.repeat(80_000)}`)
  const reported = trace(torn, { policy: 'report' })
  t.true(reported.length <= 8, reported.join(' '))
  const quarantined = trace(torn, {})
  t.true(quarantined.length <= 20, quarantined.join(' '))
  t.true(quarantined.includes('ftruncate'))
})

test('a call that fails before the cut leaves everything as it was', (t) => {
  if (!hasStrace) {
    t.log('no strace on this system')
    t.pass()
    return
  }
  const path = makeFile(TORN)
  const sidecar = `${path}.torn-8-0`
  const folder = dirname(path)
  for (const [call, code, at, syscall] of [
    ['flock', 'ENOLCK', path, 'flock'],
    ['pread64', 'EIO', path, 'read'],
    ['pwrite64', 'ENOSPC', sidecar, 'write'],
    ['fsync', 'EIO', sidecar, 'fsync'],
    ['fsync', 'EIO', folder, 'fsync'],
  ] as const) {
    t.deepEqual(failAt({ call, nth: 1, paths: [at] }, code, path), { code, syscall, path: at })
    t.is(read(path), TORN)
    t.deepEqual(namesBeside(path), ['rows.jsonl'])
  }
  t.is(failAt({ call: 'ftruncate', nth: 1, paths: [path] }, 'EIO', path).syscall, 'ftruncate')
  t.is(read(path), TORN)
  t.is(read(sidecar), '{"a":2')
})

test('a repair killed at any of its system calls loses no byte', async (t) => {
  if (!hasStrace) {
    t.log('no strace on this system')
    t.pass()
    return
  }
  const whole = '{"a":1}\n{"a":2}'
  const lost = '{"a":3'
  const names = new Set(trace(makeFile(whole + lost), {}))
  t.true(names.has('ftruncate'))
  let kills = 0
  for (const name of names) {
    for (let nth = 1; ; nth += 1) {
      const path = makeFile(whole + lost)
      const sidecar = `${path}.torn-15-0`
      if (!killAt({ call: name, nth, paths: [path, sidecar, dirname(path)] }, path)) break
      kills += 1
      const left = read(path)
      const saved = existsSync(sidecar) ? read(sidecar) : ''
      t.true(left === whole + lost || (left.startsWith(whole) && saved === lost), `${name} ${nth}: ${left} ${saved}`)
      await repair(path)
      t.is(read(path), `${whole}\n`)
      const sidecars = namesBeside(path).map((beside) => read(join(dirname(path), beside)))
      t.true(sidecars.includes(lost), `${name} ${nth}`)
    }
  }
  t.true(names.size <= kills, `${kills} kills at ${[...names].join(' ')}`)
})
