import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { OffloopError, openJsonl, repair, type JsonlFile, type RepairReport } from '../../src/index.ts'
import { makeFile } from '../fixtures/folder.ts'
import { expect, play } from '../fixtures/scenario.ts'

const TORN = '{"a":1}\n{"a":2'

async function attempt(path: string, options?: Parameters<typeof repair>[1]): Promise<RepairReport | string> {
  try {
    return await repair(path, options)
  } catch (error) {
    return error instanceof OffloopError ? `${error.code} ${error.path}` : String(error)
  }
}

/** As it is: what is torn stays torn. */
function open(path: string): Promise<JsonlFile> {
  return openJsonl(path, { repair: false })
}

async function expectLocked(path: string): Promise<void> {
  for (const policy of ['quarantine', 'truncate', 'isolate'] as const) {
    expect((await attempt(path, { policy })) === `ERR_OFFLOOP_LOCKED ${path}`, `${policy} to be refused`)
  }
  expect(readFileSync(path, 'utf8') === TORN, 'nothing to be changed')
  const report = await repair(path, { policy: 'report' })
  expect(report.action === 'quarantined', 'a report')
  const strict = await attempt(path, { policy: 'strict' })
  expect(strict === `ERR_OFFLOOP_TORN ${path}`, 'strict to look at it')
}

/** Another handle of this process. */
async function handle(): Promise<void> {
  const path = makeFile(TORN)
  const log = await open(path)
  await expectLocked(path)
  await log.close()
  const { action } = await repair(path)
  expect(action === 'quarantined', 'the lock to be free')
}

async function unlocked(): Promise<void> {
  const path = makeFile(TORN)
  const log = await open(path)
  const { action } = await repair(path, { lock: false })
  expect(action === 'quarantined', 'no lock to be asked for')
  await log.close()
}

/** The lock of a worker goes with the worker. */
async function worker(): Promise<void> {
  const path = makeFile(TORN)
  const thread = new Worker(new URL(import.meta.url), { workerData: path })
  await new Promise((resolve) => {
    thread.once('message', resolve)
  })
  await expectLocked(path)
  await thread.terminate()
  let outcome = await attempt(path)
  while (typeof outcome === 'string') {
    await sleep(1)
    outcome = await attempt(path)
  }
  expect(outcome.action === 'quarantined', 'the lock to be free')
}

async function holdForMain(): Promise<void> {
  const log = await open(String(workerData))
  // Kept by the listener.
  parentPort?.on('message', () => void log.close())
  parentPort?.postMessage('open')
}

/** Until the process is killed. */
async function holder(): Promise<void> {
  const log = await open(process.env.OFFLOOP_FILE ?? '')
  process.stdout.write('open\n')
  await sleep(60_000)
  await log.close()
}

/** A row of 256 MiB, and how much memory it takes to tell that it is torn. */
async function long(): Promise<void> {
  const path = process.env.OFFLOOP_FILE ?? ''
  await repair(makeFile(TORN))
  const before = process.resourceUsage().maxRSS
  const report = await repair(path, { policy: 'report', verify: 'all' })
  const grown = (process.resourceUsage().maxRSS - before) / 1024
  expect(report.cause === 'utf8' && report.offset === 8, `a torn row, not ${JSON.stringify(report)}`)
  expect(grown < 64, `at most 64 MiB, not ${grown}`)
}

if (isMainThread) await play({ handle, unlocked, worker, holder, long })
else await holdForMain()
