/**
 * `parse` and `split`: JSON in. Two tasks validate a body, lift the heavy values out of it and write the rest; the JS
 * thread makes the memory between them and gives the rest to JSON.parse. `src/index.ts` exports both functions.
 */

import {
  allocate,
  allocateNow,
  checkBytes,
  checkSize,
  gather,
  gatherBytes,
  giveBack,
  makeMemory,
  resultOf,
  type Body,
  type Bytes,
  Input,
} from '../runtime/bytes.ts'
import { segmentOf } from '../capture/pointer.ts'
import { invalidType, invalidValue, OffloopError } from '../runtime/errors.ts'
import {
  addTo,
  bufferOf,
  byteLengthOfText,
  isArrayBuffer,
  isUint8Array,
  isUtf8,
  lengthOf,
  parseJson,
  partOf,
  stringifyJson,
  toUtf8,
} from '../runtime/intrinsics.ts'
import type { ExpertsDtype, RoutedExperts } from '../experts/experts.ts'
import {
  fillBody,
  fillBodySync,
  type InputBytes,
  type LiftPointers,
  scanBody,
  scanBodySync,
  unwrap,
  type ScannedBody,
} from '../runtime/native.ts'
import {
  ARRAYS,
  compile,
  NO_CONFIG,
  PARSE_KEYS,
  readConfig,
  SPLIT_KEYS,
  type ElementType,
  type Lifted,
  type LiftKind,
  type NumberArray,
  type ParseConfig,
  type ParseOptions,
  type RestUse,
  type SplitOptions,
} from './config.ts'
import { liftAll, readPatterns } from './lift.ts'
import { copyOptions, withoutPrototype } from '../runtime/options.ts'
import { ownTurn } from '../runtime/yield.ts'
import { run } from '../runtime/pool.ts'

export interface SplitResult {
  /** The body with each lifted value replaced: still JSON, ready to forward or parse. */
  readonly json: Bytes
  readonly lifted: readonly { readonly pointer: string; readonly value: Lifted }[]
}

/** Bodies up to this size block the event loop for less time when they are parsed at once than as tasks. */
const AT_ONCE = 32 * 1024

/**
 * `JSON.parse` of the body's text, with the lifted values made off the JS thread and put in their places. Accepts exactly what
 * `JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body))` accepts. The last of duplicate keys wins, lifted or not.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller names the type of the body, as with JSON.parse
export async function parse<T = unknown>(body: Body, options?: ParseOptions): Promise<T> {
  const config = options === undefined ? NO_CONFIG : readConfig(copyOptions(options, PARSE_KEYS))
  const small = parseSmall(body, config)
  if (small !== undefined) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller names the type
    return small as T
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller names the type
  return join(await takeApart(body, config, REST_TEXT)) as T
}

/** Like `parse`, for programs that forward bodies or parse them elsewhere. */
export async function split(body: Body, options: SplitOptions): Promise<SplitResult> {
  const { config, form } = readSplit(copyOptions(options, SPLIT_KEYS))
  return splitResultOf(await takeApart(body, config, form))
}

function readSplit(own: SplitOptions): { readonly config: ParseConfig; readonly form: RestForm<Bytes> } {
  const config = readConfig(own)
  if (own.lift === undefined) throw invalidType('options.lift', 'of type object', undefined)
  const { replace = 'null' } = own
  if (typeof replace === 'function') return { config, form: new RestBytes(replace) }
  if (replace !== 'null') throw invalidValue('options.replace', "must be 'null' or a function", replace)
  return { config, form: REST_BYTES }
}

/** Options of a body that is gathered elsewhere, resolved before the body is there. */
export interface InputPlan<R> {
  readonly config: ParseConfig
  readonly lifts: LiftPointers
  readonly form: RestForm<R>
}

/** Resolves the options of `parseInput`. Throws what `parse` rejects with. */
export function planParse(options: Omit<ParseOptions, 'transfer' | 'maxBytes'>): InputPlan<string> {
  const config = readConfig(withoutPrototype({ ...options, transfer: undefined, maxBytes: undefined }))
  return { config, lifts: compile(config, REST_TEXT), form: REST_TEXT }
}

/** Like `planParse`, for `splitInput`. */
export function planSplit(options: Omit<SplitOptions, 'transfer' | 'maxBytes'>): InputPlan<Bytes> {
  const { config, form } = readSplit(withoutPrototype({ ...options, transfer: undefined, maxBytes: undefined }))
  return { config, lifts: compile(config, form), form }
}

/** Parses a body that was gathered elsewhere. The tasks give its memory back. */
export async function parseInput(source: InputBytes, plan: InputPlan<string>, signal?: AbortSignal): Promise<unknown> {
  return join(await takeInputApart(source, plan, signal))
}

/** Like `parseInput`, for `split`. */
export async function splitInput(
  source: InputBytes,
  plan: InputPlan<Bytes>,
  signal?: AbortSignal,
): Promise<SplitResult> {
  return splitResultOf(await takeInputApart(source, plan, signal))
}

/** An event of a stream. */
export interface ParsedEvent {
  readonly event: string
  readonly id: string
  readonly data: unknown
}

/** Descriptions of an event without data, and of the one that ends the stream. */
const NO_DATA = '0'
const LAST = '1'

/** Parses an event. Returns null for one without data, and undefined for the one that ends the stream. */
export async function parseEvent(source: InputBytes, plan: InputPlan<string>): Promise<ParsedEvent | null | undefined> {
  const input = new Input(source)
  const atOnce = source.length <= AT_ONCE
  const scanned = await scanInput(input, plan, atOnce)
  const text = scanned.takePlan()
  if (text === NO_DATA || text === LAST) {
    input.end()
    return text === LAST ? undefined : null
  }
  const liftPlan = readPlan(text)
  const data = join(await fillInput({ input, scanned, plan: liftPlan }, plan, atOnce))
  return { event: liftPlan.name, id: liftPlan.id, data }
}

/** Parses bytes with options that were resolved before. With `transfer`, large bytes are taken. */
export async function parsePlanned(bytes: Bytes, plan: InputPlan<string>): Promise<unknown> {
  const { config } = plan
  const isSmall = lengthOf(bytes) <= AT_ONCE
  const small = isSmall ? parseSmall(bytes, { ...config, transfer: false }) : undefined
  if (small !== undefined) return small
  return join(await takeApartFrom(gatherBytes(bytes, config.transfer && !isSmall), plan, isSmall))
}

async function takeInputApart<R>(
  source: InputBytes,
  { config, lifts, form }: InputPlan<R>,
  signal: AbortSignal | undefined,
): Promise<BodyParts<R>> {
  return await takeApartFrom(
    new Input(source),
    { config: { ...config, signal }, lifts, form },
    source.length <= AT_ONCE,
  )
}

function splitResultOf({ rest: json, pointers, values }: BodyParts<Bytes>): SplitResult {
  const lifted: { readonly pointer: string; readonly value: Lifted }[] = []
  for (const [index, pointer] of pointers.entries()) addTo(lifted, { pointer, value: values[index] ?? null })
  return { json, lifted }
}

/** Returns the JSON Pointers of the values. Those of one container share its text, which V8 does not copy. */
function pointersOf({ containers, lifts }: LiftPlan): string[] {
  // Number 0 holds the root, whose pointer is empty.
  const pointers: (string | undefined)[] = [undefined]
  const behind = (container: number, key: PathKey): string => {
    const outer = pointers[container]
    return outer === undefined ? '' : `${outer}/${segmentOf(key)}`
  }
  for (let index = 0; index < containers.length; index += 2) {
    addTo(pointers, behind(Number(containers[index]), containers[index + 1] ?? ''))
  }
  return lifts.map(([container, key]) => behind(container, key))
}

/** The rest of a body and the values that were lifted out of it. */
interface BodyParts<R> {
  readonly rest: R
  readonly plan: LiftPlan
  /** Pointers of the values, for a rest of bytes. */
  readonly pointers: readonly string[]
  /** In the order of the plan. */
  readonly values: readonly Lifted[]
}

/** Form of the rest: a string that is made natively, or bytes. */
interface RestForm<R> extends RestUse {
  /** Returns the JSON that replaces each value; undefined for null. Runs code of the caller. */
  replacements(pointers: readonly string[]): string[] | undefined
  /** Allocates the memory of the rest. */
  allocate(size: number, make: (size: number) => Bytes): Bytes | null
  read(memory: Bytes | null, scanned: ScannedBody, size: number): R | Promise<R>
}

/** The rest as bytes, with what a function returns in the place of each value. */
class RestBytes implements RestForm<Bytes> {
  readonly isText = false
  readonly #replace: ((index: number, pointer: string) => unknown) | undefined

  constructor(replace?: (index: number, pointer: string) => unknown) {
    this.#replace = replace
  }

  replacements(pointers: readonly string[]): string[] | undefined {
    const replace = this.#replace
    if (replace === undefined) return undefined
    const texts: string[] = []
    for (const [index, pointer] of pointers.entries()) {
      const text = replace(index, pointer)
      if (typeof text !== 'string') throw invalidType('the result of options.replace', 'of type string', text)
      addTo(texts, stringifyJson(text))
    }
    return texts
  }

  allocate(size: number, make: (size: number) => Bytes): Bytes {
    return make(size)
  }

  read(memory: Bytes | null): Bytes {
    return memory ?? allocate(0)
  }
}

const REST_BYTES = new RestBytes()

const REST_TEXT: RestForm<string> = {
  isText: true,
  replacements: () => undefined,
  allocate: () => null,
  read(_memory, scanned, size) {
    // JSON.parse of a long rest blocks the event loop: each body waits for its own turn.
    return size <= AT_ONCE ? takeRest(scanned, size) : ownTurn().then(() => takeRest(scanned, size))
  },
}

function takeRest(scanned: ScannedBody, size: number): string {
  const text = scanned.takeRest()
  if (text !== null) return text
  const message = `what is left of the body, ${size} bytes, is longer than a string can be`
  throw new OffloopError('ERR_OFFLOOP_TOO_LARGE', message)
}

/** Parses a small body without the addon. Returns undefined where the addon must parse it, or say what is invalid. */
function parseSmall(body: unknown, config: ParseConfig): unknown {
  const { pointers, kinds, longestString, maxBytes, transfer, signal } = config
  const isSmall = isUint8Array(body) && lengthOf(body) <= AT_ONCE && lengthOf(body) <= maxBytes
  if (!isSmall || transfer || longestString < lengthOf(body) || !isArrayBuffer(bufferOf(body))) return undefined
  signal?.throwIfAborted()
  const patterns = readPatterns(pointers, kinds)
  if (patterns === undefined || !isUtf8(checkBytes('body', body))) return undefined
  try {
    const value: unknown = parseJson(toUtf8(body))
    return liftAll(value, patterns) ? value : undefined
  } catch {
    // SyntaxError: the addon finds the byte at which the JSON is invalid.
    return undefined
  }
}

async function takeApart<R>(body: unknown, config: ParseConfig, form: RestForm<R>): Promise<BodyParts<R>> {
  const { transfer, signal, maxBytes } = config
  const plan = { config, lifts: compile(config, form), form }
  if (!transfer && isUint8Array(body) && lengthOf(body) <= AT_ONCE) {
    signal?.throwIfAborted()
    checkSize('body', lengthOf(checkBytes('body', body)), maxBytes)
    return await takeApartFrom(gatherBytes(body, false), plan, true)
  }
  const input = gather('body', body, config, () => allocate(0))
  return await takeApartFrom(input instanceof Promise ? await input : input, plan, false)
}

async function takeApartFrom<R>(input: Input, plan: InputPlan<R>, atOnce: boolean): Promise<BodyParts<R>> {
  const scanned = await scanInput(input, plan, atOnce)
  return await fillInput({ input, scanned, plan: readPlan(scanned.takePlan()) }, plan, atOnce)
}

/** Validates an input and plans its lifts. */
async function scanInput(
  input: Input,
  { config, lifts }: Omit<InputPlan<unknown>, 'form'>,
  atOnce: boolean,
): Promise<ScannedBody> {
  const { signal } = config
  const { source } = input
  try {
    return unwrap(atOnce ? scanBodySync(lifts, source) : await run((stop) => scanBody(lifts, source, stop), { signal }))
  } catch (error) {
    input.end()
    throw error
  }
}

/** A scanned input on its way to the second task. */
interface ScannedInput {
  readonly input: Input
  readonly scanned: ScannedBody
  readonly plan: LiftPlan
}

/** Makes the values of an input, and what is left of it. */
async function fillInput<R>(
  { input, scanned, plan }: ScannedInput,
  { config, form }: InputPlan<R>,
  atOnce: boolean,
): Promise<BodyParts<R>> {
  const { signal } = config
  const make = atOnce ? allocateNow : allocate
  const memories: Bytes[] = []
  let rest: Bytes | null = null
  try {
    const pointers = form.isText ? [] : pointersOf(plan)
    const texts = form.replacements(pointers)
    // The function that replaces values may have aborted the call.
    signal?.throwIfAborted()
    const size = restSizeOf(plan, texts)
    rest = form.allocate(size, make)
    makeMemories(memories, plan.sizes, make)
    const memory = rest
    const filled = unwrap(
      atOnce
        ? fillBodySync(scanned, memory, memories, texts)
        : await run((stop) => fillBody(scanned, memory, memories, texts, stop), { signal, first: true }),
    )
    // A large value may be in the memory of the body: its index is one more than the last one of the others.
    const inPlace = plan.lifts.some((lift) => lift[3] === memories.length) ? input.taken : undefined
    if (inPlace !== undefined) addTo(memories, inPlace)
    const values = gathered(plan, readLengths(filled), memories, config)
    input.end(inPlace)
    return { rest: await form.read(rest, scanned, size), plan, pointers, values }
  } catch (error) {
    // A task that began has taken what these hold.
    input.end()
    scanned.clear()
    for (let index = 0; index < memories.length; index += 1) giveBack(memories[index] ?? NOTHING)
    if (rest !== null) giveBack(rest)
    throw error
  }
}

const NOTHING: Bytes = allocate(0)

/** Makes the memory of values. Small ones share the first, which never comes back. */
function makeMemories(memories: Bytes[], sizes: readonly number[], make: (size: number) => Bytes): void {
  for (const size of sizes) addTo(memories, memories.length === 0 ? makeMemory(size) : make(size))
}

type PathKey = string | number

interface LiftPlan {
  /** Bytes of the JSON that is left when all values are lifted. */
  readonly restSize: number
  readonly sizes: number[]
  /** Two items for each container from number 1 on: the number of the one that holds it, and its key there. */
  readonly containers: readonly PathKey[]
  readonly lifts: readonly PlannedLift[]
  /** The name and the id of an event. */
  readonly name: string
  readonly id: string
}

/** A value of a plan, as `BodyPlan::describe` in `crates/body/src/plan.rs` writes it. Other forms than these have five items. */
type PlannedLift = PlannedExperts | PlannedRagged | PlannedTensor
type PlannedPlace = readonly [container: number, key: PathKey, pattern: number, memory: number, start: number]
type PlannedExperts = readonly [...PlannedPlace, shape: RoutedExperts['shape'], dtype: ExpertsDtype, first: number]
type PlannedRagged = readonly [...PlannedPlace, memory: number, start: number, count: number]
type PlannedTensor = readonly [...PlannedPlace, shape: readonly number[]]

/** Returns the bytes of the rest with `texts` in the places of the values. */
function restSizeOf({ restSize }: LiftPlan, texts: readonly string[] | undefined): number {
  if (texts === undefined) return restSize
  let size = restSize - 'null'.length * texts.length
  for (let index = 0; index < texts.length; index += 1) size += byteLengthOfText(texts[index] ?? '')
  return size
}

function readPlan(text: string): LiftPlan {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon wrote it
  const [restSize, sizes, containers, lifts, name = '', id = ''] = parseJson(text) as [
    number,
    LiftPlan['sizes'],
    LiftPlan['containers'],
    LiftPlan['lifts'],
    string?,
    string?,
  ]
  return { restSize, sizes, containers, lifts, name, id }
}

function readLengths(filled: string): readonly number[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon wrote it
  return parseJson(filled) as number[]
}

function gathered(
  { lifts }: LiftPlan,
  lengths: readonly number[],
  memories: readonly Bytes[],
  { kinds }: ParseConfig,
): Lifted[] {
  return lifts.map((lift, index) => {
    const kind = kinds[lift[2]]
    const bytes = partIn(memories, lift[3], lift[4], lengths[index] ?? 0)
    return kind === undefined ? bytes : valueOf(kind, lift, bytes, memories)
  })
}

function valueOf({ form, element }: LiftKind, lift: PlannedLift, bytes: Bytes, memories: readonly Bytes[]): Lifted {
  switch (form) {
    case 'drop':
      return null
    case 'experts': {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon writes these items for the form
      const [, , , , , shape, dtype, start] = lift as PlannedExperts
      return { data: bytes, shape, dtype, start }
    }
    case 'ragged': {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon writes these items for the form
      const [, , , , , memory, start, count] = lift as PlannedRagged
      const counts = partIn(memories, memory, start, count * Int32Array.BYTES_PER_ELEMENT)
      return { values: numbersOf(bytes, element), counts: new Int32Array(counts.buffer, counts.byteOffset, count) }
    }
    case 'tensor': {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon writes these items for the form
      const [, , , , , shape] = lift as PlannedTensor
      return { data: numbersOf(bytes, element), shape }
    }
    default:
      return element === undefined ? bytes : numbersOf(bytes, element)
  }
}

function numbersOf({ buffer, byteOffset, byteLength }: Bytes, element: ElementType = 'uint8'): NumberArray {
  const Numbers = ARRAYS[element]
  return new Numbers(buffer, byteOffset, byteLength / Numbers.BYTES_PER_ELEMENT)
}

function partIn(memories: readonly Bytes[], index: number, start: number, length: number): Bytes {
  const memory = memories[index] ?? NOTHING
  return start === 0 ? resultOf(memory, length) : partOf(memory, start, start + length)
}

/** Parses the rest and puts the lifted values in their places. */
function join({ rest, plan, values }: BodyParts<string>): unknown {
  const root: unknown = parseJson(rest)
  if (values.length === 0) return root
  const { containers, lifts } = plan
  // Number 0 holds the root.
  // oxlint-disable-next-line typescript/no-explicit-any, typescript/no-unsafe-type-assertion -- the plan leads through containers of the rest
  const found = [{ '': root }] as any[]
  for (let index = 0; index < containers.length; index += 2) {
    addTo(found, found[Number(containers[index])][containers[index + 1] ?? ''])
  }
  for (let index = 0; index < lifts.length; index += 1) {
    const [container = 0, key = ''] = lifts[index] ?? []
    found[container][key] = values[index]
  }
  return found[0]['']
}
