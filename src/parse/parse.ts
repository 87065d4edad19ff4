/**
 * `parse` and `split`: JSON in. Two tasks validate a body, lift the heavy values out of it and write the rest; the JS
 * thread makes the memory between them and gives the rest to JSON.parse. `src/index.ts` exports both functions.
 */

import {
  allocate,
  allocateNow,
  checkBytes,
  gather,
  gatherBytes,
  giveBack,
  makeMemory,
  resultOf,
  type Body,
  type Bytes,
  Input,
} from '../runtime/bytes.ts'
import { pointerOf } from '../capture/pointer.ts'
import { invalidType, invalidValue, OffloopError } from '../runtime/errors.ts'
import {
  addTo,
  bufferOf,
  isArrayBuffer,
  isUint8Array,
  isUtf8,
  keysOf,
  lengthOf,
  parseJson,
  partOf,
  toUtf8,
} from '../runtime/intrinsics.ts'
import { readLiftHints, type ExpertsDtype, type ExpertsHints, type RoutedExperts } from '../experts/experts.ts'
import {
  fillBody,
  fillBodySync,
  type InputBytes,
  LiftPointers,
  scanBody,
  scanBodySync,
  unwrap,
  type NativeHints,
  type ScannedBody,
} from '../runtime/native.ts'
import { liftAll, readPatterns } from './lift.ts'
import {
  choose,
  copyOptions,
  readBoolean,
  readSignal,
  tableOf,
  withoutPrototype,
  type BytesInput,
  type Cancellable,
} from '../runtime/options.ts'
import { ownTurn } from '../runtime/yield.ts'
import { run } from '../runtime/pool.ts'

/** Names what a value becomes, off the JS thread, instead of JS objects. */
export type Lift =
  | 'base64' // string → the decoded bytes (forgiving)
  | 'int32'
  | 'uint8'
  | 'uint16'
  | 'float32'
  | 'float64' // array of numbers → that typed array
  | 'raw' // any value but null → the bytes of its JSON text
  | 'experts' // any routed-experts payload → RoutedExperts
  | { readonly experts: ExpertsHints }

/** Kind of a lift, as the addon names it. */
export type LiftName = Extract<Lift, string>

export interface ParseOptions extends Cancellable, BytesInput {
  /**
   * JSON Pointers (RFC 6901). A segment `*` matches every key or index; a leading `**` matches any depth, zero included (segments `**`, `x` match `x` at the top too).
   * If two pointers match one value, the first listed wins. Nothing is searched inside a lifted value.
   */
  readonly lift?: Readonly<Record<string, Lift>> | undefined
  /**
   * A value of another JSON type (not a string; not an array of numbers only): `'throw'` rejects with ERR_OFFLOOP_LIFT, `'keep'` leaves it as parsed,
   * whole, with nothing inside it lifted. null and absent values stay so. A string that is not base64 always rejects with ERR_OFFLOOP_LIFT, and so does
   * a number that does not fit its element type. Integers must fit exactly; floats are rounded as a typed array rounds them. A malformed routed-experts
   * payload rejects with ERR_OFFLOOP_EXPERTS. The type of an array is judged before any range. @default 'throw'
   */
  readonly onMismatch?: 'throw' | 'keep' | undefined
}

export interface SplitResult {
  /** The body with each lifted value replaced by null: still JSON, ready to forward or parse. */
  readonly json: Bytes
  readonly lifted: readonly {
    readonly pointer: string
    readonly value: Bytes | RoutedExperts | Int32Array | Float32Array | Float64Array | Uint8Array | Uint16Array
  }[]
}

/** A value that was lifted out of a body. */
type Lifted = SplitResult['lifted'][number]['value']

const PARSE_KEYS = tableOf({ lift: true, onMismatch: true, transfer: true, signal: true })
const LIFTS = tableOf<LiftName>({
  base64: 'base64',
  int32: 'int32',
  uint8: 'uint8',
  uint16: 'uint16',
  float32: 'float32',
  float64: 'float64',
  raw: 'raw',
  experts: 'experts',
})
const MISMATCHES = tableOf({ throw: false, keep: true })

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
  return join(await takeApart(body, config, restText)) as T
}

/** Like `parse`, for programs that forward bodies or parse them elsewhere. */
export async function split(
  body: Body,
  options: ParseOptions & { readonly lift: Readonly<Record<string, Lift>> },
): Promise<SplitResult> {
  const own = copyOptions(options, PARSE_KEYS)
  const config = readConfig(own)
  if (own.lift === undefined) throw invalidType('options.lift', 'of type object', undefined)
  return splitResultOf(await takeApart(body, config, restBytes))
}

/** Options of a body that is gathered elsewhere, resolved before the body is there. */
export interface InputPlan {
  readonly config: ParseConfig
  readonly lifts: LiftPointers
}

/** Resolves the options of `parseInput`. Throws what `parse` rejects with. */
export function planInput(options: Omit<ParseOptions, 'transfer'>): InputPlan {
  const config = readConfig(withoutPrototype({ ...options, transfer: undefined }))
  return { config, lifts: compile(config) }
}

/** Parses a body that was gathered elsewhere. The tasks give its memory back. */
export async function parseInput(source: InputBytes, plan: InputPlan, signal?: AbortSignal): Promise<unknown> {
  return join(await takeInputApart(source, plan, restText, signal))
}

/** Like `parseInput`, for `split`. */
export async function splitInput(source: InputBytes, plan: InputPlan, signal?: AbortSignal): Promise<SplitResult> {
  return splitResultOf(await takeInputApart(source, plan, restBytes, signal))
}

async function takeInputApart<R>(
  source: InputBytes,
  { config, lifts }: InputPlan,
  form: RestForm<R>,
  signal: AbortSignal | undefined,
): Promise<BodyParts<R>> {
  return await takeApartFrom(lifts, new Input(source), { ...config, signal }, form, source.length <= AT_ONCE)
}

function splitResultOf({ rest: json, values }: BodyParts<Bytes>): SplitResult {
  return { json, lifted: values.map(({ path, value }) => ({ pointer: pointerOf(path), value })) }
}

/** Resolved options. `kinds` and `hints` belong to the pointer of the same index. */
interface ParseConfig {
  readonly pointers: string[]
  readonly kinds: LiftName[]
  /** Hints for routed experts; null for other kinds. */
  readonly hints: (NativeHints | null)[]
  readonly keepsMismatches: boolean
  readonly transfer: boolean
  readonly signal: AbortSignal | undefined
}

const NO_CONFIG: ParseConfig = {
  pointers: [],
  kinds: [],
  hints: [],
  keepsMismatches: false,
  transfer: false,
  signal: undefined,
}

function readConfig({ lift, onMismatch, transfer, signal }: ParseOptions): ParseConfig {
  const config: ParseConfig = {
    pointers: [],
    kinds: [],
    hints: [],
    keepsMismatches: choose('options.onMismatch', onMismatch, MISMATCHES, false),
    transfer: readBoolean('options.transfer', transfer, false),
    signal: readSignal(signal),
  }
  if (lift === undefined) return config
  if (typeof lift !== 'object' || lift === null) throw invalidType('options.lift', 'of type object', lift)
  for (const pointer of keysOf(lift)) {
    const kind = lift[pointer]
    const name = `options.lift['${pointer}']`
    config.kinds.push(isWithHints(kind) ? 'experts' : readKind(name, kind))
    config.hints.push(isWithHints(kind) ? readLiftHints(name, kind) : null)
    config.pointers.push(pointer)
  }
  return config
}

function isWithHints(kind: unknown): kind is object {
  return typeof kind === 'object' && kind !== null
}

function readKind(name: string, value: unknown): LiftName {
  const kind = typeof value === 'string' ? LIFTS[value] : undefined
  if (kind !== undefined) return kind
  const names = Object.keys(LIFTS).map((key) => `'${key}'`)
  throw invalidValue(name, `must be one of: ${names.join(', ')}`, value)
}

/** Keys and indexes from the root to a value. */
type ValuePath = readonly (string | number)[]

interface LiftedValue {
  readonly path: ValuePath
  readonly value: Lifted
}

/** The rest of a body and the values that were lifted out of it. */
interface BodyParts<R> {
  readonly rest: R
  readonly values: readonly LiftedValue[]
}

/** Form of the rest: a string that is made natively, or bytes. */
interface RestForm<R> {
  allocate(size: number, make: (size: number) => Bytes): Bytes | null
  read(memory: Bytes | null, scanned: ScannedBody, size: number): R | Promise<R>
}

const restBytes: RestForm<Bytes> = {
  allocate: (size, make) => make(size),
  read: (memory) => memory ?? allocate(0),
}

const restText: RestForm<string> = {
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
function parseSmall(body: unknown, { pointers, kinds, transfer, signal }: ParseConfig): unknown {
  if (transfer || !isUint8Array(body) || AT_ONCE < lengthOf(body) || !isArrayBuffer(bufferOf(body))) return undefined
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
  const { transfer, signal } = config
  const lifts = compile(config)
  if (!transfer && isUint8Array(body) && lengthOf(body) <= AT_ONCE) {
    signal?.throwIfAborted()
    return await takeApartFrom(lifts, gatherBytes(checkBytes('body', body), false), config, form, true)
  }
  const input = gather('body', body, config, () => allocate(0))
  return await takeApartFrom(lifts, input instanceof Promise ? await input : input, config, form, false)
}

function compile({ pointers, kinds, hints, keepsMismatches }: ParseConfig): LiftPointers {
  const lifts = new LiftPointers(pointers, kinds, hints, keepsMismatches)
  const { wrongPointer } = lifts
  if (wrongPointer === null) return lifts
  const { index, reason } = wrongPointer
  const pointer = pointers[index] ?? ''
  throw invalidValue(`options.lift['${pointer}']`, `is no JSON Pointer: it ${reason}`, pointer)
}

async function takeApartFrom<R>(
  lifts: LiftPointers,
  input: Input,
  config: ParseConfig,
  form: RestForm<R>,
  atOnce: boolean,
): Promise<BodyParts<R>> {
  const { signal } = config
  const { source, taken } = input
  const make = atOnce ? allocateNow : allocate
  const memories: Bytes[] = []
  let rest: Bytes | null = null
  let scanned: ScannedBody | undefined
  try {
    const body = unwrap(
      atOnce ? scanBodySync(lifts, source) : await run((stop) => scanBody(lifts, source, stop), { signal }),
    )
    scanned = body
    const plan = readPlan(body)
    rest = form.allocate(plan.restSize, make)
    makeMemories(memories, plan.sizes, make)
    const memory = rest
    const filled = unwrap(
      atOnce
        ? fillBodySync(body, memory, memories)
        : await run((stop) => fillBody(body, memory, memories, stop), { signal, first: true }),
    )
    // A large value may be in the memory of the body: its index is one more than the last one of the others.
    const inPlace = plan.lifts.some((lift) => lift[2] === memories.length) ? taken : undefined
    const all = memories
    if (inPlace !== undefined) addTo(memories, inPlace)
    const values = gathered(plan, readLengths(filled), all, config)
    input.end(inPlace)
    return { rest: await form.read(rest, body, plan.restSize), values }
  } catch (error) {
    // A task that began has taken what these hold.
    input.end()
    scanned?.clear()
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

interface LiftPlan {
  /** Bytes of the JSON that is left when all values are lifted. */
  readonly restSize: number
  readonly sizes: number[]
  readonly lifts: readonly PlannedLift[]
}

/** A value of a plan. Routed experts alone have the last three items. */
type PlannedLift = readonly [
  path: ValuePath,
  pointer: number,
  memory: number,
  start: number,
  shape: RoutedExperts['shape'],
  dtype: ExpertsDtype,
  first: number,
]

function readPlan(scanned: ScannedBody): LiftPlan {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon wrote it
  const [restSize, sizes, lifts] = parseJson(scanned.takePlan()) as [number, LiftPlan['sizes'], LiftPlan['lifts']]
  return { restSize, sizes, lifts }
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
): LiftedValue[] {
  return lifts.map(([path, pointer, memory, from, shape, dtype, start], index) => {
    const bytes = memories[memory] ?? allocate(0)
    const length = lengths[index] ?? 0
    const kind = kinds[pointer]
    if (kind !== 'experts') return { path, value: valueOf(kind, bytes, from, length) }
    return { path, value: { data: partIn(bytes, from, length), shape, dtype, start } }
  })
}

function valueOf(
  kind: LiftName | undefined,
  memory: Bytes,
  start: number,
  length: number,
): Exclude<Lifted, RoutedExperts> {
  const { buffer, byteOffset } = memory
  const offset = byteOffset + start
  switch (kind) {
    case 'int32':
      return new Int32Array(buffer, offset, length / 4)
    case 'uint8':
      return new Uint8Array(buffer, offset, length)
    case 'uint16':
      return new Uint16Array(buffer, offset, length / 2)
    case 'float32':
      return new Float32Array(buffer, offset, length / 4)
    case 'float64':
      return new Float64Array(buffer, offset, length / 8)
    default:
      return partIn(memory, start, length)
  }
}

function partIn(memory: Bytes, start: number, length: number): Bytes {
  return start === 0 ? resultOf(memory, length) : partOf(memory, start, start + length)
}

/** Parses the rest and puts the lifted values in their places. */
function join({ rest, values }: BodyParts<string>): unknown {
  const root: unknown = parseJson(rest)
  for (const { path, value } of values) {
    if (path.length === 0) return value
    // oxlint-disable-next-line typescript/no-explicit-any, typescript/no-unsafe-type-assertion -- the path leads through containers of the rest
    let container = root as any
    for (let depth = 0; depth < path.length - 1; depth += 1) container = container[path[depth] ?? '']
    container[path[path.length - 1] ?? ''] = value
  }
  return root
}
