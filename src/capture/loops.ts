/**
 * Loops that copy numbers out of an array, on the JS thread. Each is generated with eight elements a turn: V8 spends
 * more on a turn of a loop than on a number (2.6 → 1.0 ns). Each path node has loops of its own, so that they see
 * arrays of one kind.
 */

import { compile } from './compile.ts'
import type { CaptureContext } from './context.ts'

/**
 * Copies numbers from `start` to `end` into the stream, from `at` on. Returns how many it copied. An element that is
 * not such a number ends the copy and goes to `context.stopped`.
 */
export type CopyLoop<Stream> = (
  context: CaptureContext,
  value: readonly unknown[],
  start: number,
  end: number,
  stream: Stream,
  at: number,
) => number

const TURN = 8
const NO_INT = 'typeof x !== "number" || (x | 0) !== x'
const NO_NUMBER = 'typeof x !== "number"'

export function makeCopyInts(): CopyLoop<Int32Array> {
  return compile<CopyLoop<Int32Array>>([], INTS)()
}

export function makeCopyDoubles(): CopyLoop<Float64Array> {
  return compile<CopyLoop<Float64Array>>([], DOUBLES)()
}

function sourceOf(isOther: string): string {
  const steps = Array.from({ length: TURN }, (_, step) => copyOne(isOther, step)).join('')
  return `"use strict";
    return function copy(T, v, i, end, to, at) {
      let o = at;
      for (const last = end - ${TURN - 1}; i < last; i += ${TURN}, o += ${TURN}) { ${steps} }
      for (; i < end; i += 1, o += 1) { ${copyOne(isOther, 0)} }
      return o - at;
    };`
}

function copyOne(isOther: string, step: number): string {
  return `{ const x = v[i + ${step}]; if (${isOther}) { T.stopped = x; return o + ${step} - at; } to[o + ${step}] = x; }`
}

/** Sources of the loops, made on import. */
const INTS = sourceOf(NO_INT)
const DOUBLES = sourceOf(NO_NUMBER)
