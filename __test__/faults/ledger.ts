/** What a log's file may look like, byte for byte, whatever became of those who wrote to it. */

import { readdirSync, readFileSync, truncateSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { RepairReport, TailPolicy } from '../../src/index.ts'
import { rowText } from './programs/rows.ts'

interface Place {
  readonly offset: number
  readonly length: number
}

/** What became of one writer. */
export interface Told {
  readonly run: number
  readonly policy: TailPolicy
  /** What it said of its opening, if it came so far. */
  readonly opened: { readonly action: string; readonly size: number } | undefined
  /** Rows acknowledged: by their index, where they stand, if that was told. */
  readonly acknowledged: ReadonlyMap<number, Place | undefined>
}

/** What was found of one writer. */
export interface Found {
  /** Whole rows. */
  readonly rows: number
  /** Bytes of one that is not. */
  readonly torn: number
}

interface Repaired {
  readonly file: Buffer
  readonly action: RepairReport['action']
}

export class Ledger {
  readonly path: string
  /** What is known to be in the file, before what is torn. */
  #known: Buffer
  #torn: Buffer = Buffer.alloc(0)
  /** Of the torn row, what it would be. */
  #whole = ''
  /** Of the last writer, from where it began. */
  #run = 0
  #start = 0
  #places: readonly Place[] = []
  /** Nobody was told of the rows behind this. */
  #acknowledgedEnd = 0

  constructor(path: string) {
    this.path = path
    this.#known = readFileSync(path)
    this.#start = this.#known.length
    this.#acknowledgedEnd = this.#known.length
  }

  /** Looks at the file that a writer left behind. Throws where it is not what it must be. */
  check({ run, policy, opened, acknowledged }: Told): Found {
    const bytes = readFileSync(this.path)
    const repaired = this.repairedBy(policy)
    if (opened !== undefined) this.#checkOpening(repaired, opened)
    else if (bytes.equals(Buffer.concat([this.#known, this.#torn]))) return { rows: 0, torn: this.#torn.length }
    const { file } = repaired
    expect(bytes.subarray(0, file.length).equals(file), 'what was there before is there')
    this.#start = file.length
    this.#acknowledgedEnd = file.length
    this.#run = run
    const places = this.#read(bytes)
    for (const [index, place] of acknowledged) {
      const found = places[index]
      expect(found !== undefined, `row ${index}, which was acknowledged, is there`)
      const isRight = place === undefined || (place.offset === found.offset && place.length === found.length)
      expect(isRight, `row ${index} is where it was said to be`)
      this.#acknowledgedEnd = Math.max(this.#acknowledgedEnd, found.offset + found.length + 1)
    }
    this.#keep(bytes, places)
    return { rows: places.length, torn: this.#torn.length }
  }

  /** What was there when it was looked at last, and what is now. */
  describe(): string {
    const bytes = readFileSync(this.path)
    const same = this.#known.equals(bytes.subarray(0, this.#known.length))
    return `${this.path}: ${this.#known.length} + ${this.#torn.length} bytes, now ${bytes.length}, ${same ? 'the same' : 'others'}: ${bytes.subarray(-200).toString()}`
  }

  /** Leaves less of what nobody was told of, as the system may. True if that ends amidst a row. */
  tear(draw: (below: number) => number): boolean {
    const bytes = readFileSync(this.path)
    const start = this.#acknowledgedEnd
    if (bytes.length <= start) return false
    const left = bytes.subarray(0, start + draw(bytes.length - start))
    truncateSync(this.path, left.length)
    this.#keep(
      left,
      this.#places.filter(({ offset, length }) => offset + length < left.length),
    )
    return this.#torn.length !== 0
  }

  /** What a repair makes of it. */
  repairedBy(policy: TailPolicy): Repaired {
    const known = this.#known
    const ended = Buffer.concat([known, this.#torn, Buffer.from('\n')])
    if (this.#torn.length === 0) return { file: known, action: 'none' }
    if (this.#torn.equals(Buffer.from(this.#whole))) return { file: ended, action: 'terminated' }
    if (policy === 'isolate') return { file: ended, action: 'isolated' }
    return { file: known, action: policy === 'truncate' ? 'truncated' : 'quarantined' }
  }

  /** The rows of the last writer, one after the other from where it began; and what may be of one that is torn. */
  #read(bytes: Buffer): readonly Place[] {
    const places: Place[] = []
    for (let offset = this.#start; ;) {
      const row = Buffer.from(`${rowText(this.#run, places.length)}\n`)
      const found = bytes.subarray(offset, offset + row.length)
      expect(found.equals(row.subarray(0, found.length)), `row ${places.length} is at ${offset}, whole or torn`)
      if (found.length < row.length) return places
      places.push({ offset, length: row.length - 1 })
      offset += row.length
    }
  }

  #keep(bytes: Buffer, places: readonly Place[]): void {
    const last = places.at(-1)
    const end = last === undefined ? this.#start : last.offset + last.length + 1
    this.#places = places
    this.#known = bytes.subarray(0, end)
    this.#torn = bytes.subarray(end)
    this.#whole = rowText(this.#run, places.length)
  }

  #checkOpening({ file, action }: Repaired, opened: NonNullable<Told['opened']>): void {
    // Whoever was killed while it repaired may have come to the end of that.
    const isDone = opened.action === 'none'
    expect(opened.action === action || isDone, `${action} is what had to be done, not ${opened.action}`)
    expect(opened.size === file.length, `${file.length} bytes are left, not ${opened.size}`)
    if (action !== 'quarantined') return
    const folder = dirname(this.path)
    const sidecars = readdirSync(folder).filter((name) => name.includes('.torn-'))
    const isKept = sidecars.some((name) => readFileSync(join(folder, name)).equals(this.#torn))
    expect(isKept, 'the torn bytes are in a sidecar')
  }
}

export function expect(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(`expected that ${what}`)
}
