/** Keeping the loop free. */

export { createBatcher, type Batcher } from './batcher.ts'
