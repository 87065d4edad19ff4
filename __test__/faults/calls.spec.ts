import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { openJsonl } from '../../src/index.ts'
import { makeFile } from '../fixtures/folder.ts'
import { isFull } from './extent.ts'
import { noInjection, Subject, type Injection } from './injector.ts'
import { expect } from './ledger.ts'
import { leaveOut } from './leave-out.ts'
import type { Ended, LogCalls, LogEnded, SaveCalls } from './programs/calls.ts'

/** What a log's and a file's calls are, by their names on one processor or another. */
const CALLS = [
  'openat',
  'mkdir|mkdirat',
  'flock',
  'statx|newfstatat|fstat',
  'readlink|readlinkat',
  'pread64',
  'write',
  'pwrite64',
  'lseek',
  'ftruncate',
  'fchmod',
  'fdatasync',
  'fsync',
  'close',
  'rename|renameat|renameat2',
] as const

/** One of them stands for the others in the short form. */
const ERRORS = isFull ? (['EIO', 'ENOSPC', 'EDQUOT', 'EROFS'] as const) : (['EIO', 'ENOSPC'] as const)

/** What may fail without anybody being told: what was asked can be had otherwise; or it was a folder that was closed, or a sidecar. */
const HARMLESS = /^\d+ +(?:statx|newfstatat|fstat|readlink|readlinkat|close\(\d+<[^>]*(?<!\/rows\.jsonl|\.tmp)>)/

const GROUPS = [[[1], [2, 'é'], { three: 'x'.repeat(5000) }], [[4]], [[5], [6]]] as const
const TEXTS = GROUPS.map((rows) => rows.map((row) => `${JSON.stringify(row)}\n`))

interface Scenario {
  readonly before: string | undefined
  /** Of `before`, what a repair leaves. */
  readonly kept: string
  readonly options: LogCalls['options']
  /** How many files and folders are synced by `fsync`. */
  readonly fsyncs: number
  /** The same of `fdatasync`. */
  readonly fdatasyncs: number
}

const LOGS: Readonly<Record<string, Scenario>> = {
  'a new log in new folders': {
    before: undefined,
    kept: '',
    options: { durability: 'data' },
    fsyncs: 3,
    fdatasyncs: 3,
  },
  'a log with a torn row': {
    before: '[0]\n[1',
    kept: '[0]\n',
    options: { durability: 'full' },
    fsyncs: 7,
    fdatasyncs: 0,
  },
  'a log that lacks its newline': {
    before: '[0]',
    kept: '[0]\n',
    options: { durability: 'data' },
    fsyncs: 1,
    fdatasyncs: 4,
  },
  'a log that is synced by its flush': {
    before: undefined,
    kept: '',
    options: { durability: 'none' },
    fsyncs: 3,
    fdatasyncs: 1,
  },
}

interface Save extends Pick<SaveCalls, 'options' | 'value'> {
  readonly old: string | undefined
  /** How many files and folders are synced by `fsync`. */
  readonly fsyncs: number
}

const SAVES: Readonly<Record<string, Save>> = {
  'a file in the place of another': {
    old: '"old"',
    options: { durability: 'full' },
    value: { new: 'x'.repeat(9000) },
    fsyncs: 2,
  },
  'a new file of rows': {
    old: undefined,
    options: { durability: 'data', format: 'jsonl' },
    value: [[1], [2], [3]],
    fsyncs: 1,
  },
}

/** Each of the calls in turn, with each of the errors, for every n until nothing fails any more; returns how many did. */
async function failEach(
  codes: readonly string[],
  attempt: (injection: Omit<Injection, 'paths'>) => Promise<boolean>,
): Promise<Map<string, number>> {
  const hits = new Map<string, number>()
  for (const call of CALLS) {
    for (const code of codes) {
      for (let nth = 1; await attempt({ call, code, nth }); nth += 1) hits.set(call, (hits.get(call) ?? 0) + 1)
    }
  }
  return hits
}

function total(hits: ReadonlyMap<string, number>): number {
  return [...hits.values()].reduce((sum, count) => sum + count, 0)
}

/** The name of the call that failed. */
function nameOf(injected: string): string {
  return /^\d+ +(\w+)\(/.exec(injected)?.[1] ?? ''
}

/** As errors name it. */
const ALIASES: Readonly<Record<string, string>> = {
  openat: 'open',
  pwrite64: 'write',
  pread64: 'read',
  mkdirat: 'mkdir',
  renameat: 'rename',
  renameat2: 'rename',
  newfstatat: 'stat',
  readlinkat: 'readlink',
}

function isTold(ended: Ended, injected: string, code: string, paths: readonly string[]): boolean {
  const name = nameOf(injected)
  const names = name === 'statx' ? ['stat', 'fstat'] : [ALIASES[name] ?? name]
  return ended.code === code && names.includes(String(ended.syscall)) && paths.includes(String(ended.path))
}

async function failLogs(t: ExecutionContext, subject: Subject, name: string, scenario: Scenario): Promise<void> {
  const { before, kept, options, fsyncs, fdatasyncs } = scenario
  const folder = join(dirname(makeFile('')), 'some')
  const path = join(folder, 'where', 'rows.jsonl')
  const paths = [path, `${path}.torn-4-0`, dirname(path), folder, dirname(folder)]
  const hits = await failEach(['EINTR', ...ERRORS], async ({ call, code, nth }) => {
    rmSync(folder, { recursive: true, force: true })
    if (before !== undefined) {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, before)
    }
    const calls: LogCalls = { path, options, groups: GROUPS }
    const { said, injected } = await subject.runWith({ call, code, nth, paths }, `${dirname(folder)}/strace`, calls)
    const ended: LogEnded = JSON.parse(said)
    try {
      const failure = firstFailure(ended)
      const isHarmless = injected === undefined || code === 'EINTR' || HARMLESS.test(injected)
      expect(failure !== undefined || isHarmless, `somebody is told of ${injected}`)
      expect(code !== 'EINTR' || failure === undefined, 'what was interrupted is tried again')
      expect(failure === undefined || isTold(failure, injected ?? '', code, paths), `it is what failed: ${injected}`)
      checkRows(ended, path, before, kept)
      // What strace lets fail is not done: the file is still open, and locked.
      await checkReopened(path, kept, nameOf(injected ?? '') !== 'close')
    } catch (error) {
      t.log(`${name}, ${call} ${nth} ${code}: ${said}`)
      throw error
    }
    return injected !== undefined
  })
  t.log(`${name}: ${total(hits)} calls failed, ${[...hits].map((hit) => hit.join(' ')).join(', ')}`)
  for (const call of ['openat', 'write', 'close', 'flock']) t.true(hits.has(call), `${call} is one that failed`)
  t.is(hits.get('fsync') ?? 0, fsyncs * (1 + ERRORS.length))
  t.is(hits.get('fdatasync') ?? 0, fdatasyncs * (1 + ERRORS.length))
}

function firstFailure({ opened, groups, flushed, closed }: LogEnded): Ended | undefined {
  return [opened, ...groups.flat(), flushed, closed].find(({ message }) => message !== undefined)
}

/** What is acknowledged is there and nothing is behind what failed; what fails after that tells why. */
function checkRows(ended: LogEnded, path: string, before: string | undefined, kept: string): void {
  const file = existsSync(path) ? readFileSync(path, 'utf8') : undefined
  if (ended.groups.length === 0) {
    const mayBe = [before, before === undefined ? '' : kept, '[0]\n[1', '[0]\n']
    expect(mayBe.includes(file), `the file is what it was, or repaired: ${file}`)
    return
  }
  expect(file?.startsWith(kept) === true, 'what was there is there')
  let at = kept.length
  let failure: Ended | undefined
  for (const [index, group] of ended.groups.entries()) {
    const texts = TEXTS[index] ?? []
    for (const [number, row] of group.entries()) {
      const text = texts[number] ?? ''
      if (row.message === undefined) {
        expect(failure === undefined, 'nothing is acknowledged after a failure')
        expect(Buffer.from(file).subarray(at).toString().startsWith(text), `${text} is at ${at}`)
        at += Buffer.byteLength(text)
      }
    }
    const failed = group.find(({ message }) => message !== undefined)
    if (failed === undefined) continue
    if (failure !== undefined) checkPoisoned(failed, failure)
    else failure = failed
    const isOne = group.every(({ message }) => message === failed.message)
    expect(isOne, 'a group fails as one')
  }
  const flushFailure = failure ?? (ended.flushed.message === undefined ? undefined : ended.flushed)
  if (failure !== undefined) checkPoisoned(ended.flushed, failure)
  if (flushFailure === undefined) expect(Buffer.byteLength(file) === at, 'nothing else is there')
  const lines = file.slice(kept.length).split('\n')
  expect(lines.pop() === '', 'the file ends with a whole row')
  const all = TEXTS.flat()
  for (const [index, line] of lines.entries()) expect(`${line}\n` === all[index], `${line} is the next row`)
}

function checkPoisoned({ code, cause }: Ended, failure: Ended): void {
  expect(code === 'ERR_OFFLOOP_POISONED', `the log is poisoned, not ${String(code)}`)
  expect(cause instanceof Object && 'message' in cause && cause.message === failure.message, 'it tells why')
}

/** Whatever failed: the lock is free, the next open repairs, and rows go on where whole ones end. */
async function checkReopened(path: string, kept: string, lock: boolean): Promise<void> {
  await using file = await openJsonl(path, { lock })
  const { offset, length } = await file.append({ last: true })
  const text = readFileSync(path, 'utf8')
  expect(Buffer.byteLength(text) === offset + length + 1 && text.startsWith(kept), 'it can be appended to')
  for (const line of text.split('\n').slice(0, -1)) JSON.parse(line)
}

async function failSaves(t: ExecutionContext, subject: Subject, name: string, save: Save): Promise<void> {
  const { old, options, value, fsyncs } = save
  const path = makeFile('')
  const folder = dirname(path)
  const rows = Array.isArray(value) ? value.map((row) => `${JSON.stringify(row)}\n`).join('') : JSON.stringify(value)
  const hits = await failEach(['EINTR', ...ERRORS], async ({ call, code, nth }) => {
    rmSync(path, { force: true })
    if (old !== undefined) writeFileSync(path, old)
    const temporaries = Array.from(
      { length: saves + 1 },
      (_, number) => `${folder}/.offloop-${subject.pid}-${number}.tmp`,
    )
    const paths = [path, folder, ...temporaries]
    const log = `${folder}-strace`
    const { said, injected } = await subject.runWith({ call, code, nth, paths }, log, { path, options, value })
    saves += 1
    const ended: Ended = JSON.parse(said)
    try {
      const isFailed = ended.message !== undefined
      const isHarmless = injected === undefined || code === 'EINTR' || HARMLESS.test(injected)
      expect(isFailed || isHarmless, `somebody is told of ${injected}`)
      expect(code !== 'EINTR' || !isFailed, 'what was interrupted is tried again')
      expect(!isFailed || isTold(ended, injected ?? '', code, paths), `it is what failed: ${injected}`)
      const file = existsSync(path) ? readFileSync(path, 'utf8') : undefined
      const isAfterRename = ended.path === folder
      expect(file === (isFailed && !isAfterRename ? old : rows), `the ${isFailed ? 'old' : 'new'} file is there`)
      const left = readdirSync(folder).filter((beside) => beside !== 'rows.jsonl')
      expect(left.length === 0, `nothing is beside it: ${left.join(' ')}`)
    } catch (error) {
      t.log(`${name}, ${call} ${nth} ${code}: ${said}`)
      throw error
    }
    return injected !== undefined
  })
  t.log(`${name}: ${total(hits)} calls failed, ${[...hits].map((hit) => hit.join(' ')).join(', ')}`)
  const least = ['openat', 'write', 'fsync', 'close', 'rename|renameat|renameat2']
  for (const call of least) t.true(hits.has(call), `${call} is one that failed`)
  t.is(hits.get('fsync'), fsyncs * (1 + ERRORS.length))
}

let saves = 0

async function withSubject(t: ExecutionContext, use: (subject: Subject) => Promise<void>): Promise<void> {
  t.timeout(3_600_000)
  const reason = noInjection()
  if (reason !== undefined) {
    leaveOut(t, reason)
    return
  }
  const subject = new Subject('calls')
  saves = 0
  try {
    await subject.start()
    await use(subject)
  } finally {
    await subject.end()
  }
}

for (const [name, scenario] of Object.entries(LOGS)) {
  test.serial(`${name}: whichever of its system calls fails, the truth is told and rows are whole`, (t) =>
    withSubject(t, (subject) => failLogs(t, subject, name, scenario)),
  )
}

for (const [name, save] of Object.entries(SAVES)) {
  test.serial(`${name}: whichever of its system calls fails, it is the old one or the new one`, (t) =>
    withSubject(t, (subject) => failSaves(t, subject, name, save)),
  )
}
