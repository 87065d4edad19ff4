/** JSON out: the JS thread captures the value, a task prints it. */

import { isLimit } from './capture/exact.ts'
import { Vocabulary } from './capture/place.ts'
import { Revived, stringify } from './capture/raw.ts'
import { isEngines, NO_RULES, type Replace, type Rules } from './capture/rules.ts'
import { releaseSegments, Tape } from './capture/tape.ts'
import { captureValue } from './capture/walk.ts'
import { allocate, allocateNow, resultOf, utf8Of, type Bytes } from './bytes.ts'
import { invalidType, invalidValue } from './errors.ts'
import {
  bufferFrom,
  isArray,
  isNumberObject,
  isStringObject,
  leadingZeros,
  leastOf,
  mostOf,
  newSet,
  now,
  partOf,
  propertyOf,
  sliceString,
  stringifyJson,
  toNumber,
  toText,
  truncate,
  repeatString,
  writeUtf8,
  lengthOf,
  zeros,
} from './intrinsics.ts'
import { encodeTape, encodeTapeSync, Slab, takeSpill, takeSpillSync, unwrap, type TapeParts } from './native.ts'
import { checkKeys, choose, readBoolean, readSignal, tableOf, type Cancellable } from './options.ts'
import { onIdle, releaseWhenIdle, run } from './pool.ts'
import { readStream } from './stream.ts'

export interface EncodeOptions extends Cancellable {
  /** As JSON.stringify's. A function runs on the JS thread, for every key. */
  readonly replacer?:
    | ((this: unknown, key: string, value: unknown) => unknown)
    | readonly (string | number)[]
    | null
    | undefined
  /** As JSON.stringify's. */
  readonly space?: string | number | undefined
  /** End with one "\n". @default false */
  readonly newline?: boolean | undefined
  /** Object keys in UTF-16 code-unit order (RFC 8785), at every depth. A RawJson stays as it is. @default false */
  readonly sortKeys?: boolean | undefined
  /** Typed arrays and Buffers: as JSON.stringify writes them; as an array of numbers (float32 in its own shortest form, BigInt arrays as `bigint` says); or their bytes as a base64 string (with these two, Buffer.prototype.toJSON is not called). @default 'object' */
  readonly typedArrays?: 'object' | 'array' | 'base64' | undefined
  /** @default 'throw' (as JSON.stringify) */
  readonly bigint?: 'throw' | 'number' | 'string' | undefined
  /** NaN and infinities. @default 'null' (as JSON.stringify) */
  readonly nonFinite?: 'null' | 'throw' | undefined
  /** An ancestor met again: throw as JSON.stringify does, or write this text in its place. @default 'throw' */
  readonly circular?: 'throw' | { readonly text: string } | undefined
  /**
   * Asked, after toJSON and replacer, for functions, symbols, bigints, and (by brand, whatever keys they have) Map, Set, WeakMap, WeakSet,
   * WeakRef, RegExp, Error, Promise, ArrayBuffer, SharedArrayBuffer, DataView. Its answer is encoded instead, and what the answer
   * contains may be asked about in turn, the answer itself not again; `undefined` means "as without me".
   */
  readonly default?: ((value: unknown) => unknown) | undefined
}

export interface EncodeLinesOptions extends Omit<EncodeOptions, 'space' | 'newline'> {
  /** A row that cannot be encoded: reject the whole call, or leave it out and report it (in order of index, before the promise settles). @default 'throw' */
  readonly onBadRow?: 'throw' | ((error: unknown, index: number) => void) | undefined
}

/** An encoder that learns the shapes of one call site. `encode` and `encodeLines` share one; every log has its own. */
export interface Encoder {
  encode(value: unknown, options?: Cancellable): Promise<Bytes>
  encodeSync(value: unknown): Bytes
  /** Rejects with ERR_INVALID_ARG_VALUE if the encoder was made with `space` or `newline`. */
  encodeLines(
    rows: Iterable<unknown> | AsyncIterable<unknown>,
    options?: Pick<EncodeLinesOptions, 'onBadRow' | 'signal'>,
  ): Promise<Bytes>
}

/** What `EncodeOptions` come to. */
interface Form {
  readonly rules: Rules
  /** Undefined for no white space at all. */
  readonly gap: string | undefined
  readonly newline: boolean
  readonly sortKeys: boolean
  /** It is rows. */
  readonly hasRows: boolean
}

const DEFAULT_FORM: Form = { rules: NO_RULES, gap: undefined, newline: false, sortKeys: false, hasRows: false }

const RULE_KEYS = {
  replacer: true,
  sortKeys: true,
  typedArrays: true,
  bigint: true,
  nonFinite: true,
  circular: true,
  default: true,
}
const SYNC_KEYS = tableOf({ ...RULE_KEYS, space: true, newline: true })
const ENCODE_KEYS = tableOf({ ...RULE_KEYS, space: true, newline: true, signal: true })
const LINES_KEYS = tableOf({ ...RULE_KEYS, onBadRow: true, signal: true })
const SIGNAL_KEYS = tableOf({ signal: true })
const ENCODER_LINES_KEYS = tableOf({ onBadRow: true, signal: true })

/**
 * The bytes of `Buffer.from(JSON.stringify(value, replacer, space))`, exactly, made off the JS thread.
 * Rejects with the error JSON.stringify would throw, and with a TypeError where it would return undefined.
 * Results above V8's string limit are fine. Nesting depth is bounded by memory only.
 */
export async function encode(value: unknown, options?: EncodeOptions): Promise<Bytes> {
  if (options === undefined) return shared.encode(value, DEFAULT_FORM, undefined)
  checkKeys(options, ENCODE_KEYS)
  const signal = readSignal(options.signal)
  return shared.encode(value, readForm(options), signal)
}

/** The same bytes at once, on this thread: for loggers, exit handlers and small values. Throws what `encode` would reject with. */
export function encodeSync(value: unknown, options?: Omit<EncodeOptions, 'signal'>): Bytes {
  if (options === undefined) return shared.encodeSync(value, DEFAULT_FORM)
  checkKeys(options, SYNC_KEYS)
  return shared.encodeSync(value, readForm(options))
}

/**
 * One JSON document and "\n" per row; no row holds a raw line break (inside a RawJson each "\n" and "\r" becomes a space).
 * A row that JSON.stringify would make undefined is a bad row. No rows: an empty Buffer.
 */
export async function encodeLines(
  rows: Iterable<unknown> | AsyncIterable<unknown>,
  options?: EncodeLinesOptions,
): Promise<Bytes> {
  if (options === undefined) return await shared.encodeLines(rows, DEFAULT_FORM, undefined, undefined)
  checkKeys(options, LINES_KEYS)
  const signal = readSignal(options.signal)
  const onBad = readOnBadRow(options.onBadRow)
  return await shared.encodeLines(rows, readRowForm(options), onBad, signal)
}

export function createEncoder(options?: Omit<EncodeOptions, 'signal'>): Encoder {
  if (options === undefined) return new OwnEncoder(DEFAULT_FORM)
  checkKeys(options, SYNC_KEYS)
  return new OwnEncoder(readForm(options))
}

class OwnEncoder implements Encoder {
  readonly #form: Form
  readonly #press = new Press()

  constructor(form: Form) {
    this.#form = form
  }

  async encode(value: unknown, options?: Cancellable): Promise<Bytes> {
    if (options === undefined) return this.#press.encode(value, this.#form, undefined)
    checkKeys(options, SIGNAL_KEYS)
    return this.#press.encode(value, this.#form, readSignal(options.signal))
  }

  encodeSync(value: unknown): Bytes {
    return this.#press.encodeSync(value, this.#form)
  }

  async encodeLines(
    rows: Iterable<unknown> | AsyncIterable<unknown>,
    options: Pick<EncodeLinesOptions, 'onBadRow' | 'signal'> = {},
  ): Promise<Bytes> {
    checkKeys(options, ENCODER_LINES_KEYS)
    const { onBadRow, signal: given } = options
    const signal = readSignal(given)
    const onBad = readOnBadRow(onBadRow)
    const { gap, newline } = this.#form
    if (gap !== undefined) throw invalidValue('options.space', 'cannot be that of an encoder of lines', gap)
    if (newline) throw invalidValue('options.newline', 'cannot be that of an encoder of lines', newline)
    return await this.#press.encodeLines(rows, this.#form, onBad, signal)
  }
}

type OnBadRow = (error: unknown, index: number) => void

/** What takes less time to print than a task takes of the thread is printed at once. */
const AT_ONCE_NS = 25_000

/** What an encoder learns, and the tapes it writes. */
class Press {
  #vocabulary = new Vocabulary()
  /** The stack of tapes of this vocabulary that nothing is captured on, and no task reads. */
  #idle: Tape | undefined
  #idleCount = 0
  /** What results were larger than tapes let expect, at most, of late. */
  #ratio = FIRST_RATIO
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
      if (isArray(rows)) for (let index = 0; index < rows.length; index += 1) lines.add(rows[index])
      else if (isIterable(rows)) for (const row of rows) lines.add(row)
      else if (isAsyncIterable(rows)) await readStream(rows, signal, (row) => lines.add(row))
      else throw invalidType('rows', 'an iterable or an async iterable', rows)
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
    const layout = { ...form, hasRows: true }
    return this.#printAtOnce(tape, layout) ?? (await this.#print(tape, layout, signal))
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
  #printAtOnce(tape: Tape, form: Form): Bytes | undefined {
    if (!tape.isSmall || AT_ONCE_NS < tape.cost) return undefined
    return this.#printSmall(tape, form) ?? this.#printNow(tape, form)
  }

  /** Into shared memory. Undefined where it is too large for that. */
  #printSmall(tape: Tape, { gap, sortKeys }: Form): Bytes | undefined {
    if (!tape.isSmall || gap !== undefined || sortKeys) return undefined
    const { size } = tape
    if (SLAB_SIZE / 2 < size) return undefined
    const bytes = slab.print(tape, size)
    if (bytes !== undefined) this.#give(tape)
    return bytes
  }

  #printNow(tape: Tape, { gap, sortKeys, hasRows }: Form): Bytes {
    const parts = tape.finish()
    try {
      const usual = tape.usualSize()
      const out = allocateNow(this.#predict(usual))
      const size = unwrap(encodeTapeSync(parts, tape.vocabulary.lexicon, hasRows, sortKeys, gap, out))
      this.#learn(usual, size)
      if (size <= lengthOf(out)) return resultOf(out, size)
      const whole = allocateNow(size)
      unwrap(takeSpillSync(parts, whole))
      return whole
    } finally {
      this.#give(tape)
      releaseWhenIdle()
    }
  }

  async #print(tape: Tape, { gap, sortKeys, hasRows }: Form, signal: AbortSignal | undefined): Promise<Bytes> {
    const parts = tape.finish()
    try {
      const usual = tape.usualSize()
      const out = allocate(this.#predict(usual))
      const size = unwrap(
        await run((stop) => encodeTape(parts, tape.vocabulary.lexicon, hasRows, sortKeys, gap, out, stop), { signal }),
      )
      this.#learn(usual, size)
      return size <= lengthOf(out) ? resultOf(out, size) : await takeLarger(parts, size, signal)
    } finally {
      this.#give(tape)
      releaseWhenIdle()
    }
  }

  #predict(usual: number): number {
    return truncate(usual * this.#ratio) + SLACK
  }

  #learn(usual: number, size: number): void {
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

  add(row: unknown): void {
    const tape = this.#tape
    const index = this.#index
    this.#index += 1
    const mark = this.#onBad === undefined ? undefined : tape.mark()
    try {
      if (!captureValue(tape, row, tape.vocabulary.rows)) throw noJson(`row ${index}`)
      tape.row()
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
const shared = new Press()

type Given<T> = { readonly [K in keyof T]?: unknown }

function readForm(options: Given<EncodeOptions>): Form {
  const { space, newline } = options
  const hasNewline = readBoolean('options.newline', newline, false)
  return { ...readRowForm(options), gap: readSpace(space), newline: hasNewline }
}

/** What rows have of it. */
function readRowForm(options: Given<EncodeLinesOptions>): Form {
  const sortKeys = readBoolean('options.sortKeys', options.sortKeys, false)
  return { ...DEFAULT_FORM, rules: readRules(options), sortKeys }
}

const TYPED_ARRAYS = tableOf({ object: 'object', array: 'array', base64: 'base64' } as const)
const BIGINTS = tableOf({ throw: 'throw', number: 'number', string: 'string' } as const)
const NON_FINITE = tableOf({ null: false, throw: true })

/** The very NO_RULES where they are those. */
function readRules(options: Given<EncodeLinesOptions>): Rules {
  const { replacer, typedArrays, bigint, nonFinite, circular, default: ask } = options
  const rules: Rules = {
    ...readReplacer(replacer),
    typedArrays: choose('options.typedArrays', typedArrays, TYPED_ARRAYS, NO_RULES.typedArrays),
    bigint: choose('options.bigint', bigint, BIGINTS, NO_RULES.bigint),
    isFinite: choose('options.nonFinite', nonFinite, NON_FINITE, NO_RULES.isFinite),
    circular: readCircular(circular),
    ask: readAsk(ask),
  }
  return isEngines(rules) ? NO_RULES : rules
}

function readCircular(circular: unknown): string | undefined {
  if (circular === undefined || circular === 'throw') return undefined
  if (typeof circular !== 'object' || circular === null) {
    throw invalidType('options.circular', "'throw' or of type object", circular)
  }
  checkKeys(circular, CIRCULAR_KEYS, 'options.circular')
  const { text } = circular as { readonly text?: unknown }
  if (typeof text !== 'string') throw invalidType('options.circular.text', 'of type string', text)
  return text
}

const CIRCULAR_KEYS = tableOf({ text: true })

function readAsk(ask: unknown): Rules['ask'] {
  if (ask === undefined) return undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  if (typeof ask === 'function') return ask as NonNullable<Rules['ask']>
  throw invalidType('options.default', 'of type function', ask)
}

/** As JSON.stringify reads it: what is neither function nor array is as if it were not there. */
function readReplacer(replacer: unknown): Pick<Rules, 'replace' | 'keys'> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  if (typeof replacer === 'function') return { replace: replacer as Replace, keys: undefined }
  if (!isArray(replacer)) return { replace: undefined, keys: undefined }
  const keys: string[] = []
  const seen = newSet<string>()
  const add = (key: string): void => {
    if (!seen.has(key)) keys[keys.length] = key
    seen.add(key)
  }
  const { length } = replacer
  for (let index = 0; index < length; index += 1) {
    const item = replacer[index]
    if (typeof item === 'string') add(item)
    else if (typeof item === 'number' || isNumberObject(item) || isStringObject(item)) add(toText(item))
  }
  return { replace: undefined, keys }
}

const MOST_SPACE = 10
/** V8 breaks lines for a space between 0 and 1, and does not indent them. */
const HAS_EMPTY_GAP = stringifyJson([0], undefined, 0.5) !== '[0]'

/** As JSON.stringify reads it. */
function readSpace(given: unknown): string | undefined {
  let space = given
  if (isNumberObject(space)) space = toNumber(space)
  else if (isStringObject(space)) space = toText(space)
  if (typeof space === 'string') return space === '' ? undefined : sliceString(space, 0, MOST_SPACE)
  if (typeof space !== 'number') return undefined
  const count = leastOf(MOST_SPACE, truncate(space))
  if (1 <= count) return repeatString(' ', count)
  return 0 < space && HAS_EMPTY_GAP ? '' : undefined
}

function readOnBadRow(onBadRow: unknown): OnBadRow | undefined {
  if (onBadRow === undefined || onBadRow === 'throw') return undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  if (typeof onBadRow === 'function') return onBadRow as OnBadRow
  throw invalidType('options.onBadRow', "'throw' or of type function", onBadRow)
}

function noJson(what: string): TypeError {
  const error = new TypeError(`${what} has no JSON: JSON.stringify makes it undefined`)
  return Object.assign(error, { code: 'ERR_INVALID_ARG_VALUE' })
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return hasMethod(value, Symbol.iterator)
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return hasMethod(value, Symbol.asyncIterator)
}

function hasMethod(value: unknown, name: symbol): boolean {
  if (value === null || value === undefined) return false
  return typeof propertyOf(Object(value), name) === 'function'
}
