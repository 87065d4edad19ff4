/**
 * Runs one test of test262 with `encodeSync` in place of JSON.stringify. The test runs in the realm of offloop, so that
 * brands and prototypes are the same. `test262.spec.ts` starts it, a process for each test and mode.
 */

import { readFileSync } from 'node:fs'
import { createContext, runInContext, runInThisContext } from 'node:vm'
import { encodeSync } from '../../src/index.ts'
import { play } from '../fixtures/scenario.ts'

const { TEST262_FILES = '', TEST262_MODE = '' } = process.env

/** Does what JSON.stringify does, with the text of `encodeSync`. */
function stringify(value: unknown, replacer: unknown, space: unknown): string | undefined {
  try {
    const bytes: Buffer = Reflect.apply(encodeSync, undefined, [value, { replacer, space }])
    return bytes.toString()
  } catch (error) {
    if (error instanceof TypeError && Reflect.get(error, 'code') === 'ERR_INVALID_ARG_VALUE') return undefined
    throw error
  }
}

/** The functions that a host gives to tests. */
const $262 = {
  createRealm: (): unknown => ({ global: runInContext('globalThis', createContext()) }),
}

await play({
  run() {
    Object.assign(globalThis, { $262 })
    Object.assign(JSON, { stringify })
    const files = TEST262_FILES.split('\n')
    for (const [index, file] of files.entries()) {
      const isTest = index === files.length - 1
      const directive = isTest && TEST262_MODE === 'strict' ? '"use strict";\n' : ''
      runInThisContext(directive + readFileSync(file, 'utf8'), { filename: file })
    }
  },
})
