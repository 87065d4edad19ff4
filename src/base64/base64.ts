/**
 * `decodeBase64` and `encodeBase64`: check the arguments, make memory for the result, and give the work to the addon. Small
 * inputs are done on the JS thread, large ones in tasks.
 */

import {
  allocate,
  allocateNow,
  checkBytes,
  checkSize,
  gather,
  gatherBytes,
  giveBack,
  resultOf,
  type Body,
  type Bytes,
  type Input,
} from '../runtime/bytes.ts'
import {
  charCodeAt,
  isUint8Array,
  lengthOf,
  now,
  sliceString,
  stringIncludes,
  writeBase64,
} from '../runtime/intrinsics.ts'
import {
  Base64Alphabet,
  Base64Decoder,
  Base64Mode,
  check,
  decodeBase64 as decodeInTask,
  decodeBase64InPlace,
  decodeBase64Part,
  decodeBase64Sync,
  decodeBase64TextSync,
  encodeBase64 as encodeInTask,
  encodeBase64Sync,
  InputBytes,
  unwrap,
  type Failure,
  type Stop,
} from '../runtime/native.ts'
import {
  choose,
  copyOptions,
  readBoolean,
  readLimit,
  readSignal,
  tableOf,
  type Bounded,
  type BytesInput,
  type Cancellable,
} from '../runtime/options.ts'
import { run } from '../runtime/pool.ts'
import { isWide, upToWide } from '../runtime/text.ts'

export interface Base64Options extends Cancellable, BytesInput, Bounded {
  /** `node`: as lenient as Buffer.from, never fails. `forgiving`: WHATWG atob, Uint8Array.fromBase64 'loose'. `strict`: Uint8Array.fromBase64 'strict' (padding and canonical bits required, ASCII whitespace skipped). @default 'forgiving' */
  readonly mode?: 'node' | 'forgiving' | 'strict' | undefined
  /** @default 'base64' ('node' mode accepts both at once, as Node does) */
  readonly alphabet?: 'base64' | 'base64url' | undefined
}

const MODES = tableOf({ node: Base64Mode.Node, forgiving: Base64Mode.Forgiving, strict: Base64Mode.Strict })
const ALPHABETS = tableOf({ base64: Base64Alphabet.Standard, base64url: Base64Alphabet.Url })
const DECODE_KEYS = tableOf({ mode: true, alphabet: true, maxBytes: true, transfer: true, signal: true })
const ENCODE_KEYS = tableOf({ alphabet: true, padding: true, transfer: true, signal: true })

/** Bytes up to this size block the event loop for less time if they are decoded or encoded at once than in a task. */
const AT_ONCE = 512 * 1024
/** Strings up to this length are decoded at once. The bound is higher than for bytes: a task would need a copy too. */
const AT_ONCE_TEXT = 1024 * 1024

/** Clean strings up to this length go to Node's own decoder, which needs no copy. Checking its result costs less than one. */
const SHORT_TEXT = 64 * 1024

/** Characters of the first part of a long string. Strings are immutable, so each turn of the loop copies one part. */
const FIRST_PART = 256 * 1024
/** Most characters of a part. */
const LARGEST_PART = 4 * 1024 * 1024
/** Milliseconds for which copying a part may block the event loop. V8 copies 20 one-byte characters a nanosecond, but checks only one two-byte character. */
const PART_MS = 0.8
/** Characters that are checked to measure a string: 1 µs if V8 stores one byte a character, 40 µs or more if it stores two. */
const SAMPLE = 64 * 1024
/** Milliseconds below which the check of a sample shows one byte a character. */
const SAMPLE_MS = 0.02

/** Character code of `=`. */
const PAD = 61

/** The error's `offset` is the first character that makes the text invalid. For non-canonical bits it is the last data character; for a lone character or missing padding it is the text's length. */
export async function decodeBase64(text: string | Body, options?: Base64Options): Promise<Bytes> {
  const config = options === undefined ? DEFAULT_DECODE : readDecodeConfig(options)
  if (typeof text === 'string') {
    checkSize('text', text.length, config.maxBytes)
    return isShort(text, config) ? decodeTextNow(text, config) : await decodeText(text, config)
  }
  if (!config.transfer && isUint8Array(text) && lengthOf(text) <= AT_ONCE) {
    checkSize('text', lengthOf(checkBytes('text', text)), config.maxBytes)
    return decodeNow(text, config)
  }
  const input = gather('text', text, config, (size) => allocate(mostDecoded(size)))
  return await decodeBody(input instanceof Promise ? await input : input, config)
}

export async function encodeBase64(
  bytes: Uint8Array,
  options?: {
    readonly alphabet?: 'base64' | 'base64url' | undefined
    /** @default true; false for base64url */
    readonly padding?: boolean | undefined
  } & Cancellable &
    BytesInput,
): Promise<Bytes> {
  const config = options === undefined ? DEFAULT_ENCODE : readEncodeConfig(options)
  const input = checkBytes('bytes', bytes)
  const size = encodedLength(lengthOf(input), config.padding)
  if (lengthOf(input) === 0 || (!config.transfer && lengthOf(input) <= AT_ONCE)) {
    const out = allocateNow(size)
    unwrap(encodeBase64Sync(input, out, config.alphabet, config.padding))
    return out
  }
  const out = allocate(size)
  const gathered = gatherBytes(input, config.transfer)
  try {
    const launch = (stop: Stop | undefined): Promise<number | Failure> =>
      encodeInTask(gathered.source, out, config.alphabet, config.padding, stop)
    unwrap(await run(launch, { signal: config.signal }))
    return out
  } catch (error) {
    giveBack(out)
    throw error
  } finally {
    gathered.end()
  }
}

/** Resolved options of `decodeBase64`. */
interface DecodeBase64Config {
  readonly mode: Base64Mode
  readonly alphabet: Base64Alphabet
  readonly maxBytes: number
  readonly transfer: boolean
  readonly signal: AbortSignal | undefined
}

const DEFAULT_DECODE: DecodeBase64Config = {
  mode: Base64Mode.Forgiving,
  alphabet: Base64Alphabet.Standard,
  maxBytes: Infinity,
  transfer: false,
  signal: undefined,
}

function readDecodeConfig(options: Base64Options): DecodeBase64Config {
  const { mode, alphabet, maxBytes, transfer, signal } = copyOptions(options, DECODE_KEYS)
  return {
    mode: choose('options.mode', mode, MODES, Base64Mode.Forgiving),
    alphabet: choose('options.alphabet', alphabet, ALPHABETS, Base64Alphabet.Standard),
    maxBytes: readLimit('options.maxBytes', maxBytes, 0),
    transfer: readBoolean('options.transfer', transfer, false),
    signal: readSignal(signal),
  }
}

type EncodeBase64Options = NonNullable<Parameters<typeof encodeBase64>[1]>

/** Resolved options of `encodeBase64`. */
interface EncodeBase64Config {
  readonly alphabet: Base64Alphabet
  readonly padding: boolean
  readonly transfer: boolean
  readonly signal: AbortSignal | undefined
}

const DEFAULT_ENCODE: EncodeBase64Config = {
  alphabet: Base64Alphabet.Standard,
  padding: true,
  transfer: false,
  signal: undefined,
}

function readEncodeConfig(options: EncodeBase64Options): EncodeBase64Config {
  const { alphabet, padding, transfer, signal } = copyOptions(options, ENCODE_KEYS)
  const chosen = choose('options.alphabet', alphabet, ALPHABETS, Base64Alphabet.Standard)
  return {
    alphabet: chosen,
    padding: readBoolean('options.padding', padding, chosen === Base64Alphabet.Standard),
    transfer: readBoolean('options.transfer', transfer, false),
    signal: readSignal(signal),
  }
}

/** Returns the most bytes that `length` characters can become. */
function mostDecoded(length: number): number {
  return Math.floor((length * 3) / 4)
}

function encodedLength(size: number, padding: boolean): number {
  return padding ? Math.ceil(size / 3) * 4 : Math.ceil((size * 4) / 3)
}

function decodeNow(text: Uint8Array, { mode, alphabet }: DecodeBase64Config): Bytes {
  const out = allocateNow(mostDecoded(lengthOf(text)))
  return resultOf(out, unwrap(decodeBase64Sync(text, out, mode, alphabet)))
}

/** Returns whether decoding at once does not block the event loop for long, as checking 1 MiB of two-byte characters would. */
function isShort(text: string, { mode }: DecodeBase64Config): boolean {
  if (text.length <= FIRST_PART || mode === Base64Mode.Node) return text.length <= AT_ONCE_TEXT
  if (AT_ONCE_TEXT < text.length) return false
  const begin = now()
  return isWide(sliceString(text, 0, SAMPLE)) || now() - begin < SAMPLE_MS
}

function decodeTextNow(text: string, { mode, alphabet }: DecodeBase64Config): Bytes {
  if (mode === Base64Mode.Forgiving && alphabet === Base64Alphabet.Standard && text.length <= SHORT_TEXT) {
    const clean = decodeClean(text)
    if (clean !== undefined) return clean
  }
  const latin1 = mode === Base64Mode.Node ? text : upToWide(text)
  const out = allocateNow(mostDecoded(latin1.length))
  return resultOf(out, unwrap(decodeBase64TextSync(latin1, out, mode, alphabet)))
}

/**
 * Decodes clean, padded text with Node's own decoder; returns undefined for all other text.
 *
 * Node skips foreign characters and stops at the first `=`. Either makes the result shorter than the length of the text
 * requires. Node also accepts the url alphabet and the low byte of two-byte characters, so both are looked for.
 */
export function decodeClean(text: string): Bytes | undefined {
  const { length } = text
  if (length % 4 !== 0) return undefined
  const size = (length / 4) * 3 - countPadding(text)
  const bytes = allocateNow(size)
  if (writeBase64(bytes, text, size) !== size) return undefined
  if (stringIncludes(text, '-') || stringIncludes(text, '_') || isWide(text)) return undefined
  return bytes
}

/** Returns how many of the last two characters are `=`. */
function countPadding(text: string): number {
  if (charCodeAt(text, text.length - 1) !== PAD) return 0
  return charCodeAt(text, text.length - 2) === PAD ? 2 : 1
}

async function decodeBody(input: Input, { mode, alphabet, signal }: DecodeBase64Config): Promise<Bytes> {
  const { source, taken } = input
  let out = taken
  try {
    const memory = taken ?? input.out ?? allocate(mostDecoded(source.length))
    out = memory
    if (source.length === 0) return memory
    const launch = (stop: Stop | undefined): Promise<number | Failure> =>
      taken === undefined
        ? decodeInTask(source, memory, mode, alphabet, stop)
        : decodeBase64InPlace(taken, mode, alphabet, stop)
    const length = unwrap(await run(launch, { signal }))
    return resultOf(memory, length)
  } catch (error) {
    if (out !== undefined) giveBack(out)
    throw error
  } finally {
    input.end(out)
  }
}

/** Decodes a long string with a task for each part, so that no copy blocks the event loop for long or needs much memory. */
async function decodeText(text: string, { mode, alphabet, signal }: DecodeBase64Config): Promise<Bytes> {
  const out = allocate(mostDecoded(text.length))
  const decoder = new Base64Decoder(mode, alphabet)
  const parts = new TextParts(text, mode)
  const launch = (stop: Stop | undefined): Promise<number | Failure> => {
    const source = parts.next()
    return decodeBase64Part(decoder, source, out, parts.isDone, stop)
  }
  try {
    let length = unwrap(await run(launch, { signal }))
    while (!parts.isDone) {
      // oxlint-disable-next-line no-await-in-loop -- a part starts where the decoder of the one before ended
      length = unwrap(await run(launch, { signal, first: true }))
    }
    return resultOf(out, length)
  } catch (error) {
    giveBack(out)
    throw error
  }
}

/** Copies a long string to native memory, one part at a time. */
class TextParts {
  readonly #text: string
  readonly #mode: Base64Mode
  #offset = 0
  #size = FIRST_PART

  constructor(text: string, mode: Base64Mode) {
    this.#text = text
    this.#mode = mode
  }

  get isDone(): boolean {
    return this.#text.length <= this.#offset
  }

  /** Copies the next part. */
  next(): InputBytes {
    const begin = now()
    const part = sliceString(this.#text, this.#offset, this.#offset + this.#size)
    const latin1 = this.#mode === Base64Mode.Node ? part : upToWide(part)
    const source = new InputBytes()
    check(source.copyText(latin1))
    // A two-byte character fails the call, so the rest of the text is not needed.
    this.#offset = latin1 === part ? this.#offset + part.length : this.#text.length
    this.#adapt(now() - begin)
    return source
  }

  /** Halves the next part after a slow one, and doubles it after a fast one, which saves tasks. */
  #adapt(milliseconds: number): void {
    if (milliseconds < PART_MS / 4) this.#size = Math.min(this.#size * 2, LARGEST_PART)
    else if (PART_MS < milliseconds) this.#size = Math.max(this.#size / 2, FIRST_PART)
  }
}
