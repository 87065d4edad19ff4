/** Routed experts: what came is told apart and checked here and in the addon; a task decodes every turn to its place. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { allocate, allocateNow, checkBytes, keeperOf, takeAll, utf8Of, type Bytes } from './bytes.ts'
import { invalidType, OffloopError, outOfRange } from './errors.ts'
import { byteLengthOfText, execRegExp, isArray, isUint8Array, lengthOf, propertyOf, sliceString } from './intrinsics.ts'
import {
  check,
  errorOf,
  ExpertsDtype as Dtype,
  ExpertsFill,
  ExpertsForm,
  ExpertsTurns,
  fillExperts,
  fillExpertsSync,
  lookAtExperts,
  lookAtExpertsSync,
  Source,
  unwrap,
  type ExpertsRules,
  type Failure,
  type NativeHints,
  type Planned,
} from './native.ts'
import {
  checkKeys,
  choose,
  readBoolean,
  readInteger,
  readSignal,
  tableOf,
  type BytesInput,
  type Cancellable,
} from './options.ts'
import { run } from './pool.ts'
import { isWide, upToWide } from './text.ts'

export type ExpertsDtype = 'uint8' | 'uint16' | 'int8' | 'int16' | 'int32'

export interface RoutedExperts {
  /** C-order, little-endian, shape[0]·shape[1]·shape[2] elements. */
  readonly data: Bytes
  readonly shape: readonly [rows: number, layers: number, topk: number]
  readonly dtype: ExpertsDtype
  /** Position of row 0 among the sample's tokens. */
  readonly start: number
}

/**
 * Every form in circulation: base64 of a `.npy` file (vLLM), `nrlre1:…` (NeMo-RL), headerless base64 int32 with `layers` and `topk` in
 * the hints (SGLang), bytes of a `.npy` file, objects, and a string that is the JSON text of such an object. In an object, text is base64 unless `encoding` says base85, bytes are raw
 * unless it says otherwise; dtype absent is uint8, int32 for base85 (Python's `base64.b85encode`).
 */
export type ExpertsWire =
  | string
  | Uint8Array
  | {
      readonly data: string | Uint8Array
      readonly shape?: readonly number[] | undefined
      readonly start?: number | null | undefined
      readonly dtype?: string | null | undefined
      readonly encoding?: 'base64' | 'base85' | 'raw' | undefined
    }

export interface ExpertsHints {
  readonly layers?: number | undefined
  readonly topk?: number | undefined
  readonly dtype?: ExpertsDtype | undefined
  readonly start?: number | undefined
}

export interface ExpertsTurn {
  readonly experts: ExpertsWire | RoutedExperts
  /** Position of its first row. @default what the payload says, else 0 */
  readonly start?: number | undefined
  /** Tokens of the sample when this turn ended (prompt + completion). Its last one was sampled, never forwarded: rows from position `tokens - 1` on are not routes and are clipped. */
  readonly tokens?: number | undefined
}

export interface ConcatOptions extends Omit<ExpertsHints, 'start'>, Cancellable, BytesInput {
  /** Rows of the result: the sample's token count. Rows past it are clipped. */
  readonly tokens: number
  /** A position no turn covers (before the last row); a number fills with that value. @default 'throw' */
  readonly gaps?: 'throw' | 'zero' | 'repeat' | number | undefined
  /** The last row, where no turn has it. @default 'zero' */
  readonly lastRow?: 'zero' | 'repeat' | 'throw' | number | undefined
  /** A position two turns cover. The earlier turn holds the routes its tokens were sampled with. @default 'earlier' */
  readonly overlap?: 'earlier' | 'later' | undefined
  /** Turns of different dtypes: widen to the smallest dtype that holds both, or reject. @default 'widen' */
  readonly mixed?: 'widen' | 'throw' | undefined
}

const LIFT_KEYS = tableOf({ experts: true })
const HINT_KEYS = tableOf({ layers: true, topk: true, dtype: true, start: true })
const DECODE_KEYS = tableOf({ ...HINT_KEYS, transfer: true, signal: true })
const CONCAT_KEYS = tableOf({
  layers: true,
  topk: true,
  dtype: true,
  tokens: true,
  gaps: true,
  lastRow: true,
  overlap: true,
  mixed: true,
  transfer: true,
  signal: true,
})
const DTYPES: Readonly<Record<string, Dtype>> = tableOf({
  uint8: Dtype.Uint8,
  uint16: Dtype.Uint16,
  int8: Dtype.Int8,
  int16: Dtype.Int16,
  int32: Dtype.Int32,
})
const DTYPE_NAMES: Readonly<Record<Dtype, ExpertsDtype>> = {
  [Dtype.Uint8]: 'uint8',
  [Dtype.Uint16]: 'uint16',
  [Dtype.Int8]: 'int8',
  [Dtype.Int16]: 'int16',
  [Dtype.Int32]: 'int32',
}
const OVERLAPS = tableOf({ earlier: false, later: true })
const MIXES = tableOf({ throw: false, widen: true })
const FILLS = tableOf({ throw: ExpertsFill.Throw, zero: ExpertsFill.Value, repeat: ExpertsFill.Repeat })
const TEXT_ENCODINGS = tableOf({ base64: ExpertsForm.Base64, base85: ExpertsForm.Base85 })
const BYTE_ENCODINGS = tableOf({ ...TEXT_ENCODINGS, raw: ExpertsForm.Raw })

/** Bytes of input up to which decoding them at once costs the thread less than a task. */
const AT_ONCE = 256 * 1024
/** Characters of text that are copied out of V8 in one turn of the loop, some 0.4 ms. */
const TEXT_TURN = 4 * 1024 * 1024
/** Of which so many are copied at once. */
const TEXT_PART = 1024 * 1024
/** Text that can only be JSON. */
const OBJECT = /^[ \t\n\r]*\{/

export async function decodeExperts(
  wire: ExpertsWire,
  hints?: ExpertsHints & Cancellable & BytesInput,
): Promise<RoutedExperts> {
  const options = hints ?? {}
  checkKeys(options, DECODE_KEYS, 'hints')
  const { transfer, signal } = options
  const known = readHints('hints', options)
  const rules: Rules = {
    hints: known,
    transfer: readBoolean('hints.transfer', transfer, false),
    signal: readSignal(signal),
    chain: undefined,
  }
  const inputs = new Inputs(1, rules)
  inputs.addWire(wire, 0)
  return await convert(inputs, rules)
}

/** Decodes and places every turn by absolute position in one task: O(bytes), each byte copied once. `null` turns are skipped. */
export async function concatExperts(
  turns: readonly (ExpertsTurn | null)[],
  options: ConcatOptions,
): Promise<RoutedExperts> {
  const rules = readRules(options)
  if (!isArray(turns)) throw invalidType('turns', 'an instance of Array', turns)
  const { length } = turns
  const inputs = new Inputs(length, rules)
  for (let index = 0; index < length; index += 1) inputs.addTurn(turns[index], index)
  // A getter in a turn may have aborted it.
  rules.signal?.throwIfAborted()
  return await convert(inputs, rules)
}

/** What the lift `{ experts: hints }` says. */
export function readLiftHints(name: string, lift: object): NativeHints {
  checkKeys(lift, LIFT_KEYS, name)
  const hints: unknown = propertyOf(lift, 'experts')
  checkKeys(hints, HINT_KEYS, `${name}.experts`)
  // That it is an object was just checked.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return readHints(`${name}.experts`, hints as ExpertsHints)
}

interface Rules {
  readonly hints: NativeHints
  readonly transfer: boolean
  readonly signal: AbortSignal | undefined
  /** How turns become one sample; undefined where there is one, which stays as it is. */
  readonly chain: ExpertsRules | undefined
}

function readHints(name: string, { layers, topk, dtype, start }: ExpertsHints): NativeHints {
  const most = Number.MAX_SAFE_INTEGER
  return {
    layers: readInteger(`${name}.layers`, layers, 0, most),
    topk: readInteger(`${name}.topk`, topk, 0, most),
    dtype: choose<Dtype | undefined>(`${name}.dtype`, dtype, DTYPES, undefined),
    start: readInteger(`${name}.start`, start, 0, most),
  }
}

function readRules(options: ConcatOptions): Rules {
  checkKeys(options, CONCAT_KEYS)
  const { tokens, gaps, lastRow, overlap, mixed, layers, topk, dtype, transfer, signal } = options
  const rows = readInteger('options.tokens', tokens, 0, Number.MAX_SAFE_INTEGER)
  if (rows === undefined) throw invalidType('options.tokens', 'of type number', tokens)
  const [gapsFill, gapsValue] = readFill('options.gaps', gaps, ExpertsFill.Throw)
  const [lastFill, lastValue] = readFill('options.lastRow', lastRow, ExpertsFill.Value)
  const chain: ExpertsRules = {
    tokens: rows,
    gaps: gapsFill,
    gapsValue,
    lastRow: lastFill,
    lastRowValue: lastValue,
    laterWins: choose('options.overlap', overlap, OVERLAPS, false),
    widens: choose('options.mixed', mixed, MIXES, true),
  }
  return {
    hints: readHints('options', { layers, topk, dtype }),
    transfer: readBoolean('options.transfer', transfer, false),
    signal: readSignal(signal),
    chain,
  }
}

function readFill(name: string, value: unknown, byDefault: ExpertsFill): [fill: ExpertsFill, value: number] {
  if (typeof value !== 'number') return [choose(name, value, FILLS, byDefault), 0]
  if (!Number.isSafeInteger(value)) throw outOfRange(name, 'an integer', value)
  return [ExpertsFill.Value, value]
}

/**
 * Checks everything, makes memory for the result, hands the inputs over, decodes. Inputs that are handed over are only
 * looked at before the result has its memory, so that a call that is refused then takes nothing.
 */
async function convert(inputs: Inputs, { hints, signal, chain }: Rules): Promise<RoutedExperts> {
  const { source } = inputs
  const turns = inputs.open(hints)
  const atOnce = inputs.textLength + inputs.bytesLength <= AT_ONCE
  try {
    inputs.gatherBytes()
    // The loop turns while long text is copied, and what is handed over may not change then.
    if (TEXT_TURN < inputs.textLength) inputs.take()
    while (!inputs.copyText()) {
      // oxlint-disable-next-line no-await-in-loop
      await nextTurn()
      signal?.throwIfAborted()
    }
    let planned = readPlan(turns.plan(source, chain))
    if (planned === null) {
      inputs.take()
      unwrap(
        atOnce ? lookAtExpertsSync(turns, source) : await run((stop) => lookAtExperts(turns, source, stop), { signal }),
      )
      planned = readPlan(turns.plan(source, chain))
    }
    if (planned === null) throw new OffloopError('ERR_OFFLOOP_INTERNAL', 'turns are not known after a look at them')
    const { size, rows, layers, topk, dtype, start } = planned
    const data = (atOnce ? allocateNow : allocate)(size)
    inputs.take()
    unwrap(
      atOnce
        ? fillExpertsSync(turns, source, data)
        : await run((stop) => fillExperts(turns, source, data, stop), { signal }),
    )
    return { data, shape: [rows, layers, topk], dtype: DTYPE_NAMES[dtype], start }
  } finally {
    turns.clear()
    source.clear()
  }
}

function readPlan(outcome: Planned | Failure | null): Planned | null {
  if (outcome !== null && 'code' in outcome) throw errorOf(outcome)
  return outcome
}

/** What the addon is told of each turn: form, dimensions of the shape and the first three, dtype, start; start, tokens. */
const NUMBERS = 9
const SHAPE = 1
const DTYPE = 5
const TOLD_START = 6
const START = 7
const TOKENS = 8

/** What is to be decoded, on its way to a task. Of 1,000 turns, each microsecond is one of a millisecond. */
class Inputs {
  readonly source = new Source()
  /** Characters. */
  textLength = 0
  /** Bytes of the others. */
  bytesLength = 0
  readonly #count: number
  readonly #isChain: boolean
  readonly #numbers: Float64Array
  #turns: ExpertsTurns | undefined
  readonly #texts: { readonly text: string; readonly index: number; readonly isUtf8: boolean }[] = []
  /** The text that is copied next, and how much of it was. */
  #next = 0
  #copied = 0
  readonly #bytes: Uint8Array[] = []
  /** The turn of each of them. */
  readonly #indexes: number[] = []
  readonly #transfer: boolean
  #isTaken: boolean

  constructor(count: number, { chain, transfer }: Rules) {
    this.#count = count
    this.#isChain = chain !== undefined
    this.#numbers = new Float64Array(count * NUMBERS).fill(Number.NaN)
    this.#transfer = transfer
    this.#isTaken = !transfer
  }

  addTurn(turn: unknown, index: number): void {
    if (turn === null) return
    if (typeof turn !== 'object') throw invalidType(`turns[${index}]`, 'an object or null', turn)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const { experts, start, tokens } = turn as Partial<Record<keyof ExpertsTurn, unknown>>
    this.addWire(experts, index)
    if (start !== undefined) this.#tell(index, START, this.#checkNumber('start', start, index))
    if (tokens !== undefined) this.#tell(index, TOKENS, this.#checkNumber('tokens', tokens, index))
  }

  addWire(wire: unknown, index: number): void {
    if (typeof wire === 'string') this.#addText(wire, ExpertsForm.Text, index)
    else if (isUint8Array(wire)) this.#addBytes(wire, ExpertsForm.File, index)
    else if (typeof wire === 'object' && wire !== null) this.#addObject(wire, index)
    else throw invalidType(this.#nameOf(index), 'a string, a Uint8Array or an object', wire)
  }

  #addObject(wire: Partial<Record<string, unknown>>, index: number): void {
    const { data, shape, start, dtype, encoding } = wire
    if (!isNothing(shape)) this.#tellShape(shape, index)
    if (!isNothing(start)) this.#tell(index, TOLD_START, start)
    if (!isNothing(dtype)) this.#tell(index, DTYPE, this.#readDtype(dtype, index))
    const isText = typeof data === 'string'
    const form = isNothing(encoding)
      ? isText
        ? ExpertsForm.Base64
        : ExpertsForm.Raw
      : this.#readEncoding(encoding, isText ? TEXT_ENCODINGS : BYTE_ENCODINGS, index)
    if (isText) this.#addText(data, form, index)
    else if (isUint8Array(data)) this.#addBytes(data, form, index)
    else throw this.#malformed('its data is neither text nor bytes', index)
  }

  #addText(text: string, form: ExpertsForm, index: number): void {
    const isAlone = form === ExpertsForm.Text
    const isUtf8 = isAlone && execRegExp(OBJECT, text) !== null && isWide(text)
    const copied = isUtf8 ? text : upToWide(text)
    this.#tell(index, 0, isAlone && !isUtf8 ? ExpertsForm.Latin1 : form)
    this.#texts.push({ text: copied, index, isUtf8 })
    this.textLength += copied.length
  }

  #addBytes(bytes: Uint8Array, form: ExpertsForm, index: number): void {
    this.#tell(index, 0, form)
    this.#bytes.push(bytes)
    this.#indexes.push(index)
  }

  /** What is no number counts nothing, which the addon says; NaN is what was not told. */
  #tell(index: number, place: number, value: unknown): void {
    this.#numbers[index * NUMBERS + place] = typeof value === 'number' && !Number.isNaN(value) ? value : -1
  }

  #tellShape(shape: unknown, index: number): void {
    if (!isArray(shape)) {
      this.#tell(index, SHAPE, 0)
      return
    }
    this.#tell(index, SHAPE, shape.length)
    for (let dimension = 0; dimension < 3; dimension += 1) this.#tell(index, SHAPE + 1 + dimension, shape[dimension])
  }

  #readDtype(dtype: unknown, index: number): Dtype {
    const known = typeof dtype === 'string' ? DTYPES[dtype] : undefined
    if (known !== undefined) return known
    throw this.#malformed(
      typeof dtype === 'string' ? `its dtype is ${JSON.stringify(dtype)}` : 'its dtype is no text',
      index,
    )
  }

  #readEncoding(encoding: unknown, known: typeof TEXT_ENCODINGS, index: number): ExpertsForm {
    const form = typeof encoding === 'string' ? known[encoding] : undefined
    if (form === undefined) throw this.#malformed('its encoding is none that its data can have', index)
    return form
  }

  #checkNumber(name: string, value: unknown, index: number): unknown {
    if (typeof value !== 'number') throw invalidType(`turns[${index}].${name}`, 'of type number', value)
    return value
  }

  #nameOf(index: number): string {
    return this.#isChain ? `turns[${index}].experts` : 'wire'
  }

  #malformed(what: string, index: number): OffloopError {
    const [subject, turn] = this.#isChain ? [`turn ${index}`, index] : ['routed experts', undefined]
    return new OffloopError('ERR_OFFLOOP_EXPERTS', `${subject}: ${what}`, { turn })
  }

  /** Once all are added: no code of the caller's runs from here on. */
  open(hints: NativeHints): ExpertsTurns {
    for (const [at, bytes] of this.#bytes.entries()) {
      const size = lengthOf(bytes)
      if (size === 0) checkBytes(this.#nameOf(this.#indexes[at] ?? 0), bytes)
      this.bytesLength += size
    }
    this.#turns = new ExpertsTurns(hints, this.#numbers, this.#isChain)
    return this.#turns
  }

  /** Copies them; or only looks at those that are to be handed over. */
  gatherBytes(): void {
    // In one piece: what is gathered piece by piece has more pages that are touched first.
    const copied = this.textLength + this.#texts.length + (this.#transfer ? 0 : this.bytesLength)
    if (copied !== 0) check(this.source.reserve(copied))
    if (this.#transfer) check(this.#turns?.announce(this.#inPlaces(this.#bytes)) ?? null)
    else for (const at of this.#bytes.keys()) this.#copy(at)
  }

  /** What is to be handed over, once. */
  take(): void {
    if (this.#isTaken) return
    this.#isTaken = true
    const taken = takeAll(this.#bytes)
    const memories = this.#inPlaces(taken)
    this.#turns?.take(this.source, keeperOf(memories), memories)
    for (let at = 0; at < taken.length; at += 1) if (taken[at] === null) this.#copy(at)
  }

  /** One for each turn. */
  #inPlaces<T>(ofBytes: readonly (T | null)[]): (T | null)[] {
    if (ofBytes.length === this.#count) return [...ofBytes]
    const places = Array.from<T | null>({ length: this.#count }).fill(null)
    for (let at = 0; at < ofBytes.length; at += 1) places[this.#indexes[at] ?? 0] = ofBytes[at] ?? null
    return places
  }

  /** Copies as much text as one turn of the loop should, since strings cannot change. True when that is all. */
  copyText(): boolean {
    for (let left = TEXT_TURN; this.#next < this.#texts.length && 0 < left;) {
      const { text = '', index = 0, isUtf8 = false } = this.#texts[this.#next] ?? {}
      const part = isUtf8 ? text : sliceString(text, this.#copied, this.#copied + TEXT_PART)
      if (isUtf8) this.source.take(utf8Of(part, allocate))
      else check(this.source.copyText(part))
      this.#copied += part.length
      left -= part.length
      if (this.#copied < text.length) continue
      this.#turns?.put(index, this.source, isUtf8 ? byteLengthOfText(text) : text.length)
      this.#next += 1
      this.#copied = 0
    }
    return this.#next === this.#texts.length
  }

  #copy(at: number): void {
    const [bytes, index] = [this.#bytes[at], this.#indexes[at]]
    if (bytes === undefined || index === undefined) return
    check(this.source.copy(bytes))
    this.#turns?.put(index, this.source, lengthOf(bytes))
  }
}

function isNothing(value: unknown): value is null | undefined {
  return value === undefined || value === null
}
