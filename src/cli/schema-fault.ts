import { KhepriError } from '../core/errors.ts'
import type { MigrationStatus } from '../core/store/migrations.ts'
import { schemaMissing, tableMissing } from '../core/store/migrator.ts'
import { count } from './words.ts'

/** Why no worker could use these tables; null where they are current. label: the database as messages show it. */
export function schemaFault(
  { applied, pending, unknown, missing }: MigrationStatus,
  label: string,
): KhepriError | null {
  if (applied.length === 0) return schemaMissing(label)
  if (pending.length > 0)
    return new KhepriError(
      'SCHEMA_BEHIND',
      `the schema of ${label} is behind: ${count(pending.length, 'migration')} not applied`,
      { fix: 'khepri migrate' },
    )
  if (unknown.length > 0)
    return new KhepriError('SCHEMA_AHEAD', `the schema of ${label} is ahead of this khepri: ${unknown.join(', ')}`, {
      fix: 'use the khepri that wrote it, or a newer one',
    })
  return missing[0] === undefined ? null : tableMissing(missing[0], label)
}
