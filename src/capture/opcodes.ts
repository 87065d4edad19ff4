/**
 * The words of a tape. A word is `payload << 4 | tag`; some words draw from the other streams of their segment.
 * `crates/json/src/tape.rs` has a table of them. Capture writes them on the JS thread.
 */

// Tag 0 is an integer.
export const DOUBLE = 1
export const LATIN1 = 2
export const UTF16 = 3
export const ROPE = 4
export const LITERAL = 5
export const OPEN = 6
export const CLOSE = 7
export const ENTRY = 8
export const NAME = 9
export const INTS = 10
export const DOUBLES = 11
export const LONG = 12
export const TEXT = 13
export const DATE = 14
export const EXTRA = 15

export const NULL: number = LITERAL
export const TRUE: number = (1 << 4) | LITERAL
export const FALSE: number = (2 << 4) | LITERAL
export const OPEN_ARRAY: number = OPEN
export const OPEN_OBJECT: number = (1 << 4) | OPEN
export const OPEN_MAP: number = (2 << 4) | OPEN
export const CLOSE_ARRAY: number = CLOSE
export const CLOSE_OBJECT: number = (1 << 4) | CLOSE
export const CLOSE_MAP: number = (2 << 4) | CLOSE
export const ROW: number = EXTRA
export const BYTES: number = (1 << 4) | EXTRA
export const LONG_BYTES: number = (2 << 4) | EXTRA
export const RAW: number = (3 << 4) | EXTRA
export const ONLY_JSON: number = (4 << 4) | EXTRA
export const ONLY_MSGPACK: number = (5 << 4) | EXTRA
export const IN_BOTH: number = (6 << 4) | EXTRA

/** Payloads of `NAME` and `TEXT`: the stream that has the characters. */
export const IN_LATIN1 = 0
export const IN_UTF16 = 1
export const IN_ROPE = 2
export const IN_LONG = 3

/** Bound of integers that fit the payload of a word. */
export const MOST_INT: number = 2 ** 27
