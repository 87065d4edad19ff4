import { compileFunction } from 'node:vm'

/** A function of this source. `--disallow-code-generation-from-strings` forbids the first way, and does not concern the second. */
// What it gives is what the caller says its source does.
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function compile<T>(parameters: readonly string[], source: string): (...values: readonly unknown[]) => T {
  try {
    // oxlint-disable-next-line typescript/no-implied-eval, typescript/no-unsafe-type-assertion
    return new Function(parameters.join(','), source) as (...values: readonly unknown[]) => T
  } catch (error) {
    if (!(error instanceof EvalError)) throw error
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return compileFunction(source, parameters) as (...values: readonly unknown[]) => T
  }
}
