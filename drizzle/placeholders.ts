import type { TableNames } from '../src/core/store/names.ts'

/** Stands for the real names in the generated files; the migrator puts an installation's own in their place. */
export const placeholderNames: TableNames = {
  jobs: '$jobs',
  failed: '$failed',
  ended: '$ended',
  attempts: '$attempts',
  workers: '$workers',
  queues: '$queues',
  schedules: '$schedules',
  slots: '$slots',
  ticks: '$ticks',
  parents: '$parents',
  migrations: '$migrations',
}

/** Stands for the Postgres schema of an installation. */
export const placeholderSchema = '$schema'
