/** Loads undici, an optional peer dependency, on the JS thread. The other files of this folder get it here. */

import type * as Undici from 'undici'

const MISSING = /Cannot find package 'undici'/

/** The package undici, 7 or 8. */
export const undici: typeof Undici = await load()

async function load(): Promise<typeof Undici> {
  try {
    return await import('undici')
  } catch (error) {
    if (!(error instanceof Error) || !MISSING.test(error.message)) throw error
    const text =
      'offloop/http needs the package undici, which is not installed: run `npm install undici@7`, or undici@8 on Node 22.19 or newer.'
    throw Object.assign(new Error(text, { cause: error }), { code: 'ERR_MODULE_NOT_FOUND' })
  }
}
