/** JSON that is JSON already. */

import { randomUUID } from 'node:crypto'
import { allocate, checkBytes, utf8Of, type Bytes } from '../bytes.ts'
import { invalidType } from '../errors.ts'
import {
  charCodeAt,
  execRegExp,
  lengthOf,
  parseJson,
  setBytes,
  sliceString,
  stringifyJson,
  toNumber,
  toUtf8,
} from '../intrinsics.ts'
import { errorOf, Fragment } from '../native.ts'
import { checkKeys, readBoolean, tableOf } from '../options.ts'

/** Nobody else can make one. */
const token = Symbol('RawJson')

let fragmentIn: (value: object) => Fragment | undefined
let make: (memory: Bytes) => RawJson

/** JSON that is written verbatim wherever it stands in a value. */
export class RawJson {
  static {
    fragmentIn = (value) => (#fragment in value ? value.#fragment : undefined)
    make = (memory) => new RawJson(token, memory)
    Object.freeze(this.prototype)
  }

  readonly byteLength: number
  readonly #memory: Bytes
  readonly #fragment: Fragment

  private constructor(given: symbol, memory: Bytes) {
    if (given !== token) throw new TypeError('RawJson has no constructor: call rawJson()')
    this.byteLength = lengthOf(memory)
    this.#memory = memory
    this.#fragment = new Fragment(memory)
    Object.freeze(this)
  }

  /** For JSON.stringify: the same value. */
  toJSON(): unknown {
    return isOurs ? mark(this) : parseJson(toUtf8(this.#memory))
  }
}

/** Undefined for all that is no RawJson. */
export function fragmentOf(value: object): Fragment | undefined {
  return fragmentIn(value)
}

const RAW_KEYS = tableOf({ trusted: true })

/** Already-encoded JSON, written verbatim wherever it stands in a value. Checked once, here, unless `trusted`. Throws. */
export function rawJson(json: string | Uint8Array, options: { readonly trusted?: boolean | undefined } = {}): RawJson {
  checkKeys(options, RAW_KEYS)
  const isTrusted = readBoolean('options.trusted', options.trusted, false)
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

/** In a pattern of whole characters, half of one. */
const LONE = /\p{Surrogate}/u

function bytesOfText(json: string): Bytes {
  return utf8Of(execRegExp(LONE, json) === null ? json : withEscapes(json), allocate)
}

/** Lone surrogates are JSON in a string, and have no UTF-8. */
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

/** How many bytes become of the unit there; all of a pair's of its second, and none of its first. */
function sizeAt(json: string, index: number): number {
  const unit = charCodeAt(json, index)
  if (unit < 0x80) return 1
  if (unit < 0x800) return 2
  if (unit < 0xd800 || 0xdfff < unit) return 3
  const isHigh = unit < 0xdc00
  const other = charCodeAt(json, isHigh ? index + 1 : index - 1)
  if (isHigh && 0xdc00 <= other && other <= 0xdfff) return 0
  if (!isHigh && 0xd800 <= other && other <= 0xdbff) return 4
  // Behind the backslash of an escape, which so is none, another would make one of it.
  return isEscaped(json, index) ? REPLACEMENT : ESCAPE
}

function isEscaped(json: string, index: number): boolean {
  let start = index
  while (json[start - 1] === '\\') start -= 1
  return (index - start) % 2 === 1
}

/** The unit that the byte at `offset` is of. */
function unitAt(json: string, offset: number): number {
  let size = 0
  for (let index = 0; index < json.length; index += 1) {
    size += sizeAt(json, index)
    if (offset < size) return index
  }
  return json.length
}

// ───────────────────────────── within JSON.stringify ─────────────────────────────

/** What the engine made of a value that holds some: the same value as plain data, with them in their places. */
export class Revived {
  readonly value: object

  constructor(value: object) {
    this.value = value
  }
}

/** JSON.stringify is called by this module. */
let isOurs = false
/** Those that it came to. */
const NOBODY: RawJson[] = []
let met = NOBODY

/** Begins a string that stands for one in what JSON.stringify makes. Nobody can guess it. */
const MARK = `offloop:${randomUUID()}:`

function mark(raw: RawJson): string {
  if (met === NOBODY) met = []
  met[met.length] = raw
  return `${MARK}${met.length - 1}`
}

/** What JSON.stringify makes of a value. */
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
  const value: unknown = parseJson(text, (_, part: unknown) => {
    if (typeof part !== 'string' || sliceString(part, 0, MARK.length) !== MARK) return part
    return raws[toNumber(sliceString(part, MARK.length, part.length))]
  })
  // At the least it is one of them.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return new Revived(value as object)
}
