import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { openJsonl, saveFile, type JsonlFile } from '../../src/index.ts'
import { makeFile } from '../fixtures/folder.ts'
import { expect } from './ledger.ts'
import { leaveOut } from './leave-out.ts'
import { play } from './programs.ts'
import type { Filled } from './programs/fill.ts'

/** A file system of so many KiB, gone when `use` ends however it does. */
async function withTmpfs(t: ExecutionContext, options: string, use: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'offloop-mount-'))
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'offloop-test', folder], { encoding: 'utf8' })
  if (mounted.status !== 0) {
    rmSync(folder, { recursive: true })
    leaveOut(t, `no tmpfs can be mounted: ${mounted.error?.message ?? mounted.stderr.trim()}`)
    return
  }
  try {
    await use(folder)
  } finally {
    execFileSync('umount', ['--lazy', folder])
    rmSync(folder, { recursive: true })
  }
}

function rowOf(index: number): readonly unknown[] {
  return [index, 'é'.repeat(index % 7 === 0 ? 3000 : (index * 37) % 400)]
}

function textOf(index: number): string {
  return `${JSON.stringify(rowOf(index))}\n`
}

interface Outcome {
  readonly index: number
  readonly error: unknown
}

async function append(file: JsonlFile, index: number): Promise<Outcome> {
  try {
    await file.append(rowOf(index))
    return { index, error: undefined }
  } catch (error) {
    return { index, error }
  }
}

/** The rows that were acknowledged come first, are what is in the file, and all that is. */
function checkRows(path: string, outcomes: readonly Outcome[], start: number): number {
  const written = outcomes.filter(({ error }) => error === undefined)
  const isFirst = written.every(({ index }, place) => index === start + place)
  expect(isFirst, 'rows are acknowledged up to one, and none behind')
  const text = written.map(({ index }) => textOf(index)).join('')
  expect(readFileSync(path, 'utf8').endsWith(text), 'what was acknowledged is there, and nothing behind it')
  return written.length
}

function codeOf(error: unknown): unknown {
  return error instanceof Error ? Reflect.get(error, 'code') : undefined
}

/** What fails has the code of the system; what comes after a group that failed is refused, and told why. */
function checkErrors(t: ExecutionContext, outcomes: readonly Outcome[], code: string, path: string): void {
  const errors = outcomes.map(({ error }) => error).filter((error) => error !== undefined)
  const told = errors.filter((error) => codeOf(error) === code)
  t.true(0 < told.length, 'somebody was told')
  for (const error of told) t.like(error, { code, syscall: 'write', path })
  for (const error of errors) {
    if (codeOf(error) === code) continue
    t.like(error, { code: 'ERR_OFFLOOP_POISONED', cause: { code } })
  }
}

for (const [name, size] of [
  ['one at a time', 1],
  ['32 at a time', 32],
  ['1,000 at a time', 1000],
] as const) {
  test(`a disk that is full, rows ${name}: those that fit are there, exactly the others are refused`, (t) =>
    withTmpfs(t, 'size=64k', async (folder) => {
      const path = join(folder, 'rows.jsonl')
      const ballast = join(folder, 'ballast')
      writeFileSync(ballast, Buffer.alloc(8192))
      const file = await openJsonl(path)
      const outcomes: Outcome[] = []
      while (outcomes.every(({ error }) => error === undefined)) {
        const from = outcomes.length
        outcomes.push(...(await Promise.all(Array.from({ length: size }, (_, index) => append(file, from + index)))))
      }
      const count = checkRows(path, outcomes, 0)
      t.true(0 < count)
      // The next row would not have fitted.
      t.true(56 * 1024 < statSync(path).size + Buffer.byteLength(textOf(count)))
      checkErrors(t, outcomes, 'ENOSPC', path)
      await t.throwsAsync(file.append(0), { code: 'ERR_OFFLOOP_POISONED' })
      await t.throwsAsync(file.flush(), { code: 'ERR_OFFLOOP_POISONED' })
      await file.close()
      rmSync(ballast)
      await using again = await openJsonl(path)
      t.is(again.repaired.action, 'none')
      t.is((await append(again, count)).error, undefined)
      checkRows(
        path,
        Array.from({ length: count + 1 }, (_, index) => ({ index, error: undefined })),
        0,
      )
    }))
}

test('a disk that becomes read-only: what was acknowledged stays, what comes is refused', (t) =>
  withTmpfs(t, 'size=1m', async (folder) => {
    const path = join(folder, 'rows.jsonl')
    const open = await openJsonl(path)
    t.is((await append(open, 0)).error, undefined)
    await open.close()
    await saveFile(join(folder, 'saved'), 'old')
    execFileSync('mount', ['-o', 'remount,ro', folder])
    await t.throwsAsync(openJsonl(path), { code: 'EROFS', message: /open/ })
    await t.throwsAsync(openJsonl(join(folder, 'new', 'rows.jsonl')), { code: 'EROFS', message: /mkdir/ })
    await t.throwsAsync(saveFile(join(folder, 'saved'), 'new'), { code: 'EROFS' })
    t.is(readFileSync(join(folder, 'saved'), 'utf8'), '"old"')
    execFileSync('mount', ['-o', 'remount,rw', folder])
    await using again = await openJsonl(path)
    t.is((await append(again, 1)).error, undefined)
    checkRows(
      path,
      [0, 1].map((index) => ({ index, error: undefined })),
      0,
    )
  }))

test('a disk without room for another file: neither logs nor files are begun, and nothing is left behind', (t) =>
  withTmpfs(t, 'size=1m,nr_inodes=4', async (folder) => {
    const path = join(folder, 'saved')
    await saveFile(path, 'old')
    mkdirSync(join(folder, 'a'))
    writeFileSync(join(folder, 'torn'), '[1]\n[2')
    await t.throwsAsync(saveFile(path, 'new'), { code: 'ENOSPC' })
    await t.throwsAsync(openJsonl(join(folder, 'rows.jsonl')), { code: 'ENOSPC' })
    await t.throwsAsync(openJsonl(join(folder, 'torn')), { code: 'ENOSPC', message: /torn-4-0/ })
    t.is(readFileSync(path, 'utf8'), '"old"')
    t.is(readFileSync(join(folder, 'torn'), 'utf8'), '[1]\n[2')
    t.deepEqual(readdirSync(folder).toSorted(), ['a', 'saved', 'torn'])
  }))

test('a file saved to a disk that is full: the old one is there, nothing is beside it', (t) =>
  withTmpfs(t, 'size=64k', async (folder) => {
    const path = join(folder, 'saved')
    await saveFile(path, 'old')
    const rows = Array.from({ length: 1000 }, (_, index) => rowOf(index))
    for (const format of ['json', 'jsonl', 'msgpack'] as const) {
      await t.throwsAsync(saveFile(path, rows, { format }), { code: 'ENOSPC' })
      t.is(readFileSync(path, 'utf8'), '"old"')
      t.deepEqual(readdirSync(folder), ['saved'])
    }
    await t.throwsAsync(saveFile(path, Buffer.alloc(100_000), { format: 'bytes' }), { code: 'ENOSPC' })
    t.deepEqual(readdirSync(folder), ['saved'])
  }))

test('a file that may not grow: those rows that fit are there, exactly the others are refused', async (t) => {
  if (spawnSync('prlimit', ['--version']).status !== 0) {
    leaveOut(t, 'no prlimit on this system')
    return
  }
  const path = makeFile('')
  const limit = 50_000
  const { lines, stderr } = await play('fill', { path, limit, rows: 400, size: 20 })
  const filled: Filled = JSON.parse(lines.at(-1) ?? stderr)
  const file = readFileSync(path, 'utf8')
  t.true(file.endsWith('\n') && file.length <= limit)
  t.is(file.split('\n').length - 1, filled.written)
  t.true(0 < filled.written && filled.written + filled.errors.length === 400)
  t.true(limit < file.length + filled.next)
  t.true(filled.errors.includes('EFBIG'))
  for (const code of filled.errors) t.true(code === 'EFBIG' || code === 'ERR_OFFLOOP_POISONED because of EFBIG', code)
  await using again = await openJsonl(path)
  t.is(again.repaired.action, 'none')
  t.is((await again.append('more')).offset, file.length)
})
