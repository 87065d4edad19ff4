export { createDeferQueue, type DeferQueue } from './defer.ts'
export { keepTrimmed, trimMemory } from './memory.ts'
export { monitorLoop, type LoopMonitor } from './loop.ts'
export type { LoopLag } from './window.ts'
