import { KhepriError } from '../errors.ts'

/** The tables of one installation. All names follow from two settings, so that two installations share a database. */
export interface TableNames {
  readonly jobs: string
  readonly failed: string
  /** Cancelled jobs, and done ones where they are kept. */
  readonly ended: string
  readonly attempts: string
  readonly workers: string
  /** Paused queues. */
  readonly queues: string
  /** Definitions of schedules, and how far each has come. */
  readonly schedules: string
  /** Slots that somebody has taken. */
  readonly slots: string
  /** When anybody looked at the schedules last. */
  readonly ticks: string
  /** Which jobs wait for which others. */
  readonly parents: string
  readonly migrations: string
}

const allowed = /^[a-z_][a-z0-9_]{0,39}$/

/** Derives every table name. Throws CONFIG_INVALID unless both are 1 to 40 of [a-z0-9_] and differ. */
export function tableNames(table: string, failedTable: string): TableNames {
  for (const [key, value] of Object.entries({ table, failedTable }))
    if (!allowed.test(value))
      throw new KhepriError(
        'CONFIG_INVALID',
        `${key} must be 1 to 40 of a-z, 0-9 and _, not beginning with a digit, got ${JSON.stringify(value)}`,
      )
  const names: TableNames = {
    jobs: table,
    failed: failedTable,
    ended: `${table}_ended`,
    attempts: `${table}_attempts`,
    workers: `${table}_workers`,
    queues: `${table}_queues`,
    schedules: `${table}_schedules`,
    slots: `${table}_slots`,
    ticks: `${table}_ticks`,
    parents: `${table}_parents`,
    migrations: `${table}_migrations`,
  }
  if (new Set(Object.values(names)).size !== Object.values(names).length)
    throw new KhepriError(
      'CONFIG_INVALID',
      `failedTable ${JSON.stringify(failedTable)} is a name that table ${JSON.stringify(table)} uses itself`,
    )
  return names
}
