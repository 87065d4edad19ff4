/** A worker that keeps idle results, and posts how much is idle. */

import { parentPort } from 'node:worker_threads'
import { encode, release, stats } from '../../src/index.ts'

const results = await Promise.all(Array.from({ length: 4 }, () => encode('x'.repeat(1 << 20))))
release(...results)
parentPort?.postMessage(stats().idleBytes)
// Stays until it is terminated.
setInterval(() => undefined, 1000)
