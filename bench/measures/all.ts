import { adds } from './adds.ts'
import { cold } from './cold.ts'
import { crowds } from './crowded.ts'
import { drains } from './drains.ts'
import { idle } from './idle.ts'
import { kill } from './kill.ts'
import type { Measure } from './measure.ts'
import { pickUp } from './pick-up.ts'
import { snapshot } from './snapshot.ts'

/** Everything that is measured, in the order of the tables. */
export const measures: readonly Measure[] = [...adds, ...drains, ...crowds, snapshot, pickUp, idle, cold, kill]
