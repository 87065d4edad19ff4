import { readFileSync, truncateSync } from 'node:fs'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { openJsonl, stats, type JsonlFile, type JsonlOptions } from '../../src/index.ts'
import { loadHooks } from '../fixtures/hooks.ts'
import { expect, play } from '../fixtures/scenario.ts'

const path = process.env.OFFLOOP_FILE ?? String(workerData)
const ROWS = 1000

function appendAll(log: JsonlFile): void {
  for (let row = 0; row < ROWS; row += 1) void log.append({ row })
}

async function codeOf(options?: JsonlOptions): Promise<string> {
  try {
    const log = await openJsonl(path, options)
    await log.close()
    return 'open'
  } catch (error) {
    return String(Reflect.get(Object(error), 'code'))
  }
}

/** The lock of a worker goes with the worker. */
async function worker(): Promise<void> {
  const thread = new Worker(new URL(import.meta.url), { workerData: path })
  await new Promise((resolve) => {
    thread.once('message', resolve)
  })
  expect((await codeOf()) === 'ERR_OFFLOOP_LOCKED', 'the log to be refused')
  await thread.terminate()
  while ((await codeOf()) !== 'open') await sleep(1)
  expect(readFileSync(path, 'utf8') === '"of a worker"\n', 'the row of the worker')
}

async function holdForMain(): Promise<void> {
  const log = await openJsonl(path)
  await log.append('of a worker')
  // Kept by the listener.
  parentPort?.on('message', () => void log.close())
  parentPort?.postMessage('open')
}

/** Until the process is killed. */
async function holder(): Promise<void> {
  const log = await openJsonl(path)
  await log.append({ held: true })
  process.stdout.write('open\n')
  await sleep(60_000)
  await log.close()
}

/** Nobody waits for the rows. */
async function exit(): Promise<void> {
  appendAll(await openJsonl(path, { durability: 'none', maxBatchBytes: 1000 }))
}

async function delayed(): Promise<void> {
  appendAll(await openJsonl(path, { maxDelayMs: 20 }))
}

async function idle(): Promise<void> {
  await openJsonl(path, { maxDelayMs: 60_000 })
}

async function exitHandler(): Promise<void> {
  const log = await openJsonl(path, { maxBatchBytes: 5000 })
  process.on('exit', () => log.flushSync())
  for (let row = 0; row < 300; row += 1) void log.append({ row })
  // Some are on their way to the file by then.
  await nextTurn()
  for (let row = 300; row < ROWS; row += 1) void log.append({ row })
  process.stdout.write('played\n')
  process.exit(0)
}

/** All slots are taken: the group waits for one, in JavaScript. */
async function crowded(): Promise<void> {
  const log = await openJsonl(path)
  const other = await openJsonl(`${path}.other`)
  const tasks: Promise<unknown>[] = []
  const hooks = loadHooks()
  for (let thread = 0; thread < 8; thread += 1) tasks.push(hooks.waitTask(300))
  // It has the slot for files, and waits for a thread.
  const blocking = other.append(1)
  await nextTurn()
  let told = 0
  for (let row = 0; row < ROWS; row += 1) {
    void log.append({ row }).then(({ offset }) => {
      told += 1
      return expect(told === 1 || offset !== 0, 'each row in its place')
    })
  }
  await nextTurn()
  expect(stats().queued === 1, 'the group to wait for a slot')
  log.flushSync()
  expect(readFileSync(path, 'utf8').split('\n').length === ROWS + 1, 'all rows')
  await log.flush()
  await Promise.all([...tasks, blocking])
  await log.append('behind them').then(({ offset }) => expect(offset === Buffer.byteLength(rowsText()), 'its place'))
  expect(told === ROWS, 'each row to be told once')
  const { rows } = log.stats()
  expect(rows === ROWS + 1, 'each row to be counted once')
  await Promise.all([log.close(), other.close()])
  // The test looks for the thousand alone.
  truncateSync(path, Buffer.byteLength(rowsText()))
}

function rowsText(): string {
  return Array.from({ length: ROWS }, (_, row) => `{"row":${row}}\n`).join('')
}

async function forgotten(): Promise<void> {
  await openAndForget()
  while ((await codeOf()) !== 'open') {
    globalThis.gc?.()
    await sleep(1)
  }
}

async function openAndForget(): Promise<void> {
  const log = await openJsonl(path)
  await log.append(1)
}

async function turning(): Promise<void> {
  const log = await openJsonl(path, { durability: 'none' })
  let turns = 0
  let isAtEnd = false
  const turn = (): void => {
    turns += 1
    if (!isAtEnd) setImmediate(turn)
  }
  setImmediate(turn)
  async function* rows(): AsyncGenerator {
    // Until the loop has turned often enough, which it never would.
    const hasTurned = (): boolean => 10 <= turns
    while (!hasTurned()) yield 'x'
  }
  await log.appendMany(rows())
  isAtEnd = true
  await log.close()
}

if (isMainThread) {
  await play({ worker, holder, exit, delayed, idle, exitHandler, crowded, forgotten, turning })
} else {
  await holdForMain()
}
