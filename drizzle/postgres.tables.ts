import { pgSchema } from 'drizzle-orm/pg-core'
import { postgresTables } from '../src/core/store/postgres/schema.ts'
import { placeholderNames, placeholderSchema } from './placeholders.ts'

export const schema = pgSchema(placeholderSchema)
export const { jobs, failed, ended, attempts, workers, queues, schedules, slots, ticks, parents } = postgresTables(
  placeholderNames,
  placeholderSchema,
)
