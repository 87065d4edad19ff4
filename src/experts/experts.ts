/**
 * `decodeExperts` and `concatExperts`: check the arguments, gather the bytes of all turns, and give them to the addon. Small
 * inputs are decoded on the JS thread, large ones in a task.
 */

import { allocate, allocateNow, checkBytes, giveBack, keeperOf, takeAll, utf8Of, type Bytes } from '../runtime/bytes.ts'
import { invalidType, OffloopError, outOfRange } from '../runtime/errors.ts'
import {
  addTo,
  bufferFrom,
  byteLengthOfText,
  execRegExp,
  isArray,
  isUint8Array,
  leastOf,
  lengthOf,
  mostOf,
  sliceString,
} from '../runtime/intrinsics.ts'
import {
  check,
  errorOf,
  ExpertsFill,
  ExpertsFormat,
  ExpertsTurns,
  fillExperts,
  fillExpertsSync,
  InputBytes,
  isFailure,
  scanExperts,
  scanExpertsSync,
  unwrap,
  type ExpertsLayout,
  type Failure,
  type NativeConcatConfig,
  type NativeHints,
} from '../runtime/native.ts'
import {
  type BytesInput,
  type Cancellable,
  choose,
  copyOptions,
  isNothing,
  readBoolean,
  readInteger,
  readSignal,
  tableOf,
} from '../runtime/options.ts'
import { run } from '../runtime/pool.ts'
import { isWide, upToWide } from '../runtime/text.ts'
import { nextTurn } from '../runtime/yield.ts'

export type ExpertsDtype = 'uint8' | 'uint16' | 'int8' | 'int16' | 'int32'

export interface RoutedExperts {
  /** C order, little-endian, shape[0]·shape[1]·shape[2] elements. */
  readonly data: Bytes
  readonly shape: readonly [rows: number, layers: number, topk: number]
  readonly dtype: ExpertsDtype
  /** Position of row 0 among the sample's tokens. */
  readonly start: number
}

/**
 * Every payload in circulation: base64 of a `.npy` file (vLLM), `nrlre1:…` (NeMo-RL), headerless base64 int32 with `layers` and `topk` in
 * the hints (SGLang), bytes of a `.npy` file, objects, and a string that is the JSON text of such an object. In an object, text is base64 unless
 * `encoding` says base85, bytes are raw unless it says otherwise; without dtype it is uint8, int32 for base85 (Python's `base64.b85encode`).
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
  /** Tokens of the sample when this turn ended (prompt + completion). The last one was sampled but never forwarded: rows from position `tokens - 1` on are not routes and are clipped. */
  readonly tokens?: number | undefined
}

export interface ConcatOptions extends Omit<ExpertsHints, 'start'>, Cancellable, BytesInput {
  /** Rows of the result: the sample's token count. Rows past it are clipped. */
  readonly tokens: number
  /** A position that no turn covers (before the last row). A number fills with that value. @default 'throw' */
  readonly gaps?: 'throw' | 'zero' | 'repeat' | number | undefined
  /** The last row, if no turn has it. @default 'zero' */
  readonly lastRow?: 'zero' | 'repeat' | 'throw' | number | undefined
  /** A position that two turns cover. The earlier turn has the routes that its tokens were sampled with. @default 'earlier' */
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
/** Numbers of the dtypes: indexes in `Dtype::ALL` of `crates/experts/src/dtype.rs`. */
const DTYPES: Readonly<Record<string, number>> = tableOf({ uint8: 0, int8: 1, uint16: 2, int16: 3, int32: 4 })
const OVERLAPS = tableOf({ earlier: false, later: true })
const MIXES = tableOf({ throw: false, widen: true })
const FILLS = tableOf({ throw: ExpertsFill.Throw, zero: ExpertsFill.Value, repeat: ExpertsFill.Repeat })
const TEXT_ENCODINGS = tableOf({ base64: ExpertsFormat.Base64, base85: ExpertsFormat.Base85 })
const BYTE_ENCODINGS = tableOf({ ...TEXT_ENCODINGS, raw: ExpertsFormat.Raw })

/** Inputs up to this many bytes block the event loop for less time if they are decoded at once than in a task. */
const AT_ONCE = 256 * 1024
/** Characters that one turn of the loop copies out of V8, in about 0.4 ms. */
const TEXT_TURN = 4 * 1024 * 1024
/** Characters that one call of Node-API copies. */
const TEXT_PART = 1024 * 1024
/** Matches text that can only be the JSON of an object. */
const OBJECT = /^[ \t\n\r]*\{/

export async function decodeExperts(
  wire: ExpertsWire,
  hints?: ExpertsHints & Cancellable & BytesInput,
): Promise<RoutedExperts> {
  const options = copyOptions(hints ?? {}, DECODE_KEYS, 'hints')
  const { transfer, signal } = options
  const config: DecodeExpertsConfig = {
    hints: readHints('hints', options),
    transfer: readBoolean('hints.transfer', transfer, false),
    signal: readSignal(signal),
    chain: undefined,
  }
  const inputs = new TurnGatherer(1, config)
  inputs.addWire(wire, 0)
  // A getter of the payload may have aborted the call.
  config.signal?.throwIfAborted()
  return await convert(inputs, config)
}

/** Decodes every turn and places it by absolute position, in one task: O(bytes), each byte copied once. `null` turns are skipped. */
export async function concatExperts(
  turns: readonly (ExpertsTurn | null)[],
  options: ConcatOptions,
): Promise<RoutedExperts> {
  const config = readConcatConfig(options)
  if (!isArray(turns)) throw invalidType('turns', 'an instance of Array', turns)
  const { length } = turns
  const inputs = new TurnGatherer(length, config)
  for (let index = 0; index < length; index += 1) inputs.addTurn(turns[index], index)
  // A getter of a turn may have aborted the call.
  config.signal?.throwIfAborted()
  return await convert(inputs, config)
}

/** Reads the hints of the lift `{ experts: hints }`. */
export function readLiftHints(name: string, lift: object): NativeHints {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the second copyOptions throws for other types
  const { experts } = copyOptions(lift, LIFT_KEYS, name) as { readonly experts: ExpertsHints }
  return readHints(`${name}.experts`, copyOptions(experts, HINT_KEYS, `${name}.experts`))
}

/** Resolved options of `decodeExperts` and `concatExperts`. */
interface DecodeExpertsConfig {
  readonly hints: NativeHints
  readonly transfer: boolean
  readonly signal: AbortSignal | undefined
  /** Options of `concatExperts`; undefined for one payload, which stays unchanged. */
  readonly chain: NativeConcatConfig | undefined
}

function readHints(name: string, { layers, topk, dtype, start }: ExpertsHints): NativeHints {
  const most = Number.MAX_SAFE_INTEGER
  return {
    layers: readInteger(`${name}.layers`, layers, 0, most),
    topk: readInteger(`${name}.topk`, topk, 0, most),
    dtype: choose<number | undefined>(`${name}.dtype`, dtype, DTYPES, undefined),
    start: readInteger(`${name}.start`, start, 0, most),
  }
}

function readConcatConfig(options: ConcatOptions): DecodeExpertsConfig {
  const { tokens, gaps, lastRow, overlap, mixed, layers, topk, dtype, transfer, signal } = copyOptions(
    options,
    CONCAT_KEYS,
  )
  const rows = readInteger('options.tokens', tokens, 0, Number.MAX_SAFE_INTEGER)
  if (rows === undefined) throw invalidType('options.tokens', 'of type number', tokens)
  const [gapsFill, gapsValue] = readFill('options.gaps', gaps, ExpertsFill.Throw)
  const [lastFill, lastValue] = readFill('options.lastRow', lastRow, ExpertsFill.Value)
  const chain: NativeConcatConfig = {
    tokens: rows,
    gaps: gapsFill,
    gapsValue,
    lastRow: lastFill,
    lastRowValue: lastValue,
    laterWins: choose('options.overlap', overlap, OVERLAPS, false),
    widens: choose('options.mixed', mixed, MIXES, true),
  }
  return {
    hints: readHints('options', { layers, topk, dtype, start: undefined }),
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
 * Resolves the turns, makes memory for the result, decodes. Inputs with `transfer` are only read until the result has its
 * memory, so that a call which rejects before that takes nothing.
 */
async function convert(inputs: TurnGatherer, { hints, signal, chain }: DecodeExpertsConfig): Promise<RoutedExperts> {
  const { source } = inputs
  const turns = inputs.open(hints)
  const atOnce = inputs.textLength + inputs.bytesLength <= AT_ONCE
  let data: Bytes | undefined
  try {
    inputs.gatherBytes()
    // While long text is copied, other code runs; inputs that are taken must not change then.
    if (TEXT_TURN < inputs.textLength) inputs.take()
    while (!inputs.copyText()) {
      // oxlint-disable-next-line no-await-in-loop -- other code runs between two parts
      await nextTurn()
      signal?.throwIfAborted()
    }
    let layout = readPlan(turns.plan(source, chain))
    if (layout === null) {
      inputs.take()
      unwrap(
        atOnce ? scanExpertsSync(turns, source) : await run((stop) => scanExperts(turns, source, stop), { signal }),
      )
      layout = readPlan(turns.plan(source, chain))
    }
    if (layout === null) throw new OffloopError('ERR_OFFLOOP_INTERNAL', 'turns are not resolved after a scan')
    const { size, rows, layers, topk, dtype, start } = layout
    data = (atOnce ? allocateNow : allocate)(size)
    const memory = data
    inputs.take()
    unwrap(
      atOnce
        ? fillExpertsSync(turns, source, memory)
        : await run((stop) => fillExperts(turns, source, memory, stop), { signal }),
    )
    return { data, shape: [rows, layers, topk], dtype: readDtype(dtype), start }
  } catch (error) {
    if (data !== undefined) giveBack(data)
    throw error
  } finally {
    turns.clear()
    source.clear()
    inputs.giveBack()
  }
}

function readDtype(dtype: string): ExpertsDtype {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon wrote it
  return dtype as ExpertsDtype
}

function readPlan(outcome: ExpertsLayout | Failure | null): ExpertsLayout | null {
  if (isFailure(outcome)) throw errorOf(outcome)
  return outcome
}

/** Numbers that describe a turn to the addon; see `ExpertsTurns`. The following constants are indexes of them. */
const NUMBERS = 9
const FORMAT = 0
const SHAPE = 1
const DTYPE = 5
const DECLARED_START = 6
const START = 7
const TOKENS = 8
/** Turns with room at first, if the list is that long: 72 KB. */
const FIRST_TURNS = 1024

/** Gathers the turns of a call for a task. With 1,000 turns, each microsecond spent on one blocks the event loop for 1 ms. */
class TurnGatherer {
  readonly source = new InputBytes()
  /** Characters of all texts. */
  textLength = 0
  /** Bytes of all byte inputs. */
  bytesLength = 0
  /** Turns up to the last one that is not null. */
  #count = 0
  readonly #isChain: boolean
  /** `NUMBERS` numbers of each turn. Grows with the turns that were read, since the length of a list proves nothing. */
  #numbers: Float64Array
  #turns: ExpertsTurns | undefined
  readonly #texts: { readonly text: string; readonly index: number; readonly isUtf8: boolean }[] = []
  /** Index of the text that is copied next. */
  #next = 0
  /** Characters of that text already copied. */
  #copied = 0
  readonly #bytes: Uint8Array[] = []
  /** Turn of each of `#bytes`. */
  readonly #indexes: number[] = []
  /** Memory that goes back when the call ends. */
  readonly #memories: Bytes[] = []
  readonly #transfer: boolean
  #isTaken: boolean

  constructor(length: number, { chain, transfer }: DecodeExpertsConfig) {
    this.#isChain = chain !== undefined
    this.#numbers = numbersOf(leastOf(length, FIRST_TURNS))
    this.#transfer = transfer
    this.#isTaken = !transfer
  }

  addTurn(turn: unknown, index: number): void {
    if (turn === null) return
    if (typeof turn !== 'object') throw invalidType(`turns[${index}]`, 'an object or null', turn)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every field is unknown until it is checked
    const { experts, start, tokens } = turn as Partial<Record<keyof ExpertsTurn, unknown>>
    this.addWire(experts, index)
    if (start !== undefined) this.#setNumber(index, START, this.#checkNumber('start', start, index))
    if (tokens !== undefined) this.#setNumber(index, TOKENS, this.#checkNumber('tokens', tokens, index))
  }

  addWire(wire: unknown, index: number): void {
    this.#makeRoom(index + 1)
    if (typeof wire === 'string') this.#addText(wire, ExpertsFormat.Text, index)
    else if (isUint8Array(wire)) this.#addBytes(wire, ExpertsFormat.File, index)
    else if (typeof wire === 'object' && wire !== null) this.#addObject(wire, index)
    else throw invalidType(this.#nameOf(index), 'a string, a Uint8Array or an object', wire)
  }

  #makeRoom(count: number): void {
    this.#count = count
    const numbers = this.#numbers
    if (count * NUMBERS <= numbers.length) return
    this.#numbers = numbersOf(mostOf(count, (2 * numbers.length) / NUMBERS))
    this.#numbers.set(numbers)
  }

  #addObject(wire: Partial<Record<string, unknown>>, index: number): void {
    const { data, shape, start, dtype, encoding } = wire
    if (!isNothing(shape)) this.#setShape(shape, index)
    if (!isNothing(start)) this.#setNumber(index, DECLARED_START, start)
    if (!isNothing(dtype)) this.#setNumber(index, DTYPE, this.#readDtype(dtype, index))
    const isText = typeof data === 'string'
    const format = isNothing(encoding)
      ? isText
        ? ExpertsFormat.Base64
        : ExpertsFormat.Raw
      : this.#readEncoding(encoding, isText ? TEXT_ENCODINGS : BYTE_ENCODINGS, index)
    if (isText) this.#addText(data, format, index)
    else if (isUint8Array(data)) this.#addBytes(data, format, index)
    else throw this.#malformed('its data is neither text nor bytes', index)
  }

  #addText(text: string, format: ExpertsFormat, index: number): void {
    const isAlone = format === ExpertsFormat.Text
    const isUtf8 = isAlone && execRegExp(OBJECT, text) !== null && isWide(text)
    const copied = isUtf8 ? text : upToWide(text)
    this.#setNumber(index, FORMAT, isAlone && !isUtf8 ? ExpertsFormat.Latin1 : format)
    this.#texts.push({ text: copied, index, isUtf8 })
    this.textLength += copied.length
  }

  #addBytes(bytes: Uint8Array, format: ExpertsFormat, index: number): void {
    this.#setNumber(index, FORMAT, format)
    this.#bytes.push(bytes)
    this.#indexes.push(index)
  }

  /** NaN means absent. A value that is not a number is stored as −1, which the addon rejects. */
  #setNumber(index: number, field: number, value: unknown): void {
    this.#numbers[index * NUMBERS + field] = typeof value === 'number' && !Number.isNaN(value) ? value : -1
  }

  #setShape(shape: unknown, index: number): void {
    if (!isArray(shape)) {
      this.#setNumber(index, SHAPE, 0)
      return
    }
    this.#setNumber(index, SHAPE, shape.length)
    for (let dimension = 0; dimension < 3; dimension += 1)
      this.#setNumber(index, SHAPE + 1 + dimension, shape[dimension])
  }

  #readDtype(dtype: unknown, index: number): number {
    const number = typeof dtype === 'string' ? DTYPES[dtype] : undefined
    if (number !== undefined) return number
    throw this.#malformed(
      typeof dtype === 'string' ? `its dtype is ${JSON.stringify(dtype)}` : 'its dtype is no text',
      index,
    )
  }

  #readEncoding(encoding: unknown, formats: typeof TEXT_ENCODINGS, index: number): ExpertsFormat {
    const format = typeof encoding === 'string' ? formats[encoding] : undefined
    if (format === undefined) throw this.#malformed('its encoding is none that its data can have', index)
    return format
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

  /** Gives the numbers to the addon, once all turns are added. No code of the caller runs after this. */
  open(hints: NativeHints): ExpertsTurns {
    for (const [at, bytes] of this.#bytes.entries()) {
      const size = lengthOf(bytes)
      if (size === 0) checkBytes(this.#nameOf(this.#indexes[at] ?? 0), bytes)
      this.bytesLength += size
    }
    this.#turns = new ExpertsTurns(hints, this.#numbers.subarray(0, this.#count * NUMBERS), this.#isChain)
    return this.#turns
  }

  /** Copies the byte inputs; with `transfer` only resolves their headers. */
  gatherBytes(): void {
    // One block for all: gathered in pieces, they would touch more fresh pages.
    const copied = this.textLength + this.#texts.length + (this.#transfer ? 0 : this.bytesLength)
    if (copied !== 0) check(this.source.reserve(copied))
    if (this.#transfer) check(this.#turns?.announce(this.#byTurn(this.#bytes)) ?? null)
    else for (const at of this.#bytes.keys()) this.#copy(at)
  }

  /** Takes the inputs of a call with `transfer`, once. Copies those that cannot be taken. */
  take(): void {
    if (this.#isTaken) return
    this.#isTaken = true
    const lengths = this.#byTurn(this.#bytes.map(lengthOf)).map(Number)
    const taken = takeAll(this.#bytes)
    const memories = this.#byTurn(taken)
    this.#turns?.take(this.source, keeperOf(memories), memories, lengths)
    for (let at = 0; at < taken.length; at += 1) {
      const memory = taken[at] ?? null
      if (memory === null) this.#copy(at)
      else addTo(this.#memories, bufferFrom(memory))
    }
  }

  /** Gives memory back that was taken. No task reads it any more. */
  giveBack(): void {
    for (let index = 0; index < this.#memories.length; index += 1) {
      const memory = this.#memories[index]
      if (memory !== undefined) giveBack(memory)
    }
  }

  /** Returns one item for each turn. */
  #byTurn<T>(ofBytes: readonly (T | null)[]): (T | null)[] {
    const places: (T | null)[] = []
    let at = 0
    for (let index = 0; index < this.#count; index += 1) {
      const isOfTurn = this.#indexes[at] === index
      addTo(places, isOfTurn ? (ofBytes[at] ?? null) : null)
      if (isOfTurn) at += 1
    }
    return places
  }

  /** Copies as much text as one turn of the loop should; strings cannot change meanwhile. Returns true when all is copied. */
  copyText(): boolean {
    for (let left = TEXT_TURN; this.#next < this.#texts.length && 0 < left;) {
      const { text = '', index = 0, isUtf8 = false } = this.#texts[this.#next] ?? {}
      const part = isUtf8 ? text : sliceString(text, this.#copied, this.#copied + TEXT_PART)
      if (isUtf8) this.#addMemory(utf8Of(part, allocate))
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

  #addMemory(memory: Bytes): void {
    this.source.take(memory)
    addTo(this.#memories, memory)
  }

  #copy(at: number): void {
    const [bytes, index] = [this.#bytes[at], this.#indexes[at]]
    if (bytes === undefined || index === undefined) return
    check(this.source.copy(bytes))
    this.#turns?.put(index, this.source, lengthOf(bytes))
  }
}

/** Makes the numbers of `turns` turns, all absent. */
function numbersOf(turns: number): Float64Array {
  try {
    return new Float64Array(turns * NUMBERS).fill(Number.NaN)
  } catch (cause) {
    throw new OffloopError('ERR_OFFLOOP_TOO_LARGE', `no memory for the numbers of ${turns} turns`, { cause })
  }
}
