/**
 * Errors: failures of data, of arguments, and of the system. Made on the JS thread; every file of the facade uses it.
 */

import { constants } from 'node:os'
import { getSystemErrorMap, inspect } from 'node:util'

/** Stable identifiers. Messages may change, codes do not. */
export type ErrorCode =
  | 'ERR_OFFLOOP_BASE64' // text is not base64 in the mode asked for; `offset`
  | 'ERR_OFFLOOP_JSON' // bytes are not JSON; `offset` is the byte where
  | 'ERR_OFFLOOP_LIFT' // a lifted value is not of the kind asked for; `pointer`, `offset`
  | 'ERR_OFFLOOP_EXPERTS' // a routed-experts payload is malformed or does not fit; `turn`
  | 'ERR_OFFLOOP_UNSUPPORTED' // a value that the options given refuse to encode; `pointer`
  | 'ERR_OFFLOOP_TORN' // policy 'strict' found a tail to repair; `path`, `offset`
  | 'ERR_OFFLOOP_CORRUPT' // not a JSONL file with a torn tail, or a bad row where the call was told to refuse them; `path`, `offset`
  | 'ERR_OFFLOOP_LOCKED' // another process or handle holds the file; `path`
  | 'ERR_OFFLOOP_POISONED' // an earlier write or sync of this handle failed; reopen it; `path`, `cause`
  | 'ERR_OFFLOOP_CLOSED' // the handle, snapshot, queue or store is closed
  | 'ERR_OFFLOOP_FULL' // a bounded queue or store refuses more; nothing was taken
  | 'ERR_OFFLOOP_TOO_LARGE' // an item cannot fit the limit given, or memory for the result cannot be had
  | 'ERR_OFFLOOP_STATUS' // a server answered with a status other than 2xx; `status`
  | 'ERR_OFFLOOP_INTERNAL' // a bug in offloop, caught; the process and the other tasks go on

interface Details {
  readonly offset?: number | undefined
  readonly pointer?: string | undefined
  readonly path?: string | undefined
  readonly turn?: number | undefined
  readonly status?: number | undefined
  readonly cause?: unknown
}

/** A failure of data. File-system failures keep Node's shape: `code: 'ENOSPC'`, `errno`, `syscall`, `path`. */
export class OffloopError extends Error {
  static {
    // The name stands on the prototype, as with built-in errors, so that the stack begins with it.
    Object.defineProperty(this.prototype, 'name', { value: 'OffloopError', configurable: true, writable: true })
  }

  readonly code: ErrorCode
  /** Byte of the input or file. For text given as a JS string: UTF-16 code unit. */
  declare readonly offset?: number
  /** JSON Pointer to the value. */
  declare readonly pointer?: string
  /** File. */
  declare readonly path?: string
  /** Index in the list of turns. */
  declare readonly turn?: number
  /** HTTP status. */
  declare readonly status?: number

  /** @internal */
  constructor(code: ErrorCode, message: string, details: Details = {}) {
    const { cause, ...places } = details
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    for (const [name, value] of Object.entries(places)) {
      if (value !== undefined) {
        Object.defineProperty(this, name, { value, enumerable: true, configurable: true, writable: true })
      }
    }
  }
}

/** Makes the error for a result without memory. */
export function isTooLarge(error: unknown): boolean {
  return error instanceof OffloopError && error.code === 'ERR_OFFLOOP_TOO_LARGE'
}

/**
 * Makes the error for an argument of the wrong type, in Node's words. A `name` with a dot is a property of an argument.
 */
export function invalidType(name: string, expected: string, value: unknown): TypeError {
  const error = new TypeError(`The "${name}" ${kindOf(name)} must be ${expected}. Received ${described(value)}`)
  return Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' })
}

export function invalidValue(name: string, reason: string, value: unknown): TypeError {
  const error = new TypeError(`The ${kindOf(name)} '${name}' ${reason}. Received ${inspected(value)}`)
  return Object.assign(error, { code: 'ERR_INVALID_ARG_VALUE' })
}

export function outOfRange(name: string, range: string, value: unknown): RangeError {
  const error = new RangeError(
    `The value of "${name}" is out of range. It must be ${range}. Received ${inspected(value)}`,
  )
  return Object.assign(error, { code: 'ERR_OUT_OF_RANGE' })
}

/**
 * Makes the error for a refusal of the system, in the words of Node's fs. `errno` is libuv's; `text` is what the system
 * says, for errors unknown to libuv.
 */
export function systemError(errno: number, text: string, syscall: string, path: string): Error {
  const [code, reason] = getSystemErrorMap().get(errno) ?? [nameOf(errno), text]
  const hint = syscall === 'flock' ? ' (`lock: false` does without)' : ''
  return Object.assign(new Error(`${code}: ${reason}, ${syscall} '${path}'${hint}`), { errno, code, syscall, path })
}

function nameOf(errno: number): string {
  return Object.entries(constants.errno).find(([, number]) => number === -errno)?.[0] ?? 'UNKNOWN'
}

function kindOf(name: string): string {
  return name.includes('.') ? 'property' : 'argument'
}

function described(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (typeof value === 'function') return `function ${value.name}`
  if (typeof value === 'object') return `an instance of ${constructorName(value)}`
  return `type ${typeof value} (${inspected(value)})`
}

/** Returns the name of an object's constructor, even if its getters throw. */
function constructorName(value: object): string {
  try {
    const { constructor } = value
    return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'Object'
  } catch {
    // A getter may throw anything.
    return 'Object'
  }
}

/** Prints any value in one short line. */
function inspected(value: unknown): string {
  const text = inspect(value, { depth: 0, breakLength: Infinity, customInspect: false, maxStringLength: 64 })
  return text.length <= 128 ? text : `${text.slice(0, 128)}...`
}
