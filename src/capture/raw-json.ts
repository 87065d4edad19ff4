/** RawJson: text that is JSON already, and what JSON.stringify does with it. Runs on the JS thread. */

import { getBuiltinModule } from 'node:process'
import { allocate, checkBytes, utf8Of, type Bytes } from '../runtime/bytes.ts'
import { invalidType } from '../runtime/errors.ts'
import {
  addTo,
  charCodeAt,
  defineProperty,
  descriptorOf,
  execRegExp,
  lengthOf,
  parseJson,
  setBytes,
  sliceString,
  stringifyJson,
  toNumber,
  toUtf8,
} from '../runtime/intrinsics.ts'
import { errorOf, RawJsonBytes } from '../runtime/native.ts'
import { copyOptions, readBoolean, tableOf } from '../runtime/options.ts'

/** Proof that this module calls the constructor. */
const token = Symbol('RawJson')

let fragmentIn: (value: object) => RawJsonBytes | undefined
let sizeOfRaw: (this: RawJson) => unknown
let make: (memory: Bytes) => RawJson

/** JSON text that is written as it is wherever it stands in a value. */
export class RawJson {
  static {
    fragmentIn = (value) => (#fragment in value ? value.#fragment : undefined)
    make = (memory) => new RawJson(token, memory)
    sizeOfRaw = function (this: RawJson): unknown {
      return isOurs && isReadByEngine() ? markBare(this) : lengthOf(this.#memory)
    }
    Object.freeze(this.prototype)
  }

  declare readonly byteLength: number
  readonly #memory: Bytes
  readonly #fragment: RawJsonBytes

  private constructor(given: symbol, memory: Bytes) {
    if (given !== token) throw new TypeError('RawJson has no constructor: call rawJson()')
    this.#memory = memory
    this.#fragment = new RawJsonBytes(memory)
    // Its own property: the engine reads it of a RawJson whose `toJSON` it does not call.
    defineProperty(this, 'byteLength', { get: sizeOfRaw, enumerable: true })
    Object.freeze(this)
  }

  /** Gives JSON.stringify the same value. */
  toJSON(): unknown {
    return isOurs ? mark(this) : parseJson(toUtf8(this.#memory))
  }
}

/** Returns the native bytes of a RawJson; undefined for every other object. */
export function rawJsonBytesOf(value: object): RawJsonBytes | undefined {
  return fragmentIn(value)
}

const RAW_KEYS = tableOf({ trusted: true })

/**
 * JSON text that is written as it is wherever it stands in a value. It is checked once, here, unless `trusted`. Throws.
 */
export function rawJson(json: string | Uint8Array, options: { readonly trusted?: boolean | undefined } = {}): RawJson {
  const { trusted } = copyOptions(options, RAW_KEYS)
  const isTrusted = readBoolean('options.trusted', trusted, false)
  const memory = typeof json === 'string' ? bytesOfText(json) : copyOf(json)
  const raw = make(memory)
  const failure = isTrusted ? null : (fragmentIn(raw)?.check() ?? null)
  if (failure === null) return raw
  const { offset } = failure
  if (typeof json !== 'string' || offset === undefined) throw errorOf(failure)
  throw errorOf({ ...failure, offset: unitAt(json, offset) })
}

function copyOf(json: unknown): Bytes {
  if (json === null || typeof json !== 'object')
    throw invalidType('json', 'a string or an instance of Uint8Array', json)
  const bytes = checkBytes('json', json)
  const memory = allocate(lengthOf(bytes))
  setBytes(memory, bytes, 0)
  return memory
}

/** Matches a lone surrogate: the flag `u` takes pairs as one character. */
const LONE = /\p{Surrogate}/u

function bytesOfText(json: string): Bytes {
  return utf8Of(execRegExp(LONE, json) === null ? json : withEscapes(json), allocate)
}

/** Writes lone surrogates as escapes. They are valid in a JSON string and have no UTF-8. */
function withEscapes(json: string): string {
  let text = ''
  for (let index = 0; index < json.length; index += 1) {
    const unit = json[index] ?? ''
    if (sizeAt(json, index) === ESCAPE) text += `\\u${charCodeAt(json, index).toString(16)}`
    else text += unit
  }
  return text
}

const ESCAPE = 6
const REPLACEMENT = 3

/** Returns how many bytes of UTF-8 the code unit at `index` becomes. The second unit of a pair counts for both. */
function sizeAt(json: string, index: number): number {
  const unit = charCodeAt(json, index)
  if (unit < 0x80) return 1
  if (unit < 0x800) return 2
  if (unit < 0xd800 || 0xdfff < unit) return 3
  const isHigh = unit < 0xdc00
  const other = charCodeAt(json, isHigh ? index + 1 : index - 1)
  if (isHigh && 0xdc00 <= other && other <= 0xdfff) return 0
  if (!isHigh && 0xd800 <= other && other <= 0xdbff) return 4
  // An escape behind a backslash would become another escape.
  return isEscaped(json, index) ? REPLACEMENT : ESCAPE
}

function isEscaped(json: string, index: number): boolean {
  let start = index
  while (json[start - 1] === '\\') start -= 1
  return (index - start) % 2 === 1
}

/** Returns the index of the code unit whose UTF-8 holds the byte at `offset`. */
function unitAt(json: string, offset: number): number {
  let size = 0
  for (let index = 0; index < json.length; index += 1) {
    size += sizeAt(json, index)
    if (offset < size) return index
  }
  return json.length
}

// ───────────────────────────── within JSON.stringify ─────────────────────────────

/**
 * The value that the engine stringified, parsed again, with each RawJson in its place. Such text holds marks instead.
 */
export class Revived {
  readonly value: object

  constructor(value: object) {
    this.value = value
  }
}

/** Whether this module is calling JSON.stringify. */
let isOurs = false
/** RawJsons that this call met. */
const NOBODY: RawJson[] = []
let met = NOBODY

/** Beginnings of strings that stand for RawJsons in the text of JSON.stringify. Nobody can guess them. */
interface Marks {
  readonly whole: string
  /** For the only property of a RawJson, where that is the answer of a `toJSON`. */
  readonly bare: string
}

const MARK_LENGTH = 'offloop::'.length + 36
let marks: Marks | undefined

/** Makes the marks when the first RawJson is met: loading `node:crypto` takes 2 ms, which an import shall not. */
function marksOf(): Marks {
  if (marks === undefined) {
    const { randomUUID } = getBuiltinModule('node:crypto')
    marks = { whole: `offloop:${randomUUID()}:`, bare: `offloop:${randomUUID()}:` }
  }
  return marks
}

function mark(raw: RawJson): string {
  if (met === NOBODY) met = []
  addTo(met, raw)
  return `${marksOf().whole}${met.length - 1}`
}

function markBare(raw: RawJson): string {
  return marksOf().bare + sliceString(mark(raw), MARK_LENGTH, Infinity)
}

const READ_BY_CODE = /^Error\n.*\n.*\n {4}at (?!(?:JSON\.)?stringify \(<anonymous>\))/

/** Whether JSON.stringify itself reads the property, not code that it calls. */
function isReadByEngine(): boolean {
  const { stack } = new Error()
  return typeof stack !== 'string' || execRegExp(READ_BY_CODE, stack) === null
}

/** A RawJson in place of its only property. */
class Bare {
  readonly raw: RawJson | undefined

  constructor(raw: RawJson | undefined) {
    this.raw = raw
  }
}

/** Stringifies a value that may hold RawJsons. */
export function stringify(value: unknown): string | Revived | undefined {
  const wasOurs = isOurs
  const metBefore = met
  isOurs = true
  met = NOBODY
  try {
    const text = stringifyJson(value)
    return met === NOBODY ? text : revived(text, met)
  } finally {
    isOurs = wasOurs
    met = metBefore
  }
}

function revived(text: string, raws: readonly RawJson[]): Revived {
  const { whole, bare } = marksOf()
  const rawAt = (part: string): RawJson | undefined => raws[toNumber(sliceString(part, MARK_LENGTH, part.length))]
  const value: unknown = parseJson(text, (_, part: unknown) => {
    if (typeof part === 'object' && part !== null) return bareIn(part) ?? part
    if (typeof part !== 'string') return part
    const start = sliceString(part, 0, MARK_LENGTH)
    if (start === bare) return new Bare(rawAt(part))
    return start === whole ? rawAt(part) : part
  })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a value with a RawJson in it is an object
  return new Revived(value as object)
}

/** Returns the RawJson whose property an object of the text has. */
function bareIn(part: object): RawJson | undefined {
  const property: unknown = descriptorOf(part, 'byteLength')?.value
  return property instanceof Bare ? property.raw : undefined
}
