/**
 * The core of an encoder: what it has learned, its tapes, and the way from a captured value to bytes. Runs on the JS
 * thread; tasks print the tapes. Encoders, logs, saved files and batchers have one each.
 */

import { CaptureContext } from '../capture/context.ts'
import { requestFunction } from '../capture/learning.ts'
import { takePlaces } from '../capture/places.ts'
import { captureValue } from '../capture/root.ts'
import type { EarlyPrint } from '../capture/segment-printer.ts'
import { releaseSegments, type TapeRooms } from '../capture/segment.ts'
import { AT_ONCE_NS } from '../capture/small-encoder.ts'
import { checkSize } from '../capture/printable-tape.ts'
import { keepTape, type SnapshotTape } from '../capture/snapshot-tape.ts'
import { mayBeWide } from '../capture/strings.ts'
import { tuning } from '../capture/tuning.ts'
import { Vocabulary } from '../capture/vocabulary.ts'
import { allocate, type Bytes } from '../runtime/bytes.ts'
import { onIdle, releaseWhenIdle } from '../runtime/idle.ts'
import { check, Layout, TapeParts } from '../runtime/native.ts'
import { DEFAULT_CONFIG, type EncodeConfig, type OnBadRow, type PrintOptions } from './config.ts'
import { Lines } from './lines.ts'
import { forEachRow, noJson, RowBuffer, RowTransfer } from './row-buffer.ts'
import { exactly, ResultPrinter, usualOf, withinBound, type Printable } from './result-printer.ts'
import { RootTexts, Unwritten } from './root-text.ts'
import { SLAB_SIZE, SmallResults } from './small-results.ts'
import { bytesOfText, isForNow, isPlainText, ofWholeText } from './text-result.ts'

/** Captures values onto tapes, and prints those at once or by tasks. */
export class EncoderCore {
  #vocabulary = new Vocabulary(requestFunction)
  /** Stack of idle tapes: nothing is captured on them, and no task reads them. */
  #idle: CaptureContext | undefined
  #idleCount = 0
  readonly #printer = new ResultPrinter()
  /** Values of `encode` may be large from the first on; those of `encodeSync` are small. */
  readonly #texts = new RootTexts(tuning.firstPeeks, 0)
  readonly #syncTexts = new RootTexts(0, tuning.syncUnseen)
  readonly #rooms: TapeRooms | undefined

  /** `rooms` are those of all tapes, for tests. */
  constructor(rooms?: TapeRooms) {
    this.#rooms = rooms
  }

  encode(value: unknown, config: EncodeConfig, signal: AbortSignal | undefined): Bytes | Promise<Bytes> {
    const text = this.#texts.of(value, config, this.#vocabulary)
    if (typeof text === 'string') {
      return isForNow(text, config) ? bytesOfText(text, config) : this.#printText(text, config, signal)
    }
    const tape = this.#capture(text, config, signal, earlyOf(config, EARLY))
    return this.#printAtOnce(tape, config) ?? this.#print(tape, config, signal)
  }

  encodeSync(value: unknown, config: EncodeConfig): Bytes {
    const text = this.#syncTexts.of(value, config, this.#vocabulary)
    if (typeof text === 'string') {
      if (isPlainText(text, config)) return bytesOfText(text, config)
      const printOptions = ofWholeText(config)
      return this.#printer.printNow(this.#printableOf(text, printOptions), printOptions)
    }
    const tape = this.#capture(text, config, undefined, earlyOf(config, EARLY_SYNC))
    return this.#printSmall(tape, config) ?? this.#printNow(tape, config)
  }

  /** Makes the result of a text of JSON.stringify in a task. */
  async #printText(text: string, config: EncodeConfig, signal: AbortSignal | undefined): Promise<Bytes> {
    const printOptions = ofWholeText(config)
    const bytes = await this.#printer.print(this.#printableOf(text, printOptions), printOptions, signal)
    releaseWhenIdle()
    return bytes
  }

  /** Returns the memory of a tape that is a text of JSON.stringify, without any segment. */
  #printableOf(text: string, printOptions: PrintOptions): Printable {
    const parts = new TapeParts()
    const isWide = mayBeWide(text)
    check(parts.addText(text, isWide))
    const { lexicon } = this.#vocabulary
    return { parts, lexicon, expected: this.#printer.guessOfText(text, isWide, printOptions) }
  }

  async encodeLines(
    rows: unknown,
    config: EncodeConfig,
    onBad: OnBadRow | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Bytes> {
    const tape = this.#take()
    try {
      tape.begin(config)
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
    tape.begin(config)
    return new RowBuffer(tape, config.layout | Layout.Rows, () => this.#give(tape))
  }

  /** Captures one value for a task that needs its bytes. */
  rowBufferOf(value: unknown, config: EncodeConfig, signal: AbortSignal | undefined): RowBuffer {
    const tape = this.#capture(new Unwritten(value), config, signal)
    const rowBuffer = new RowBuffer(tape, config.layout, () => this.#give(tape))
    rowBuffer.size = usualOf(tape, config)
    return rowBuffer
  }

  #take(): CaptureContext {
    if (this.#vocabulary.isFull) {
      // The lexicon is full: learning starts again.
      this.#vocabulary = new Vocabulary(requestFunction)
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

  #capture({ value, way }: Unwritten, config: EncodeConfig, signal?: AbortSignal, early?: EarlyPrint): CaptureContext {
    const { newline, transfer } = config
    const tape = this.#take()
    tape.begin(config)
    tape.early = early
    try {
      if (!captureValue(tape, value, way)) throw noJson('the value')
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
    const { size, maxBytes } = tape
    if (SLAB_SIZE / 2 < size) return undefined
    const bytes = slab.print(tape, size)
    if (bytes !== undefined) this.#give(tape)
    return bytes === undefined ? undefined : withinBound(bytes, { maxBytes })
  }

  #printNow(tape: CaptureContext, printOptions: PrintOptions): Bytes {
    try {
      return this.#printer.printNow(this.#printable(tape, tape.finish(), printOptions), printOptions)
    } finally {
      this.#give(tape)
      releaseWhenIdle()
    }
  }

  /** Hands a tape over. The exact size of the result is known where all segments are printed. */
  #printable(tape: CaptureContext, parts: TapeParts, printOptions: PrintOptions): Printable {
    const { lexicon } = tape.vocabulary
    if (tape.printer === undefined || printOptions.gap !== undefined) {
      return { parts, lexicon, expected: this.#printer.guess(usualOf(tape, printOptions), printOptions) }
    }
    const size = parts.printedSize
    checkSize(size, tape.maxBytes)
    return { parts, lexicon, expected: exactly(size) }
  }

  async #print(tape: CaptureContext, printOptions: PrintOptions, signal: AbortSignal | undefined): Promise<Bytes> {
    try {
      const parts = tape.finish()
      if (tape.printer !== undefined) await tape.printer.end(signal)
      return await this.#printer.print(this.#printable(tape, parts, printOptions), printOptions, signal)
    } finally {
      this.#give(tape)
      releaseWhenIdle()
    }
  }

  /** Captures a value for a snapshot. */
  keep(value: unknown, { rules, transfer, maxBytes }: EncodeConfig): SnapshotTape {
    const tape = this.#capture(new Unwritten(value), { ...DEFAULT_CONFIG, rules, transfer, maxBytes })
    try {
      return keepTape(tape)
    } finally {
      this.#give(tape)
    }
  }

  async printSnapshot(kept: SnapshotTape, printOptions: PrintOptions, signal: AbortSignal | undefined): Promise<Bytes> {
    const { lexicon, cost = Infinity } = kept
    const expected = this.#printer.guess(usualOf(kept, printOptions), printOptions)
    const printable = { parts: kept.parts.share(), lexicon, expected }
    if (AT_ONCE_NS < cost) return await this.#printer.print(printable, printOptions, signal)
    signal?.throwIfAborted()
    return this.#printer.printNow(printable, printOptions)
  }
}

const EARLY: EarlyPrint = { hasRows: false, isSync: false }
const EARLY_ROWS: EarlyPrint = { hasRows: true, isSync: false }
const EARLY_SYNC: EarlyPrint = { hasRows: false, isSync: true }

/** Returns `early` for JSON. Other formats are printed from the whole tape. */
function earlyOf({ layout }: EncodeConfig, early: EarlyPrint): EarlyPrint | undefined {
  return (layout & ~Layout.SortedKeys) === 0 ? early : undefined
}

/** Most idle tapes of one encoder. */
const MOST_IDLE = 16

onIdle(releaseSegments)
const slab = new SmallResults()
/** Core of all calls that have no encoder of their own. */
export const shared: EncoderCore = new EncoderCore()
