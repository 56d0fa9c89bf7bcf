export type { Opened } from './conformance/context.ts'
export { type Harness, storeConformance } from './conformance.ts'
export { ManualClock } from './manual-clock.ts'
