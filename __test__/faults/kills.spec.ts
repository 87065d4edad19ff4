import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { repair } from '../../src/index.ts'
import { makeFile } from '../fixtures/folder.ts'
import { isFull, seed } from './extent.ts'
import { expect, Ledger, type Found, type Told } from './ledger.ts'
import { play, type Played } from './programs.ts'
import type { Round, Writer } from './programs/append.ts'
import { contentOf, draws } from './programs/rows.ts'
import type { Saves } from './programs/save.ts'

const LOG_KILLS = isFull ? 8_800 : 264
const SAVE_KILLS = isFull ? 1_200 : 36
/** Who is killed at once, in one process: starting one takes long. */
const TOGETHER = isFull ? 1 : 6
/** Where an end of a kind was not met by then, kills go on: up to so many times the number. */
const MOST_TIMES = 20
/** A file has so many writers, one after the other. */
const GENERATIONS = 12
/** So many processes at a time. */
const LANES = 2
const MOST_MS = 3 * 3_600_000

type Draw = ReturnType<typeof draws>

function choose<const T>(draw: Draw, choices: readonly [T, ...T[]]): T {
  return choices[draw(choices.length)] ?? choices[0]
}

/** A file with its own policies: where isolated rows are the last, the others would cut those off, too. */
interface Place {
  readonly ledger: Ledger
  readonly policies: readonly [Writer['repair'], ...Writer['repair'][]]
}

function placeOf(draw: Draw): Place {
  if (draw(3) !== 0) return { ledger: new Ledger(makeFile('')), policies: ['quarantine', 'truncate'] }
  // Two isolated rows and no whole one are not told from a file that is no JSONL.
  return { ledger: new Ledger(makeFile('"first"\n')), policies: ['isolate'] }
}

function roundOf(draw: Draw, places: readonly Place[], firstRun: number): Round {
  const end = choose(draw, ['outside', 'outside', 'itself', 'itself', 'itself', 'itself', 'itself', 'exit', 'flushed'])
  const writers = places.map((place, number) => writerOf(draw, place, firstRun + number, end))
  const rows = writers.length * (1 + draw(choose(draw, [9, 30, 90])))
  const microseconds = draw(choose(draw, [1, 100, 1000, 5000]))
  return { writers, end, onWorker: draw(4) === 0, rows, microseconds }
}

function writerOf(draw: Draw, { ledger, policies }: Place, run: number, end: Round['end']): Writer {
  const by = end === 'flushed' ? 'append' : choose(draw, ['append', 'append', 'appendMany', 'stream'])
  return {
    path: ledger.path,
    run,
    by,
    durability: choose(draw, ['none', 'none', 'data', 'full']),
    repair: choose(draw, policies),
    maxBatchBytes: choose(draw, [1, 1 << 14, 1 << 20, 1 << 26]),
    callers: by === 'stream' ? 1 : choose(draw, [1, 4, 32]),
  }
}

/** Kills it from outside when it has told of so many things: of its beginning first, and of its opening. */
function playRound(round: Round): Promise<Played> {
  let lines = 0
  const last = round.rows <= 3 * round.writers.length ? 1 : round.rows
  return play('append', round, (_, child) => {
    lines += 1
    if (round.end === 'outside' && lines === last) child.kill('SIGKILL')
  })
}

interface ToldOfEnd extends Told {
  /** How many rows it had appended when it was asked to exit. */
  readonly ended: number | undefined
}

/** What the writer of that number said. */
function toldOf(writer: Writer | undefined, number: number, lines: readonly string[]): ToldOfEnd {
  const { run = 0, repair: policy = 'quarantine' } = writer ?? {}
  let opened: Told['opened']
  let ended: number | undefined
  const acknowledged = new Map<number, { readonly offset: number; readonly length: number } | undefined>()
  for (const line of lines) {
    const [who, what = '', ...words] = line.split(' ')
    if (who !== String(number)) continue
    const [first = 0, second = 0, third = 0] = words.map(Number)
    if (what === 'opened') opened = { action: words[0] ?? '', size: second }
    if (what === 'ended') ended = first
    if (what === 'row') acknowledged.set(first, { offset: second, length: third })
    const count = what === 'rows' ? second : 0
    for (let index = first; index < first + count; index += 1) acknowledged.set(index, undefined)
  }
  return { run, policy, opened, acknowledged, ended }
}

/** Whether so many are enough: what is counted must all have been met, and which end one meets is chance. */
function areEnough(kills: number, least: number, counts: readonly number[]): boolean {
  return least <= kills && (counts.every((count) => 0 < count) || MOST_TIMES * least <= kills)
}

class Tally {
  /** Writers killed. */
  kills = 0
  processes = 0
  exits = 0
  onWorkers = 0
  /** Ended before the file was open. */
  early = 0
  acknowledged = 0
  /** Rows that are there though nobody was told. */
  unacknowledged = 0
  torn = 0
  /** Torn by us. */
  tears = 0
  repaired = 0
  flushed = 0

  get isEnough(): boolean {
    const { torn: _, ...counts } = this
    return areEnough(this.kills, LOG_KILLS, Object.values(counts))
  }

  add({ end, onWorker }: Round, told: ToldOfEnd, found: Found): void {
    if (isKill(end)) this.kills += 1
    else this.exits += 1
    if (onWorker) this.onWorkers += 1
    if (told.opened === undefined) this.early += 1
    else this.unacknowledged += found.rows - told.acknowledged.size
    if (told.opened !== undefined && told.opened.action !== 'none') this.repaired += 1
    this.acknowledged += told.acknowledged.size
    if (0 < found.torn) this.torn += 1
    if (told.ended === undefined || end !== 'flushed') return
    expect(found.rows === told.ended, `all of ${told.ended} rows were flushed, not ${found.rows}`)
    this.flushed += 1
  }
}

function isKill(end: Round['end']): boolean {
  return end === 'outside' || end === 'itself'
}

/** One process after the other, each with a writer on every file; then repairs, by somebody who lives. */
async function playGenerations(t: ExecutionContext, draw: Draw, firstRun: number, tally: Tally): Promise<void> {
  const places = Array.from({ length: TOGETHER }, () => placeOf(draw))
  for (let generation = 0; generation < GENERATIONS && !tally.isEnough; generation += 1) {
    const round = roundOf(draw, places, firstRun + generation * TOGETHER)
    const { lines, stderr, signal } = await playRound(round)
    tally.processes += 1
    try {
      expect(stderr === '' && (signal === 'SIGKILL') === isKill(round.end), `it ends so, not by ${signal}: ${stderr}`)
      for (const [number, { ledger }] of places.entries()) {
        const told = toldOf(round.writers[number], number, lines)
        tally.add(round, told, ledger.check(told))
        if (draw(2) === 0 && ledger.tear(draw)) tally.tears += 1
      }
    } catch (error) {
      t.log(`seed ${seed}: ${JSON.stringify(round)}`, ...places.map(({ ledger }) => ledger.describe()))
      throw error
    }
  }
  for (const place of places) await closeLedger(t, place)
}

async function closeLedger(t: ExecutionContext, { ledger, policies: [policy] }: Place): Promise<void> {
  const { path } = ledger
  const { action, file } = ledger.repairedBy(policy)
  t.like(await repair(path, { policy }), { action, size: file.length })
  t.true(readFileSync(path).equals(file))
  t.is((await repair(path, { policy })).action, 'none')
  rmSync(dirname(path), { recursive: true })
}

test.serial('of logs whose writers are killed all that was acknowledged is there, once, in order', async (t) => {
  t.timeout(MOST_MS)
  const tally = new Tally()
  let files = 0
  const lane = async (): Promise<void> => {
    while (!tally.isEnough) {
      files += 1
      await playGenerations(t, draws(seed + files), files * GENERATIONS * TOGETHER, tally)
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  t.log(JSON.stringify(tally))
  t.true(LOG_KILLS <= tally.kills)
  const { torn: _, ...counts } = tally
  for (const count of Object.values(counts)) t.true(0 < count, JSON.stringify(tally))
})

/** Which of the contents that may be there is. */
function versionIn(path: string, versions: readonly number[]): number {
  const text = readFileSync(path, 'utf8')
  const version = versions.find((number) => text === contentOf(number))
  expect(version !== undefined, `one of the contents ${versions.join(', ')} is there, whole`)
  return version
}

/** One file, of which one content after the other was saved. */
class Saved {
  readonly path: string
  #version: number
  kills = 0
  /** A temporary was left. */
  halfway = 0
  replaced = 0

  constructor(version: number) {
    this.#version = version
    this.path = makeFile(contentOf(version))
  }

  savesFrom(draw: Draw): Saves {
    return { path: this.path, durability: choose(draw, ['none', 'data', 'full']), version: this.#version + 1 }
  }

  /** Looks at what is there when so many were acknowledged. */
  check(acknowledged: number): void {
    const least = this.#version + acknowledged
    const found = versionIn(this.path, [least, least + 1])
    this.kills += 1
    this.replaced += found - this.#version
    this.#version = found
    const folder = dirname(this.path)
    const left = readdirSync(folder).filter((name) => name !== basename(this.path))
    if (left.length !== 0) this.halfway += 1
    for (const name of left) rmSync(join(folder, name))
  }
}

test.serial('files saved by somebody who is killed are the old one or the whole new one', async (t) => {
  t.timeout(MOST_MS)
  const all: Saved[] = []
  const sum = (key: 'kills' | 'halfway' | 'replaced'): number => all.reduce((total, saved) => total + saved[key], 0)
  const lane = async (number: number): Promise<void> => {
    const draw = draws(seed + number)
    const group = Array.from({ length: TOGETHER }, (_, index) => new Saved((number * TOGETHER + index) * 1_000_000))
    all.push(...group)
    while (!areEnough(sum('kills'), SAVE_KILLS, [sum('halfway'), sum('replaced')])) {
      const files = TOGETHER * draw(4)
      const microseconds = draw(choose(draw, [1, 300, 3000]))
      const saves = group.map((saved) => saved.savesFrom(draw))
      const { lines, stderr, signal } = await play('save', { saves, files, microseconds })
      t.is(signal, 'SIGKILL', stderr)
      for (const [index, saved] of group.entries()) {
        saved.check(lines.filter((line) => line.startsWith(`${index} `)).length)
      }
    }
  }
  await Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)))
  const [kills, halfway, replaced] = [sum('kills'), sum('halfway'), sum('replaced')]
  t.log(JSON.stringify({ kills, halfway, replaced }))
  t.true(SAVE_KILLS <= kills && 0 < halfway && 0 < replaced)
})
