/**
 * The loops that copy numbers out of an array. Each is generated, eight elements a turn: V8 spends more on a turn of a
 * loop than on a number (2.6 → 1.0 ns). And each place has its own, which so sees arrays of one kind.
 */

import { compile } from './compile.ts'
import type { Tape } from './tape.ts'

/** Copies numbers from `start` to `end` to the stream, at `at`; tells how many. What is none of them goes to `tape.stopped`. */
export type Copy<Stream> = (
  tape: Tape,
  value: readonly unknown[],
  start: number,
  end: number,
  stream: Stream,
  at: number,
) => number

const TURN = 8
const NO_INT = 'typeof x !== "number" || (x | 0) !== x'
const NO_NUMBER = 'typeof x !== "number"'

export function makeCopyInts(): Copy<Int32Array> {
  return make(NO_INT)
}

export function makeCopyDoubles(): Copy<Float64Array> {
  return make(NO_NUMBER)
}

function make<Stream>(isOther: string): Copy<Stream> {
  const steps = Array.from({ length: TURN }, (_, step) => copyOne(isOther, step)).join('')
  const source = `"use strict";
    return function copy(T, v, i, end, to, at) {
      let o = at;
      for (const last = end - ${TURN - 1}; i < last; i += ${TURN}, o += ${TURN}) { ${steps} }
      for (; i < end; i += 1, o += 1) { ${copyOne(isOther, 0)} }
      return o - at;
    };`
  return compile<Copy<Stream>>([], source)()
}

function copyOne(isOther: string, step: number): string {
  return `{ const x = v[i + ${step}]; if (${isOther}) { T.stopped = x; return o + ${step} - at; } to[o + ${step}] = x; }`
}
