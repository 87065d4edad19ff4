/** `offloop/kit`: tools that keep the event loop free. */

export { createBatcher, type Batcher } from './batcher.ts'
export { createDeferQueue, type DeferQueue } from './defer.ts'
export { keepTrimmed, trimMemory } from './memory.ts'
export { monitorLoop, type LoopMonitor } from './loop.ts'
export type { LoopLag } from './window.ts'
export { createRolloutStore, type RolloutStore } from './store.ts'
