/**
 * The core of an encoder: what it has learned, its tapes, and the way from a captured value to bytes. Runs on the JS
 * thread; tasks print the tapes. Encoders, logs, saved files and batchers have one each.
 */

import { isLimit } from '../capture/spec-walk.ts'
import { Vocabulary } from '../capture/path-node.ts'
import { Revived, stringify } from '../capture/raw-json.ts'
import type { CaptureRules } from '../capture/rules.ts'
import { CaptureContext } from '../capture/context.ts'
import { takePlaces } from '../capture/places.ts'
import { expectedOf, releaseSegments, SLACK, type TapeRooms } from '../capture/segment.ts'
import type { EarlyPrint } from '../capture/segment-printer.ts'
import { AT_ONCE_NS } from '../capture/small-encoder.ts'
import { checkSize } from '../capture/printable-tape.ts'
import { keepTape, type SnapshotTape } from '../capture/snapshot-tape.ts'
import { captureValue } from '../capture/fast-walk.ts'
import { allocate, allocateNow, giveBack, resultOf, utf8Of, type Bytes } from '../runtime/bytes.ts'
import { DEFAULT_CONFIG, type EncodeConfig, type OnBadRow, type PrintOptions } from './config.ts'
import {
  absolute,
  bufferFrom,
  leadingZeros,
  leastOf,
  lengthOf,
  mostOf,
  now,
  partOf,
  truncate,
  writeUtf8,
  zeros,
} from '../runtime/intrinsics.ts'
import {
  encodeTape,
  encodeTapeSync,
  Layout,
  SmallOutput,
  takeOverflow,
  takeOverflowSync,
  unwrap,
  type Lexicon,
  type TapeParts,
} from '../runtime/native.ts'
import { onIdle, releaseWhenIdle } from '../runtime/idle.ts'
import { run } from '../runtime/pool.ts'
import { captureRow, forEachRow, noJson, RowBuffer, RowTransfer } from './row-buffer.ts'

/** Captures values onto tapes, and prints those at once or by tasks. */
export class EncoderCore {
  #vocabulary = new Vocabulary()
  /** Stack of idle tapes: nothing is captured on them, and no task reads them. */
  #idle: CaptureContext | undefined
  #idleCount = 0
  readonly #jsonSizes = new Sizes()
  readonly #spacedSizes = new Sizes()
  readonly #msgpackSizes = new Sizes()
  /** Trial for results as large as the last one. */
  #trial: Trial | undefined = new Trial()
  readonly #trials: readonly Trial[] = Array.from({ length: SIZE_CLASSES }, () => new Trial())
  readonly #rooms: TapeRooms | undefined

  /** `rooms` are those of all tapes, for tests. */
  constructor(rooms?: TapeRooms) {
    this.#rooms = rooms
  }

  encode(value: unknown, config: EncodeConfig, signal: AbortSignal | undefined): Bytes | Promise<Bytes> {
    const tape = this.#capture(value, config, signal, earlyOf(config, EARLY))
    return this.#printAtOnce(tape, config) ?? this.#print(tape, config, signal)
  }

  encodeSync(value: unknown, config: EncodeConfig): Bytes {
    const trial = config === DEFAULT_CONFIG ? this.#trial : undefined
    const bytes = trial === undefined ? this.#encodeNow(value, config) : this.#encodeTried(value, trial)
    this.#trial = this.#trials[sizeClass(lengthOf(bytes))]
    return bytes
  }

  #encodeTried(value: unknown, trial: Trial): Bytes {
    const isTimed = trial.next()
    const start = isTimed ? now() : 0
    const made = trial.isEngines ? stringifyNow(value) : undefined
    const bytes =
      made instanceof Revived
        ? this.#encodeNow(made.value, DEFAULT_CONFIG)
        : (made ?? this.#encodeNow(value, DEFAULT_CONFIG))
    if (isTimed) trial.keep((now() - start) / (lengthOf(bytes) + FIXED_COST))
    return bytes
  }

  #encodeNow(value: unknown, config: EncodeConfig): Bytes {
    const tape = this.#capture(value, config, undefined, earlyOf(config, EARLY_SYNC))
    return this.#printSmall(tape, config) ?? this.#printNow(tape, config)
  }

  async encodeLines(
    rows: unknown,
    config: EncodeConfig,
    onBad: OnBadRow | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Bytes> {
    const tape = this.#take()
    try {
      tape.rules = config.rules
      tape.transfer = config.transfer
      // A bad row is taken back from the tape.
      if (onBad === undefined) tape.early = earlyOf(config, EARLY_ROWS)
      const transfer = config.transfer ? new RowTransfer() : undefined
      const lines = new Lines(tape, onBad, transfer)
      const reading = forEachRow('rows', rows, { signal, transfer }, (row) => lines.add(row))
      if (reading !== undefined) await reading
      // Code of a row may have aborted the call.
      signal?.throwIfAborted()
      if (tape.hasNothing) {
        this.#give(tape)
        return allocate(0)
      }
    } catch (error) {
      this.#give(tape)
      throw error
    }
    const printOptions = { ...config, layout: config.layout | Layout.Rows }
    return this.#printAtOnce(tape, printOptions) ?? (await this.#print(tape, printOptions, signal))
  }

  /** Makes a buffer for rows that are captured one by one. */
  open(config: EncodeConfig): RowBuffer {
    const tape = this.#take()
    tape.rules = config.rules
    return new RowBuffer(tape, config.layout | Layout.Rows, () => this.#give(tape))
  }

  /** Captures one value for a task that needs its bytes. */
  rowBufferOf(value: unknown, config: EncodeConfig, signal: AbortSignal | undefined): RowBuffer {
    const tape = this.#capture(value, config, signal)
    const rowBuffer = new RowBuffer(tape, config.layout, () => this.#give(tape))
    rowBuffer.size = usualOf(tape, config)
    return rowBuffer
  }

  #take(): CaptureContext {
    if (this.#vocabulary.isFull) {
      // The lexicon is full: learning starts again.
      this.#vocabulary = new Vocabulary()
      this.#idle = undefined
      this.#idleCount = 0
    }
    const tape = this.#idle
    if (tape === undefined) return new CaptureContext(this.#vocabulary, slab.native, this.#rooms)
    this.#idle = tape.below
    this.#idleCount -= 1
    tape.below = undefined
    return tape
  }

  #give(tape: CaptureContext): void {
    // Tasks that print its segments may read it still.
    if (tape.printer?.stop(() => this.#give(tape)) === true) return
    tape.reset()
    if (this.#idleCount === MOST_IDLE || tape.vocabulary !== this.#vocabulary) return
    tape.below = this.#idle
    this.#idle = tape
    this.#idleCount += 1
  }

  #capture(
    value: unknown,
    { rules, newline, transfer }: EncodeConfig,
    signal?: AbortSignal,
    early?: EarlyPrint,
  ): CaptureContext {
    const tape = this.#take()
    tape.rules = rules
    tape.transfer = transfer
    tape.early = early
    try {
      if (!captureValue(tape, value, tape.vocabulary.root)) throw noJson('the value')
      if (newline) tape.row()
      // Code of the value may have aborted the call, which then takes nothing.
      if (transfer) signal?.throwIfAborted()
      if (transfer) takePlaces([tape])
      return tape
    } catch (error) {
      this.#give(tape)
      throw error
    }
  }

  /** Prints at once if that takes less of the JS thread than a task does. */
  #printAtOnce(tape: CaptureContext, printOptions: PrintOptions): Bytes | undefined {
    if (!tape.isCheap) return undefined
    return this.#printSmall(tape, printOptions) ?? this.#printNow(tape, printOptions)
  }

  /** Prints to the memory that small results share. Returns undefined for a large result. */
  #printSmall(tape: CaptureContext, { gap, layout }: PrintOptions): Bytes | undefined {
    if (!tape.isSmall || gap !== undefined || (layout & ~Layout.Rows) !== 0) return undefined
    const { size } = tape
    if (SLAB_SIZE / 2 < size) return undefined
    const bytes = slab.print(tape, size)
    const { maxBytes } = tape
    if (bytes !== undefined) this.#give(tape)
    return bytes === undefined ? undefined : withinBound(bytes, maxBytes)
  }

  #printNow(tape: CaptureContext, printOptions: PrintOptions): Bytes {
    try {
      const parts = tape.finish()
      const expected = this.#expectedOf(tape, parts, printOptions)
      return withinBound(this.#printPartsNow(parts, tape.vocabulary.lexicon, expected, printOptions), tape.maxBytes)
    } finally {
      this.#give(tape)
      releaseWhenIdle()
    }
  }

  /** Says how much memory to make. The exact size is known where all segments are printed. */
  #expectedOf(tape: CaptureContext, parts: TapeParts, printOptions: PrintOptions): ExpectedSize {
    const usual = usualOf(tape, printOptions)
    if (tape.printer === undefined || printOptions.gap !== undefined) return this.#guess(usual, printOptions)
    const size = parts.printedSize
    checkSize(size, tape.maxBytes)
    return { usual, size, block: size }
  }

  #guess(usual: number, printOptions: PrintOptions): ExpectedSize {
    return { usual, size: this.#sizesOf(printOptions).predict(usual), block: expectedOf(usual) }
  }

  #printPartsNow(
    parts: TapeParts,
    lexicon: Lexicon,
    { usual, size: expected, block }: ExpectedSize,
    printOptions: PrintOptions,
  ): Bytes {
    const sizes = this.#sizesOf(printOptions)
    const out = allocateNow(expected)
    const written = unwrap(encodeTapeSync(parts, lexicon, printOptions, out, block))
    const size = absolute(written)
    sizes.learn(usual, size)
    if (0 <= written) return resultOf(out, size)
    giveBack(out)
    const whole = allocateNow(size)
    unwrap(takeOverflowSync(parts, whole))
    return whole
  }

  async #print(tape: CaptureContext, printOptions: PrintOptions, signal: AbortSignal | undefined): Promise<Bytes> {
    try {
      const parts = tape.finish()
      if (tape.printer !== undefined) await tape.printer.end(signal)
      const expected = this.#expectedOf(tape, parts, printOptions)
      const bytes = await this.#printParts(parts, tape.vocabulary.lexicon, expected, printOptions, signal)
      return withinBound(bytes, tape.maxBytes)
    } finally {
      this.#give(tape)
      releaseWhenIdle()
    }
  }

  async #printParts(
    parts: TapeParts,
    lexicon: Lexicon,
    { usual, size: expected, block }: ExpectedSize,
    printOptions: PrintOptions,
    signal: AbortSignal | undefined,
  ): Promise<Bytes> {
    const sizes = this.#sizesOf(printOptions)
    const out = allocate(expected)
    let written = 0
    try {
      written = unwrap(await run((stop) => encodeTape(parts, lexicon, printOptions, out, block, stop), { signal }))
    } catch (error) {
      giveBack(out)
      throw error
    }
    const size = absolute(written)
    sizes.learn(usual, size)
    if (0 <= written) return resultOf(out, size)
    giveBack(out)
    return await takeOverflowing(parts, size, signal)
  }

  /** Captures a value for a snapshot. */
  keep(value: unknown, rules: CaptureRules, transfer: boolean): SnapshotTape {
    const tape = this.#capture(value, { ...DEFAULT_CONFIG, rules, transfer })
    try {
      return keepTape(tape)
    } finally {
      this.#give(tape)
    }
  }

  async printSnapshot(kept: SnapshotTape, printOptions: PrintOptions, signal: AbortSignal | undefined): Promise<Bytes> {
    const { lexicon, cost = Infinity } = kept
    const expected = this.#guess(usualOf(kept, printOptions), printOptions)
    const parts = kept.parts.share()
    if (cost <= AT_ONCE_NS) {
      signal?.throwIfAborted()
      return this.#printPartsNow(parts, lexicon, expected, printOptions)
    }
    return await this.#printParts(parts, lexicon, expected, printOptions, signal)
  }

  #sizesOf({ layout, gap }: PrintOptions): { predict: (usual: number) => number; learn: Sizes['learn'] } {
    if ((layout & Layout.Digest) !== 0) return DIGESTS
    if (isPacked(layout)) return this.#msgpackSizes
    return gap === undefined ? this.#jsonSizes : this.#spacedSizes
  }
}

/** Memory for a result. */
interface ExpectedSize {
  /** Estimate of the tape. */
  readonly usual: number
  /** Bytes of the result. */
  readonly size: number
  /** Bytes of recycled memory. */
  readonly block: number
}

const EARLY: EarlyPrint = { hasRows: false, isSync: false }
const EARLY_ROWS: EarlyPrint = { hasRows: true, isSync: false }
const EARLY_SYNC: EarlyPrint = { hasRows: false, isSync: true }

/** Returns `early` for JSON. Other formats are printed from the whole tape. */
function earlyOf({ layout }: EncodeConfig, early: EarlyPrint): EarlyPrint | undefined {
  return (layout & ~Layout.SortedKeys) === 0 ? early : undefined
}

/** Returns a result that is not larger than `maxBytes`; gives the memory of a larger one back. */
function withinBound(bytes: Bytes, maxBytes: number): Bytes {
  if (maxBytes < lengthOf(bytes)) giveBack(bytes)
  checkSize(lengthOf(bytes), maxBytes)
  return bytes
}

function isPacked(layout: number): boolean {
  return (layout & Layout.Msgpack) !== 0
}

/** Estimated length of the result. */
function usualOf(captured: CaptureContext | SnapshotTape, { layout }: PrintOptions): number {
  return isPacked(layout) ? captured.usualPackedSize : captured.usualSize
}

// Taken on import.
const { Float64Array: Ratios } = globalThis

/**
 * Guesses the length of results of one kind: the tape's estimate, times the ratio of actual to estimated length of the
 * last results.
 */
class Sizes {
  /** Actual ÷ estimated length of the last results; 0 where there was none yet. */
  readonly #ratios = new Ratios(REMEMBERED)
  #next = 0

  /**
   * Returns how much memory to make. 0 means that the last results differ too much: the task prints to recycled memory,
   * and a second task copies.
   */
  predict(usual: number): number {
    if (usual < SMALL_RESULT) return usual * MOST_GROWTH + SLACK
    let least = Infinity
    let most = 0
    for (let index = 0; index < REMEMBERED; index += 1) {
      const ratio = this.#ratios[index] ?? 0
      if (ratio === 0) continue
      least = leastOf(least, ratio)
      most = mostOf(most, ratio)
    }
    if (most === 0 || MOST_GROWTH < most || least * MOST_SPREAD < most) return 0
    return truncate(usual * (most + MARGIN)) + SLACK
  }

  learn(usual: number, size: number): void {
    if (usual < SMALL_RESULT) return
    this.#ratios[this.#next] = size / usual
    this.#next = (this.#next + 1) % REMEMBERED
  }
}

/** Sizes of digests, which are always 64 bytes. */
const DIGESTS = { predict: () => 64, learn: () => undefined }

/** Estimated length below which memory is never far too large. */
const SMALL_RESULT = 16 * 1024
/** Results that are remembered. */
const REMEMBERED = 8
/** Most memory of a result, as a multiple of the tape's estimate. */
const MOST_GROWTH = 2
/** Most spread of the last ratios. With a wider one, the memory of the shortest result would be too large. */
const MOST_SPREAD = 1.4
const MARGIN = 0.02

/** Copies a result that a task left in recycled memory. */
async function takeOverflowing(parts: TapeParts, size: number, signal: AbortSignal | undefined): Promise<Bytes> {
  const whole = allocate(size)
  try {
    unwrap(await run((stop) => takeOverflow(parts, whole, stop), { signal, first: true }))
    return whole
  } catch (error) {
    giveBack(whole)
    throw error
  }
}

class Lines {
  readonly #tape: CaptureContext
  readonly #onBad: OnBadRow | undefined
  readonly #transfer: RowTransfer | undefined
  #index = 0

  constructor(tape: CaptureContext, onBad: OnBadRow | undefined, transfer: RowTransfer | undefined) {
    this.#tape = tape
    this.#onBad = onBad
    this.#transfer = transfer
  }

  add(row: unknown): undefined {
    const tape = this.#tape
    const index = this.#index
    this.#index += 1
    const mark = this.#onBad === undefined ? undefined : tape.mark()
    try {
      captureRow(tape, row, index)
      this.#transfer?.add(tape)
    } catch (error) {
      if (this.#onBad === undefined || mark === undefined) throw error
      tape.goBack(mark)
      this.#onBad(error, index)
    }
  }
}

/** Results between two that are timed, one for each way. All of the first ones are timed. */
const TRIAL_PERIOD = 32
const TRIAL_START = 64
/** Bytes of a result that cost as much as the fixed part of a call. */
const FIXED_COST = 64
/** Factor by which old times grow with each new one, so that they count less. */
const AGING = 1.03
/** A way is preferred if it is faster by this factor. */
const CLEARLY = 0.97
/** Classes of result lengths, by powers of two. Results of 64 KiB and more are always printed from a tape. */
const SIZE_CLASSES = 17

function sizeClass(length: number): number {
  return 32 - leadingZeros(length)
}

/** Finds out which is faster for results of one length: the tape, or the engine's JSON.stringify. */
class Trial {
  isEngines = false
  #calls = 0
  #prefersEngine = false
  #tapes = Infinity
  #engines = Infinity

  /** Chooses the way of the next call, in `isEngines`. Returns true if the call is to be timed. */
  next(): boolean {
    this.#calls += 1
    const phase = this.#calls % TRIAL_PERIOD
    const isFirst = this.#calls < TRIAL_START
    this.isEngines = isFirst ? phase % 2 === 0 : this.#prefersEngine !== (phase === 0)
    return isFirst || phase < 2
  }

  /** Remembers the least time for a byte of the way whose turn it was. */
  keep(cost: number): void {
    if (this.isEngines) this.#engines = leastOf(cost, this.#engines * AGING)
    else this.#tapes = leastOf(cost, this.#tapes * AGING)
    this.#prefersEngine = this.#engines < this.#tapes * CLEARLY
  }
}

/** Stringifies by the engine. Returns undefined where the value is too deep for its stack, or too long for a string. */
function stringifyNow(value: unknown): Bytes | Revived | undefined {
  let text: string | Revived | undefined
  try {
    text = stringify(value)
  } catch (error) {
    if (isLimit(error)) return undefined
    throw error
  }
  if (text === undefined) throw noJson('the value')
  return typeof text === 'string' ? (slab.write(text) ?? utf8Of(text, allocateNow)) : text
}

const SLAB_SIZE = 64 * 1024

/** Memory that small results share, like Node's pool, but zeroed. */
class SmallResults {
  readonly native: SmallOutput = new SmallOutput()
  #memory = bufferFrom(zeros(0).buffer)
  #offset = SLAB_SIZE

  /** Prints a small tape. Returns undefined if it does not fit after all. */
  print(tape: CaptureContext, expected: number): Bytes | undefined {
    // Whoever has a result can transfer the memory away. It then has no first byte.
    if (SLAB_SIZE - this.#offset < expected || this.#memory[0] === undefined) this.#replace()
    let size = tape.encodeInto(this.#offset)
    if (size < 0) {
      this.#replace()
      size = tape.encodeInto(0)
      if (size < 0) return undefined
    }
    return this.#take(size)
  }

  /** Writes the UTF-8 of a short text. */
  write(text: string): Bytes | undefined {
    const most = text.length * 3
    if (SLAB_SIZE / 2 < most) return undefined
    if (SLAB_SIZE - this.#offset < most || this.#memory[0] === undefined) this.#replace()
    return this.#take(writeUtf8(this.#memory, text, this.#offset, most))
  }

  #take(size: number): Bytes {
    const start = this.#offset
    this.#offset += (size + 7) & ~7
    return partOf(this.#memory, start, start + size)
  }

  #replace(): void {
    const memory = zeros(SLAB_SIZE)
    this.#memory = bufferFrom(memory.buffer)
    this.#offset = 0
    this.native.replace(memory)
  }
}

/** Most idle tapes of one encoder. */
const MOST_IDLE = 16

onIdle(releaseSegments)
const slab = new SmallResults()
/** Core of all calls that have no encoder of their own. */
export const shared: EncoderCore = new EncoderCore()
