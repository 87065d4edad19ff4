/** JSON in: tasks look at a body, take the heavy values out of it, and leave the rest to JSON.parse. */

import { setImmediate } from 'node:timers'
import {
  allocate,
  allocateNow,
  checkBytes,
  gather,
  gatherBytes,
  sourceOf,
  type Body,
  type Bytes,
  type Input,
} from './bytes.ts'
import { pointerOf } from './capture/pointer.ts'
import { invalidType, invalidValue, OffloopError } from './errors.ts'
import {
  bufferOf,
  isArrayBuffer,
  isUint8Array,
  isUtf8,
  keysOf,
  lengthOf,
  parseJson,
  partOf,
  toLatin1,
  toUtf8,
} from './intrinsics.ts'
import { readLiftHints, type ExpertsDtype, type ExpertsHints, type RoutedExperts } from './experts.ts'
import {
  BodyText,
  fillBody,
  fillBodySync,
  Lift as LiftKind,
  scanBody,
  scanBodySync,
  unwrap,
  type NativeHints,
} from './native.ts'
import { liftAll, readPatterns } from './lift.ts'
import { checkKeys, choose, readBoolean, readSignal, tableOf, type BytesInput, type Cancellable } from './options.ts'
import { run } from './pool.ts'

/** What to make of the values at a pointer, off-thread, instead of JS objects. */
export type Lift =
  | 'base64' // string → the decoded bytes (forgiving)
  | 'int32'
  | 'uint8'
  | 'uint16'
  | 'float32'
  | 'float64' // array of numbers → that typed array
  | 'raw' // any value but null → the bytes of its JSON text, as they stand
  | 'experts' // any routed-experts wire form → RoutedExperts
  | { readonly experts: ExpertsHints }

export interface ParseOptions extends Cancellable, BytesInput {
  /**
   * JSON Pointers (RFC 6901); a segment `*` stands for every key or index, a leading `**` for any depth, zero included (segments `**`, `x` match `x` at the top too).
   * Where two pointers match one value the first listed wins; nothing is looked for inside a lifted value.
   */
  readonly lift?: Readonly<Record<string, Lift>> | undefined
  /**
   * A value there of another JSON type (not a string; not an array of numbers only): reject with ERR_OFFLOOP_LIFT, or leave it as parsed,
   * whole, nothing inside it lifted. null and absent stay so. A string that is not base64, a number that does not fit its element type
   * (integers exactly; floats round as the typed array would) always rejects, with ERR_OFFLOOP_LIFT as well; a malformed routed-experts payload with ERR_OFFLOOP_EXPERTS. The array's type is judged before any range. @default 'throw'
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

/** What was taken out of a body. */
type Lifted = SplitResult['lifted'][number]['value']

const PARSE_KEYS = tableOf({ lift: true, onMismatch: true, transfer: true, signal: true })
const LIFTS = tableOf({
  base64: LiftKind.Base64,
  int32: LiftKind.Int32,
  uint8: LiftKind.Uint8,
  uint16: LiftKind.Uint16,
  float32: LiftKind.Float32,
  float64: LiftKind.Float64,
  raw: LiftKind.Raw,
  experts: LiftKind.Experts,
})
const MISMATCHES = tableOf({ throw: false, keep: true })

/** Bodies up to this size cost the thread less when they are looked at at once than as tasks. */
const AT_ONCE = 32 * 1024

/**
 * `JSON.parse` of the body's text, with the lifted values made off-thread and put in their places. Accepts exactly what
 * `JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body))` accepts. The last of duplicate keys wins, lifted or not.
 */
// The caller says what the body is, as with JSON.parse.
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export async function parse<T = unknown>(body: Body, options?: ParseOptions): Promise<T> {
  const rules = options === undefined ? NO_RULES : readRules(options)
  const small = parseSmall(body, rules)
  if (small !== undefined) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return small as T
  }
  const apart = await takeApart(body, rules)
  // Each has the loop for a turn of its own, as what is left may be long.
  if (AT_ONCE < lengthOf(apart.json)) await ownTurn()
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return join(apart) as T
}

/** As `parse`, for those who forward bodies or parse them elsewhere. */
export async function split(
  body: Body,
  options: ParseOptions & { readonly lift: Readonly<Record<string, Lift>> },
): Promise<SplitResult> {
  const rules = readRules(options)
  if (rules.lifts.length === 0 && options.lift === undefined) {
    throw invalidType('options.lift', 'of type object', options.lift)
  }
  const { json, found } = await takeApart(body, rules)
  return { json, lifted: found.map(({ path, value }) => ({ pointer: pointerOf(path), value })) }
}

interface Rules {
  readonly pointers: string[]
  readonly lifts: LiftKind[]
  /** Of routed experts. */
  readonly hints: NativeHints[]
  readonly keeps: boolean
  readonly transfer: boolean
  readonly signal: AbortSignal | undefined
}

const NO_RULES: Rules = { pointers: [], lifts: [], hints: [], keeps: false, transfer: false, signal: undefined }

function readRules(options: ParseOptions): Rules {
  checkKeys(options, PARSE_KEYS)
  const { lift, onMismatch, transfer, signal } = options
  const rules: Rules = {
    pointers: [],
    lifts: [],
    hints: [],
    keeps: choose('options.onMismatch', onMismatch, MISMATCHES, false),
    transfer: readBoolean('options.transfer', transfer, false),
    signal: readSignal(signal),
  }
  if (lift === undefined) return rules
  if (typeof lift !== 'object' || lift === null) throw invalidType('options.lift', 'of type object', lift)
  for (const pointer of keysOf(lift)) {
    const kind = lift[pointer]
    const name = `options.lift['${pointer}']`
    rules.lifts.push(isWithHints(kind) ? LiftKind.Experts : readLift(name, kind))
    rules.hints.push(isWithHints(kind) ? readLiftHints(name, kind) : {})
    rules.pointers.push(pointer)
  }
  return rules
}

function isWithHints(kind: unknown): kind is object {
  return typeof kind === 'object' && kind !== null
}

function readLift(name: string, kind: unknown): LiftKind {
  const lift = typeof kind === 'string' ? LIFTS[kind] : undefined
  if (lift !== undefined) return lift
  const names = Object.keys(LIFTS).map((key) => `'${key}'`)
  throw invalidValue(name, `must be one of: ${names.join(', ')}`, kind)
}

/** Keys and indexes. */
type Path = readonly (string | number)[]

interface Found {
  readonly path: Path
  readonly value: Lifted
}

/** What is left of a body, and what was in it. */
interface Apart {
  readonly json: Bytes
  readonly isAscii: boolean
  readonly found: readonly Found[]
}

/** A small body, without a look of the addon. Undefined where that is needed, for one to tell what is wrong. */
function parseSmall(body: unknown, { pointers, lifts, transfer, signal }: Rules): unknown {
  if (transfer || !isUint8Array(body) || AT_ONCE < lengthOf(body) || !isArrayBuffer(bufferOf(body))) return undefined
  signal?.throwIfAborted()
  const patterns = readPatterns(pointers, lifts)
  if (patterns === undefined || !isUtf8(checkBytes('body', body))) return undefined
  try {
    const value: unknown = parseJson(toUtf8(body))
    return liftAll(value, patterns) ? value : undefined
  } catch {
    // It is no JSON: the other way tells where.
    return undefined
  }
}

async function takeApart(body: unknown, rules: Rules): Promise<Apart> {
  const { transfer, signal } = rules
  const text = textFor(rules)
  try {
    if (!transfer && isUint8Array(body) && lengthOf(body) <= AT_ONCE) {
      signal?.throwIfAborted()
      return await takeApartFrom(text, gatherBytes(checkBytes('body', body), false), rules, true)
    }
    const input = gather('body', body, rules, () => allocate(0))
    return await takeApartFrom(text, input instanceof Promise ? await input : input, rules, false)
  } finally {
    text.clear()
  }
}

function textFor({ pointers, lifts, hints, keeps }: Rules): BodyText {
  const text = new BodyText(pointers, lifts, hints, keeps)
  const { wrongPointer } = text
  if (wrongPointer === null) return text
  const { index, reason } = wrongPointer
  const pointer = pointers[index] ?? ''
  throw invalidValue(`options.lift['${pointer}']`, `is no JSON Pointer: it ${reason}`, pointer)
}

async function takeApartFrom(text: BodyText, input: Input, rules: Rules, atOnce: boolean): Promise<Apart> {
  const { signal } = rules
  const source = sourceOf(input)
  const make = atOnce ? allocateNow : allocate
  try {
    const size = unwrap(
      atOnce ? scanBodySync(text, source) : await run((stop) => scanBody(text, source, stop), { signal }),
    )
    const plan = readPlan(text)
    const json = make(size)
    const memories = plan.sizes.map(make)
    const filled = unwrap(
      atOnce
        ? fillBodySync(text, json, memories)
        : await run((stop) => fillBody(text, json, memories, stop), { signal, first: true }),
    )
    // A large value may be where the body was.
    const all = input.taken === undefined ? memories : memories.concat(input.taken)
    return { json, isAscii: filled === 1, found: gathered(text, plan, all, rules) }
  } finally {
    source.clear()
  }
}

interface Plan {
  readonly sizes: number[]
  readonly places: readonly Place[]
}

type Place = readonly [
  path: Path,
  lift: number,
  memory: number,
  start: number,
  shape: RoutedExperts['shape'],
  dtype: ExpertsDtype,
  first: number,
]

function readPlan(text: BodyText): Plan {
  // What the addon wrote.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const [sizes, places] = parseJson(text.describe()) as [Plan['sizes'], Plan['places']]
  return { sizes, places }
}

function gathered(text: BodyText, { places }: Plan, memories: readonly Bytes[], { lifts }: Rules): Found[] {
  const lengths = text.lengths()
  return places.map(([path, lift, memory, from, shape, dtype, start], index) => {
    const bytes = memories[memory] ?? allocate(0)
    const length = lengths[index] ?? 0
    if (lifts[lift] !== LiftKind.Experts) return { path, value: valueOf(lifts[lift], bytes, from, length) }
    return { path, value: { data: partOf(bytes, from, from + length), shape, dtype, start } }
  })
}

function valueOf(
  lift: LiftKind | undefined,
  memory: Bytes,
  start: number,
  length: number,
): Exclude<Lifted, RoutedExperts> {
  const { buffer, byteOffset } = memory
  const offset = byteOffset + start
  switch (lift) {
    case LiftKind.Int32:
      return new Int32Array(buffer, offset, length / 4)
    case LiftKind.Uint8:
      return new Uint8Array(buffer, offset, length)
    case LiftKind.Uint16:
      return new Uint16Array(buffer, offset, length / 2)
    case LiftKind.Float32:
      return new Float32Array(buffer, offset, length / 4)
    case LiftKind.Float64:
      return new Float64Array(buffer, offset, length / 8)
    default:
      return partOf(memory, start, start + length)
  }
}

/** The value of a body, with what was taken out of it in its places. */
function join({ json, isAscii, found }: Apart): unknown {
  const root: unknown = parseJson(textOf(json, isAscii))
  for (const { path, value } of found) {
    if (path.length === 0) return value
    // The path is that of a value in it.
    // oxlint-disable-next-line typescript/no-explicit-any, typescript/no-unsafe-type-assertion
    let container = root as any
    for (let depth = 0; depth < path.length - 1; depth += 1) container = container[path[depth] ?? '']
    container[path[path.length - 1] ?? ''] = value
  }
  return root
}

function textOf(json: Bytes, isAscii: boolean): string {
  try {
    return isAscii ? toLatin1(json) : toUtf8(json)
  } catch (cause) {
    const message = `what is left of the body, ${lengthOf(json)} bytes, is longer than a string can be`
    throw new OffloopError('ERR_OFFLOOP_TOO_LARGE', message, { cause })
  }
}

/** Those that wait for a turn of the loop. */
const waiting: (() => void)[] = []
let isTurnTaken = false

/** One a turn: what several bodies cost the loop is never one block. */
async function ownTurn(): Promise<void> {
  if (isTurnTaken) await new Promise<void>((resolve) => waiting.push(resolve))
  else {
    isTurnTaken = true
    setImmediate(nextTurn)
  }
}

function nextTurn(): void {
  const resolve = waiting.shift()
  isTurnTaken = resolve !== undefined
  if (resolve === undefined) return
  setImmediate(nextTurn)
  resolve()
}
