import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import test from 'ava'
import { repair } from '../../src/index.ts'
import {
  attach,
  cutPower,
  detach,
  FILE_SYSTEMS,
  format,
  makeDisk,
  mount,
  noDisks,
  unmount,
  withFolder,
} from './disks.ts'
import type { FileSystem } from './disks.ts'
import { isFull, seed } from './extent.ts'
import { expect } from './ledger.ts'
import { leaveOut } from './leave-out.ts'
import { play, programEnv, programPath } from './programs.ts'
import type { Disk, Event } from './programs/disk.ts'
import type { Acknowledged, Outage } from './programs/outage.ts'
import { contentOf, draws, rowText } from './programs/rows.ts'

type Draw = ReturnType<typeof draws>

const TRIALS = isFull ? 60 : 6
const LOGS = 4

/** Everything acknowledged until some moment. */
class Promises {
  readonly #rows = new Map<number, number>()
  #saved = 0
  count = 0

  add({ log, rows, saved }: Acknowledged): void {
    this.#rows.set(log, rows)
    this.#saved = Math.max(this.#saved, saved)
    this.count += 1
  }

  /** How much of it is lost. What is there is whole rows, once they are repaired, and a whole file. */
  async lostIn(folder: string, isSynced: boolean): Promise<readonly string[]> {
    const lost: string[] = []
    for (const [log, rows] of this.#rows) {
      const path = join(folder, `of ${log}`, 'deep', 'rows.jsonl')
      if (isSynced) await repair(path)
      const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
      const lines = text.split('\n').slice(0, -1)
      const whole = lines.findIndex((line, index) => line !== rowText(log, index))
      expect(!isSynced || whole === -1, `what is left of log ${log} is its rows`)
      const count = whole === -1 ? lines.length : whole
      if (count < rows) lost.push(`${rows - count} rows of log ${log}`)
    }
    const path = join(folder, 'saved')
    const text = existsSync(path) ? readFileSync(path, 'utf8') : undefined
    const versions = [this.#saved, this.#saved + 1]
    const found = versions.find((version) => (version === 0 ? undefined : contentOf(version)) === text)
    if (found === undefined) lost.push(`content ${this.#saved} of ${text?.length} bytes`)
    return lost
  }
}

/**
 * Writes until the power is cut, some time after so many things were acknowledged; returns what of those is lost. What is told
 * while the power is cut does not count: nobody is left to tell then, and a sync that is under way on a file system that is shut
 * down may return as if it had been done.
 */
async function cut(
  folder: string,
  system: FileSystem,
  durability: Outage['durability'],
  draw: Draw,
): Promise<readonly string[]> {
  const [disk, mounted] = [join(folder, 'image'), join(folder, 'mounted')]
  makeDisk(disk, system)
  mkdirSync(mounted, { recursive: true })
  mount(disk, mounted, system.options)
  const promises = new Promises()
  const last = 1 + draw(LOGS * 4)
  const outage: Outage = { folder: join(mounted, 'data'), durability, logs: LOGS }
  const { lines, stderr } = await play('outage', outage, (line, child) => {
    if (line.startsWith('ended')) return
    child.stdin.write('\n')
    if (last <= promises.count) return
    promises.add(JSON.parse(line))
    // It goes on meanwhile.
    if (promises.count === last) cutPower(mounted)
  })
  expect(stderr === '' && lines.at(-1)?.startsWith('ended') === true, `the disk fails: ${stderr} ${lines.at(-1)}`)
  unmount(mounted)
  mount(disk, mounted, system.options)
  const lost = await promises.lostIn(join(mounted, 'data'), durability !== 'none')
  unmount(mounted)
  return lost
}

for (const system of isFull ? Object.values(FILE_SYSTEMS) : [FILE_SYSTEMS.ext4]) {
  test.serial(`a power cut on ${system.name}: what was acknowledged is there, and is lost without syncs`, async (t) => {
    t.timeout(3_600_000)
    const reason = noDisks()
    if (reason !== undefined) {
      leaveOut(t, reason, { isRare: true })
      return
    }
    const draw = draws(seed)
    await withFolder(async (folder) => {
      let unsynced = 0
      for (let trial = 0; trial < TRIALS; trial += 1) {
        const durability = trial % 2 === 0 ? 'data' : 'full'
        t.deepEqual(await cut(folder, system, durability, draw), [], `seed ${seed}, trial ${trial}, ${durability}`)
        if (trial % 3 === 0) unsynced += (await cut(folder, system, 'none', draw)).length
      }
      t.log(
        `${TRIALS} cuts: nothing lost; without syncs: ${unsynced} acknowledgements of ${Math.ceil(TRIALS / 3)} cuts`,
      )
      t.true(0 < unsynced)
    })
  })
}

/** What was written to a disk, in order, and how much of that when each thing was acknowledged. */
interface Recorded {
  readonly events: readonly Event[]
  readonly data: Buffer
  readonly start: number
  readonly acknowledged: readonly { readonly when: number; readonly what: Acknowledged }[]
}

/** A disk that records, in a process of its own: this one waits for mounts. */
class Recorder {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #lines: AsyncIterator<string>

  constructor(disk: Disk) {
    const env = { ...programEnv, OFFLOOP_ROUND: JSON.stringify(disk) }
    this.#child = spawn(process.execPath, [programPath('disk')], { env, stdio: ['pipe', 'pipe', 'inherit'] })
    this.#lines = createInterface(this.#child.stdout)[Symbol.asyncIterator]()
  }

  async start(): Promise<void> {
    expect((await this.#lines.next()).value === 'mounted', 'the disk is mounted')
  }

  async ask(question: 'count' | 'record'): Promise<number> {
    this.#child.stdin.write(`${question}\n`)
    return Number((await this.#lines.next()).value)
  }

  async end(): Promise<void> {
    const closed = once(this.#child, 'close')
    this.#child.kill('SIGKILL')
    await closed
  }
}

/** A session on a disk that records. */
async function recordOn(folder: string, system: FileSystem, durability: Outage['durability']): Promise<Recorded> {
  const [path, mounted, record] = [join(folder, 'disk'), join(folder, 'mounted'), join(folder, 'record')]
  writeFileSync(path, '')
  mkdirSync(mounted, { recursive: true })
  const recorder = new Recorder({ path, size: system.size, record })
  try {
    await recorder.start()
    const device = attach(path)
    format(device, system)
    mount(device, mounted, system.options)
    const start = await recorder.ask('count')
    const acknowledged: { readonly when: number; readonly what: Acknowledged }[] = []
    const note = async (what: Acknowledged, words: Writable): Promise<void> => {
      acknowledged.push({ when: await recorder.ask('count'), what })
      words.write('\n')
    }
    const outage: Outage = { folder: join(mounted, 'data'), durability, logs: LOGS }
    const { stderr } = await play('outage', outage, (line, { stdin }) => void note(JSON.parse(line), stdin))
    expect(stderr === '' && acknowledged.length === LOGS * 5, `all is acknowledged: ${stderr}`)
    await recorder.ask('record')
    unmount(mounted)
    detach(device)
    unmount(path)
    const events: readonly Event[] = JSON.parse(readFileSync(record, 'utf8'))
    return { events, data: readFileSync(`${record}.data`), start, acknowledged }
  } finally {
    await recorder.end()
  }
}

const BLOCK = 4096

/** What of the writes that nobody made durable has reached the disk. */
const FATES: Readonly<Record<string, (draw: Draw) => (write: number, block: number) => boolean>> = {
  all: () => () => true,
  none: () => () => false,
  some: (draw) => {
    const isKept = Array.from({ length: 64 }, () => draw(2) === 0)
    return (write) => isKept[write % isKept.length] ?? false
  },
  torn: (draw) => () => draw(2) === 0,
}

/** The blocks of a disk. */
class Image {
  readonly #blocks: Map<number, Buffer>

  constructor(blocks: ReadonlyMap<number, Buffer> = new Map()) {
    this.#blocks = new Map(blocks)
  }

  /** Writes those blocks of what was written that are kept. */
  write({ offset, length, at }: Event, data: Buffer, isKept: (block: number) => boolean = () => true): void {
    for (let done = 0; done < length;) {
      const within = (offset + done) % BLOCK
      const number = (offset + done - within) / BLOCK
      const taken = Math.min(BLOCK - within, length - done)
      if (isKept(number)) {
        const block = Buffer.from(this.#blocks.get(number) ?? Buffer.alloc(BLOCK))
        data.copy(block, within, at + done, at + done + taken)
        this.#blocks.set(number, block)
      }
      done += taken
    }
  }

  copy(): Image {
    return new Image(this.#blocks)
  }

  save(path: string, size: number): void {
    writeFileSync(path, '')
    truncateSync(path, size)
    const file = openSync(path, 'r+')
    const nothing = Buffer.alloc(BLOCK)
    for (const [number, block] of this.#blocks) {
      if (!block.equals(nothing)) writeSync(file, block, 0, BLOCK, number * BLOCK)
    }
    closeSync(file)
  }
}

/** Every state that a crash may have left, or a few of each moment; returns how many, and how many of them lack what was acknowledged. */
async function enumerate(
  folder: string,
  system: FileSystem,
  { events, data, start, acknowledged }: Recorded,
  isSynced: boolean,
): Promise<{ readonly states: number; readonly lacking: number }> {
  const draw = draws(seed)
  const [path, mounted] = [join(folder, 'state'), join(folder, 'mounted')]
  const durable = new Image()
  let pending: Event[] = []
  let [states, lacking] = [0, 0]
  for (let count = 0; count <= events.length; count += 1) {
    const event = events[count - 1]
    if (event?.length === 0) {
      for (const write of pending) durable.write(write, data)
      pending = []
    } else if (event !== undefined) pending.push(event)
    if (count < start) continue
    const promises = new Promises()
    for (const { when, what } of acknowledged) if (when <= count) promises.add(what)
    for (const [fate, decide] of Object.entries(FATES)) {
      if (pending.length === 0 && fate !== 'all') continue
      const isKept = decide(draw)
      const image = durable.copy()
      for (const [number, write] of pending.entries()) image.write(write, data, (block) => isKept(number, block))
      image.save(path, system.size)
      mount(path, mounted, system.options)
      states += 1
      try {
        if ((await promises.lostIn(join(mounted, 'data'), isSynced)).length !== 0) lacking += 1
      } finally {
        unmount(mounted)
      }
    }
  }
  return { states, lacking }
}

if (isFull) {
  for (const system of [FILE_SYSTEMS.ext4, FILE_SYSTEMS.xfs]) {
    test.serial(`every state that a crash may leave ${system.name} in: what was acknowledged is there`, async (t) => {
      t.timeout(3_600_000)
      const reason = noDisks() ?? (existsSync('/dev/fuse') ? undefined : 'no FUSE on this system')
      if (reason !== undefined) {
        leaveOut(t, reason, { isRare: true })
        return
      }
      await withFolder(async (folder) => {
        const synced = await enumerate(folder, system, await recordOn(folder, system, 'data'), true)
        t.true(50 < synced.states)
        t.is(synced.lacking, 0, `seed ${seed}`)
        const unsynced = await enumerate(folder, system, await recordOn(folder, system, 'none'), false)
        t.true(0 < unsynced.lacking)
        t.log(
          `${synced.states} states: nothing lost; without syncs: ${unsynced.lacking} of ${unsynced.states} lack something`,
        )
      })
    })
  }
}
