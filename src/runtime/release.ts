/** `release`: gives results back to the result pool, on the JS thread. `src/index.ts` exports it. */

import type { RoutedExperts } from '../experts/experts.ts'
import { isView, propertyOf } from './intrinsics.ts'
import { releaseView } from './results.ts'

/**
 * Gives results back so that later results reuse their memory. V8 counts every new ArrayBuffer and collects the whole
 * heap for each 32–140 MB of them; a program that releases its results, or hands them on with `transfer: true`, does not
 * pay for that. The views are empty afterwards. Views that are not whole results of 64 KiB or more are left alone. Never
 * throws. As with any transfer of memory: bytes that a socket or file is still writing must not be released before that
 * write has ended.
 */
export function release(...results: readonly (ArrayBufferView | RoutedExperts)[]): void {
  for (let index = 0; index < results.length; index += 1) releaseResult(results[index])
}

function releaseResult(result: unknown): void {
  if (isView(result)) releaseView(result)
  else if (typeof result === 'object' && result !== null) releaseView(dataOf(result))
}

function dataOf(result: object): unknown {
  try {
    return propertyOf(result, 'data')
  } catch {
    // A getter threw: the object is no result.
    return undefined
  }
}
