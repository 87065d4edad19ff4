/** Compiles generated code. Runs on the JS thread; `function-source.ts` and `loops.ts` call it. */

import { compileFunction } from 'node:vm'

// Taken on import.
const { Function: Code } = globalThis

/**
 * Makes a function of the source. Where `--disallow-code-generation-from-strings` forbids `new Function`, `node:vm`
 * still compiles.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows what its source returns
export function compile<T>(parameters: readonly string[], source: string): (...values: readonly unknown[]) => T {
  try {
    // oxlint-disable-next-line typescript/no-implied-eval, typescript/no-unsafe-type-assertion -- the source is ours; the caller knows its type
    return (parameters.length === 0 ? new Code(source) : new Code(parameters.join(','), source)) as (
      ...values: readonly unknown[]
    ) => T
  } catch (error) {
    if (!(error instanceof EvalError)) throw error
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller knows the type of its source
    return compileFunction(source, parameters) as (...values: readonly unknown[]) => T
  }
}
