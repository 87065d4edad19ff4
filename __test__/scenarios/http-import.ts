/** Imports of `offloop/http` where undici is missing. */

import { changeModules } from '../fixtures/edit-module.ts'
import { expect, play } from '../fixtures/scenario.ts'

await play({
  missing: async () => {
    await changeModules({ missing: 'undici' })
    const error: unknown = await import('../../src/http/index.ts').catch((reason: unknown) => reason)
    const sentence =
      'offloop/http needs the package undici, which is not installed: run `npm install undici@7`, or undici@8 on Node 22.19 or newer.'
    expect(error instanceof Error && error.message === sentence, `a sentence, not ${String(error)}`)
    expect(Reflect.get(Object(error), 'code') === 'ERR_MODULE_NOT_FOUND', 'the code of Node')
    // The rest of offloop needs no undici.
    const { parse } = await import('../../src/index.ts')
    expect((await parse(Buffer.from('1'))) === 1, 'offloop to work')
  },
})
