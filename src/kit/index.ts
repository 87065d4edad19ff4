export { keepTrimmed, trimMemory } from './memory.ts'
