/**
 * `npm run test:faults`: what `npm test` does to logs and saved files in a short form, in full: 10,000 kills, every error of every
 * system call, power cuts on real file systems, and mutants of the product, each of which a test has to find.
 */

import { env, run } from './steps.mjs'

const { code } = await run('ava --timeout=3h __test__/faults/*.spec.ts', { env: { ...env, OFFLOOP_FAULTS: 'full' } })
process.exitCode = code
