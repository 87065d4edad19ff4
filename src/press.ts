/** From values to bytes: what is learned of them, the tapes they are captured on, and who prints those. */

import { isLimit } from './capture/exact.ts'
import { Vocabulary } from './capture/place.ts'
import { Revived, stringify } from './capture/raw.ts'
import type { Rules } from './capture/rules.ts'
import { AT_ONCE_NS, releaseSegments, Tape, type Kept } from './capture/tape.ts'
import { captureValue } from './capture/walk.ts'
import { allocate, allocateNow, resultOf, utf8Of, type Bytes } from './bytes.ts'
import { DEFAULT_FORM, type Form, type OnBadRow, type Shape } from './forms.ts'
import {
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
} from './intrinsics.ts'
import {
  encodeTape,
  encodeTapeSync,
  Layout,
  Slab,
  takeSpill,
  takeSpillSync,
  unwrap,
  type Lexicon,
  type TapeParts,
} from './native.ts'
import { onIdle, releaseWhenIdle, run } from './pool.ts'
import { captureRow, forEachRow, noJson, Sheet } from './sheet.ts'

/** What an encoder learns, and the tapes it writes. */
export class Press {
  #vocabulary = new Vocabulary()
  /** The stack of tapes of this vocabulary that nothing is captured on, and no task reads. */
  #idle: Tape | undefined
  #idleCount = 0
  readonly #jsonSizes = new Sizes()
  readonly #msgpackSizes = new Sizes()
  /** Who is faster at results as large as the last one. */
  #trial: Trial | undefined = new Trial()
  readonly #trials: readonly Trial[] = Array.from({ length: SIZE_CLASSES }, () => new Trial())

  encode(value: unknown, form: Form, signal: AbortSignal | undefined): Bytes | Promise<Bytes> {
    const tape = this.#capture(value, form)
    return this.#printAtOnce(tape, form) ?? this.#print(tape, form, signal)
  }

  encodeSync(value: unknown, form: Form): Bytes {
    const trial = form === DEFAULT_FORM ? this.#trial : undefined
    const bytes = trial === undefined ? this.#encodeNow(value, form) : this.#encodeTried(value, trial)
    this.#trial = this.#trials[sizeClass(lengthOf(bytes))]
    return bytes
  }

  #encodeTried(value: unknown, trial: Trial): Bytes {
    const isTimed = trial.next()
    const start = isTimed ? now() : 0
    const made = trial.isEngines ? stringifyNow(value) : undefined
    const bytes =
      made instanceof Revived
        ? this.#encodeNow(made.value, DEFAULT_FORM)
        : (made ?? this.#encodeNow(value, DEFAULT_FORM))
    if (isTimed) trial.keep((now() - start) / (lengthOf(bytes) + FIXED_COST))
    return bytes
  }

  #encodeNow(value: unknown, form: Form): Bytes {
    const tape = this.#capture(value, form)
    return this.#printSmall(tape, form) ?? this.#printNow(tape, form)
  }

  async encodeLines(
    rows: unknown,
    form: Form,
    onBad: OnBadRow | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Bytes> {
    const tape = this.#take()
    try {
      tape.rules = form.rules
      const lines = new Lines(tape, onBad)
      const reading = forEachRow('rows', rows, signal, (row) => lines.add(row))
      if (reading !== undefined) await reading
      // A row may have aborted it.
      signal?.throwIfAborted()
      if (tape.hasNothing) {
        this.#give(tape)
        return allocate(0)
      }
    } catch (error) {
      this.#give(tape)
      throw error
    }
    const shape = { ...form, layout: form.layout | Layout.Rows }
    return this.#printAtOnce(tape, shape) ?? (await this.#print(tape, shape, signal))
  }

  /** Rows to be captured one by one. */
  open(form: Form): Sheet {
    const tape = this.#take()
    tape.rules = form.rules
    return new Sheet(tape, form.layout | Layout.Rows, () => this.#give(tape))
  }

  /** One value, for a task that needs its bytes. */
  sheetOf(value: unknown, form: Form): Sheet {
    const tape = this.#capture(value, form)
    const sheet = new Sheet(tape, form.layout, () => this.#give(tape))
    sheet.size = usualOf(tape, form)
    return sheet
  }

  #take(): Tape {
    if (this.#vocabulary.isFull) {
      // What was learned is of little use, or its time is over.
      this.#vocabulary = new Vocabulary()
      this.#idle = undefined
      this.#idleCount = 0
    }
    const tape = this.#idle
    if (tape === undefined) return new Tape(this.#vocabulary, slab.native)
    this.#idle = tape.below
    this.#idleCount -= 1
    tape.below = undefined
    return tape
  }

  #give(tape: Tape): void {
    tape.reset()
    if (this.#idleCount === MOST_IDLE || tape.vocabulary !== this.#vocabulary) return
    tape.below = this.#idle
    this.#idle = tape
    this.#idleCount += 1
  }

  #capture(value: unknown, { rules, newline }: Form): Tape {
    const tape = this.#take()
    tape.rules = rules
    try {
      if (!captureValue(tape, value, tape.vocabulary.root)) throw noJson('the value')
      if (newline) tape.row()
      return tape
    } catch (error) {
      this.#give(tape)
      throw error
    }
  }

  /** If that takes less of the thread than a task does. */
  #printAtOnce(tape: Tape, shape: Shape): Bytes | undefined {
    if (!tape.isCheap) return undefined
    return this.#printSmall(tape, shape) ?? this.#printNow(tape, shape)
  }

  /** Into shared memory. Undefined where it is too large for that. */
  #printSmall(tape: Tape, { gap, layout }: Shape): Bytes | undefined {
    if (!tape.isSmall || gap !== undefined || (layout & ~Layout.Rows) !== 0) return undefined
    const { size } = tape
    if (SLAB_SIZE / 2 < size) return undefined
    const bytes = slab.print(tape, size)
    if (bytes !== undefined) this.#give(tape)
    return bytes
  }

  #printNow(tape: Tape, shape: Shape): Bytes {
    const parts = tape.finish()
    try {
      return this.#printPartsNow(parts, tape.vocabulary.lexicon, usualOf(tape, shape), shape)
    } finally {
      this.#give(tape)
      releaseWhenIdle()
    }
  }

  #printPartsNow(parts: TapeParts, lexicon: Lexicon, usual: number, { layout, gap }: Shape): Bytes {
    const sizes = this.#sizesOf(layout)
    const out = allocateNow(sizes.predict(usual))
    const size = unwrap(encodeTapeSync(parts, lexicon, layout, gap, out))
    sizes.learn(usual, size)
    if (size <= lengthOf(out)) return resultOf(out, size)
    const whole = allocateNow(size)
    unwrap(takeSpillSync(parts, whole))
    return whole
  }

  async #print(tape: Tape, shape: Shape, signal: AbortSignal | undefined): Promise<Bytes> {
    const parts = tape.finish()
    try {
      return await this.#printParts(parts, tape.vocabulary.lexicon, usualOf(tape, shape), shape, signal)
    } finally {
      this.#give(tape)
      releaseWhenIdle()
    }
  }

  async #printParts(
    parts: TapeParts,
    lexicon: Lexicon,
    usual: number,
    { layout, gap }: Shape,
    signal: AbortSignal | undefined,
  ): Promise<Bytes> {
    const sizes = this.#sizesOf(layout)
    const out = allocate(sizes.predict(usual))
    const size = unwrap(await run((stop) => encodeTape(parts, lexicon, layout, gap, out, stop), { signal }))
    sizes.learn(usual, size)
    return size <= lengthOf(out) ? resultOf(out, size) : await takeLarger(parts, size, signal)
  }

  /** What was captured, to be printed any number of times. */
  keep(value: unknown, rules: Rules): Kept {
    const tape = this.#capture(value, { ...DEFAULT_FORM, rules })
    try {
      return tape.keep()
    } finally {
      this.#give(tape)
    }
  }

  async printKept(kept: Kept, shape: Shape, signal: AbortSignal | undefined): Promise<Bytes> {
    const { lexicon, cost = Infinity } = kept
    const usual = usualOf(kept, shape)
    const parts = kept.parts.share()
    if (cost <= AT_ONCE_NS) {
      signal?.throwIfAborted()
      return this.#printPartsNow(parts, lexicon, usual, shape)
    }
    return await this.#printParts(parts, lexicon, usual, shape, signal)
  }

  #sizesOf(layout: number): Sizes {
    // A digest is always of the same size.
    if ((layout & Layout.Digest) !== 0) return new Sizes()
    return isPacked(layout) ? this.#msgpackSizes : this.#jsonSizes
  }
}

function isPacked(layout: number): boolean {
  return (layout & Layout.Msgpack) !== 0
}

/** How long the result is, mostly. */
function usualOf(captured: Tape | Kept, { layout }: Shape): number {
  return isPacked(layout) ? captured.usualPackedSize : captured.usualSize
}

/** What results were larger than tapes let expect, at most, of late. */
class Sizes {
  #ratio = FIRST_RATIO

  predict(usual: number): number {
    return truncate(usual * this.#ratio) + SLACK
  }

  learn(usual: number, size: number): void {
    // There is room for any small one.
    if (usual < SLACK) return
    this.#ratio = mostOf(size / usual + MARGIN, this.#ratio * FORGETTING)
  }
}

const MOST_IDLE = 4
const FIRST_RATIO = 1.25
const MARGIN = 0.02
const FORGETTING = 0.99
/** More than is asked for at once by what prints strings. */
const SLACK = 2 * 1024

/** What the memory made for a result had no room for. */
async function takeLarger(parts: TapeParts, size: number, signal: AbortSignal | undefined): Promise<Bytes> {
  const whole = allocate(size)
  unwrap(await run((stop) => takeSpill(parts, whole, stop), { signal, first: true }))
  return whole
}

class Lines {
  readonly #tape: Tape
  readonly #onBad: OnBadRow | undefined
  #index = 0

  constructor(tape: Tape, onBad: OnBadRow | undefined) {
    this.#tape = tape
    this.#onBad = onBad
  }

  add(row: unknown): undefined {
    const tape = this.#tape
    const index = this.#index
    this.#index += 1
    const mark = this.#onBad === undefined ? undefined : tape.mark()
    try {
      captureRow(tape, row, index)
    } catch (error) {
      if (this.#onBad === undefined || mark === undefined) throw error
      tape.goBack(mark)
      this.#onBad(error, index)
    }
  }
}

/** One result in so many is timed, and one made the other way and timed; all of the first ones are. */
const TRIAL_PERIOD = 32
const TRIAL_START = 64
/** Bytes of a result that take as long as what every call does. */
const FIXED_COST = 64
/** Old times count less and less. */
const AGING = 1.03
/** Who is hardly faster is not preferred. */
const CLEARLY = 0.97
/** Results from 64 KiB on are printed from a tape. */
const SIZE_CLASSES = 17

function sizeClass(length: number): number {
  return 32 - leadingZeros(length)
}

/** Which is faster on this thread for results of one size: the tape, or the engine's JSON.stringify. */
class Trial {
  isEngines = false
  #calls = 0
  #prefersEngine = false
  #tapes = Infinity
  #engines = Infinity

  /** Whose turn it is is in `isEngines` then. True if it is to be timed. */
  next(): boolean {
    this.#calls += 1
    const phase = this.#calls % TRIAL_PERIOD
    const isFirst = this.#calls < TRIAL_START
    this.isEngines = isFirst ? phase % 2 === 0 : this.#prefersEngine !== (phase === 0)
    return isFirst || phase < 2
  }

  /** The least time for a byte, of those whose turn it was. */
  keep(cost: number): void {
    if (this.isEngines) this.#engines = leastOf(cost, this.#engines * AGING)
    else this.#tapes = leastOf(cost, this.#tapes * AGING)
    this.#prefersEngine = this.#engines < this.#tapes * CLEARLY
  }
}

/** Undefined where the engine cannot: it is too deep for its stack, or too long for a string. */
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

/** Memory that small results share, as those of Node's pool do. */
class SharedSlab {
  readonly native: Slab = new Slab()
  #memory = bufferFrom(zeros(0).buffer)
  #offset = SLAB_SIZE

  /** Undefined where it is too large after all. */
  print(tape: Tape, expected: number): Bytes | undefined {
    // Anybody who has a result can transfer its memory away, which leaves it without a first byte.
    if (SLAB_SIZE - this.#offset < expected || this.#memory[0] === undefined) this.#replace()
    let size = tape.encodeInto(this.#offset)
    if (size < 0) {
      this.#replace()
      size = tape.encodeInto(0)
      if (size < 0) return undefined
    }
    return this.#take(size)
  }

  /** The UTF-8 of a short text. */
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

onIdle(releaseSegments)
const slab = new SharedSlab()
/** Of all calls that have no encoder of their own. */
export const shared: Press = new Press()
