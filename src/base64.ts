import {
  allocate,
  allocateNow,
  checkBytes,
  gather,
  gatherBytes,
  resultOf,
  sourceOf,
  type Body,
  type Bytes,
  type Input,
} from './bytes.ts'
import { charCodeAt, isUint8Array, lengthOf, now, sliceString, stringIncludes, writeBase64 } from './intrinsics.ts'
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
  Source,
  unwrap,
  type Failure,
  type Stop,
} from './native.ts'
import { checkKeys, choose, readBoolean, readSignal, tableOf, type BytesInput, type Cancellable } from './options.ts'
import { run } from './pool.ts'
import { isWide, upToWide } from './text.ts'

export interface Base64Options extends Cancellable, BytesInput {
  /** `node`: Buffer.from's leniency, never fails. `forgiving`: WHATWG atob = Uint8Array.fromBase64 'loose'. `strict`: Uint8Array.fromBase64 'strict' (padding and canonical bits required; ASCII whitespace skipped). @default 'forgiving' */
  readonly mode?: 'node' | 'forgiving' | 'strict' | undefined
  /** @default 'base64' ('node' mode takes both at once, as Node does) */
  readonly alphabet?: 'base64' | 'base64url' | undefined
}

const MODES = tableOf({ node: Base64Mode.Node, forgiving: Base64Mode.Forgiving, strict: Base64Mode.Strict })
const ALPHABETS = tableOf({ base64: Base64Alphabet.Standard, base64url: Base64Alphabet.Url })
const DECODE_KEYS = tableOf({ mode: true, alphabet: true, transfer: true, signal: true })
const ENCODE_KEYS = tableOf({ alphabet: true, padding: true, transfer: true, signal: true })

/** Bytes up to this size cost the thread less when they are decoded or encoded at once than as a task. */
const AT_ONCE = 512 * 1024
/** The same for strings, which have to be copied in any case. */
const AT_ONCE_TEXT = 1024 * 1024

/** Clean strings up to this size are left to `Buffer.from`, which need not copy them: checking its result costs less. */
const SHORT_TEXT = 64 * 1024

// Strings are immutable, so a long one is copied part by part, each in its turn of the loop.
const FIRST_PART = 256 * 1024
const LARGEST_PART = 4 * 1024 * 1024
/** How long copying a part may hold the thread. V8 copies 20 one-byte characters a nanosecond, and checks one wide one. */
const PART_MS = 0.8
/** So many characters are checked in a microsecond where each is one byte, and in 40 or more where it is two. */
const SAMPLE = 64 * 1024
const SAMPLE_MS = 0.02

/** `=` */
const PAD = 61

/** `offset` of the error: the first character that makes the text invalid; for non-canonical bits the last data character; for a lone character or missing padding the text's length. */
export async function decodeBase64(text: string | Body, options?: Base64Options): Promise<Bytes> {
  const rules = options === undefined ? DEFAULT_RULES : readRules(options)
  if (typeof text === 'string') {
    return isShort(text, rules) ? decodeTextNow(text, rules) : await decodeText(text, rules)
  }
  if (!rules.transfer && isUint8Array(text) && lengthOf(text) <= AT_ONCE)
    return decodeNow(checkBytes('text', text), rules)
  const input = gather('text', text, rules, (size) => allocate(mostDecoded(size)))
  return await decodeBody(input instanceof Promise ? await input : input, rules)
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
  const form = options === undefined ? DEFAULT_FORM : readForm(options)
  const input = checkBytes('bytes', bytes)
  const size = encodedLength(lengthOf(input), form.padding)
  if (lengthOf(input) === 0 || (!form.transfer && lengthOf(input) <= AT_ONCE)) {
    const out = allocateNow(size)
    unwrap(encodeBase64Sync(input, out, form.alphabet, form.padding))
    return out
  }
  const out = allocate(size)
  const source = sourceOf(gatherBytes(input, form.transfer))
  try {
    const launch = (stop: Stop | undefined): Promise<number | Failure> =>
      encodeInTask(source, out, form.alphabet, form.padding, stop)
    unwrap(await run(launch, { signal: form.signal }))
    return out
  } finally {
    source.clear()
  }
}

interface Rules {
  readonly mode: Base64Mode
  readonly alphabet: Base64Alphabet
  readonly transfer: boolean
  readonly signal: AbortSignal | undefined
}

const DEFAULT_RULES: Rules = {
  mode: Base64Mode.Forgiving,
  alphabet: Base64Alphabet.Standard,
  transfer: false,
  signal: undefined,
}

function readRules(options: Base64Options): Rules {
  checkKeys(options, DECODE_KEYS)
  const { mode, alphabet, transfer, signal } = options
  return {
    mode: choose('options.mode', mode, MODES, Base64Mode.Forgiving),
    alphabet: choose('options.alphabet', alphabet, ALPHABETS, Base64Alphabet.Standard),
    transfer: readBoolean('options.transfer', transfer, false),
    signal: readSignal(signal),
  }
}

type EncodeOptions = NonNullable<Parameters<typeof encodeBase64>[1]>

interface Form {
  readonly alphabet: Base64Alphabet
  readonly padding: boolean
  readonly transfer: boolean
  readonly signal: AbortSignal | undefined
}

const DEFAULT_FORM: Form = { alphabet: Base64Alphabet.Standard, padding: true, transfer: false, signal: undefined }

function readForm(options: EncodeOptions): Form {
  checkKeys(options, ENCODE_KEYS)
  const { alphabet, padding, transfer, signal } = options
  const chosen = choose('options.alphabet', alphabet, ALPHABETS, Base64Alphabet.Standard)
  return {
    alphabet: chosen,
    padding: readBoolean('options.padding', padding, chosen === Base64Alphabet.Standard),
    transfer: readBoolean('options.transfer', transfer, false),
    signal: readSignal(signal),
  }
}

/** The most bytes that so many characters become. */
function mostDecoded(length: number): number {
  return Math.floor((length * 3) / 4)
}

function encodedLength(size: number, padding: boolean): number {
  return padding ? Math.ceil(size / 3) * 4 : Math.ceil((size * 4) / 3)
}

function decodeNow(text: Uint8Array, { mode, alphabet }: Rules): Bytes {
  const out = allocateNow(mostDecoded(lengthOf(text)))
  return resultOf(out, unwrap(decodeBase64Sync(text, out, mode, alphabet)))
}

/** Whether decoding it at once is no long block: checking a megabyte of two-byte characters would be. */
function isShort(text: string, { mode }: Rules): boolean {
  if (text.length <= FIRST_PART || mode === Base64Mode.Node) return text.length <= AT_ONCE_TEXT
  if (AT_ONCE_TEXT < text.length) return false
  const begin = now()
  return isWide(sliceString(text, 0, SAMPLE)) || now() - begin < SAMPLE_MS
}

function decodeTextNow(text: string, { mode, alphabet }: Rules): Bytes {
  if (mode === Base64Mode.Forgiving && alphabet === Base64Alphabet.Standard && text.length <= SHORT_TEXT) {
    const clean = decodeClean(text)
    if (clean !== undefined) return clean
  }
  const latin1 = mode === Base64Mode.Node ? text : upToWide(text)
  const out = allocateNow(mostDecoded(latin1.length))
  return resultOf(out, unwrap(decodeBase64TextSync(latin1, out, mode, alphabet)))
}

/**
 * What `Buffer.from` makes of clean, padded text; undefined where it cannot be told from what it makes of other text. It
 * skips foreign characters and stops at the first `=`: each of them leaves room that the length of the text
 * would fill. It takes the url alphabet as well, and the low byte of wide characters.
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

/** How many of its last two characters are `=`. */
function countPadding(text: string): number {
  if (charCodeAt(text, text.length - 1) !== PAD) return 0
  return charCodeAt(text, text.length - 2) === PAD ? 2 : 1
}

async function decodeBody({ source, taken, out }: Input, { mode, alphabet, signal }: Rules): Promise<Bytes> {
  if (source === undefined) {
    const length = unwrap(await run((stop) => decodeBase64InPlace(taken, mode, alphabet, stop), { signal }))
    return resultOf(taken, length)
  }
  try {
    const memory = out ?? allocate(mostDecoded(source.length))
    if (source.length === 0) return memory
    const length = unwrap(await run((stop) => decodeInTask(source, memory, mode, alphabet, stop), { signal }))
    return resultOf(memory, length)
  } finally {
    source.clear()
  }
}

/** A task for each part: it needs no more recycled memory than a part, and no part holds the thread for long. */
async function decodeText(text: string, { mode, alphabet, signal }: Rules): Promise<Bytes> {
  const out = allocate(mostDecoded(text.length))
  const decoder = new Base64Decoder(mode, alphabet)
  const parts = new Parts(text, mode)
  const launch = (stop: Stop | undefined): Promise<number | Failure> => {
    const source = parts.next()
    return decodeBase64Part(decoder, source, out, parts.isDone, stop)
  }
  let length = unwrap(await run(launch, { signal }))
  while (!parts.isDone) {
    // Each part continues what the one before has left.
    // oxlint-disable-next-line no-await-in-loop
    length = unwrap(await run(launch, { signal, first: true }))
  }
  return resultOf(out, length)
}

/** A long string, a part at a time. */
class Parts {
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

  next(): Source {
    const begin = now()
    const part = sliceString(this.#text, this.#offset, this.#offset + this.#size)
    const latin1 = this.#mode === Base64Mode.Node ? part : upToWide(part)
    const source = new Source()
    check(source.copyText(latin1))
    // Behind a character that fails the call nothing is of interest.
    this.#offset = latin1 === part ? this.#offset + part.length : this.#text.length
    this.#adapt(now() - begin)
    return source
  }

  /** One part too long is not repeated; where one costs little, the next spares tasks. */
  #adapt(milliseconds: number): void {
    if (milliseconds < PART_MS / 4) this.#size = Math.min(this.#size * 2, LARGEST_PART)
    else if (PART_MS < milliseconds) this.#size = Math.max(this.#size / 2, FIRST_PART)
  }
}
