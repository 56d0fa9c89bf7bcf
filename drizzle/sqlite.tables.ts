import { sqliteTables } from '../src/core/store/sqlite/schema.ts'
import { placeholderNames } from './placeholders.ts'

export const { jobs, failed, ended, attempts, workers, queues, schedules, slots, ticks, parents } =
  sqliteTables(placeholderNames)
