import type { Look, Neighbour, Sight } from '../store.ts'
import type { Row } from './connection.ts'
import type { Values } from './connections.ts'
import { anyParents, now, type Relations } from './fragments.ts'
import { due, isPaused, type Scope, wanted, wantedOfAnyVersion } from './reserving.ts'
import { filterValues } from './round.ts'
import { bigints } from './statement.ts'

/** What a worker asks about once a second: one statement that changes and locks nothing, and one row of an answer. */
export function look(tables: Relations, scope: Scope): string {
  const { jobs, workers } = tables
  const served = scope === 'all' ? '' : 'j.queue = any(:queues::text[]) and '
  const waiting = `${served}${due} and j.queue <> all(:exceptQueues::text[]) and not ${isPaused(tables, 'j.queue')}`
  return `select
  exists (select from ${workers} w where w.id = :worker::bigint and w.dead_at is null) as known,
  exists (select from ${workers} w where w.id = :worker::bigint and w.restart_at is not null) as restart,
  (select json_agg(j.id) from ${jobs} j where j.id = any(:held::bigint[]) and j.cancelled_at is not null) as cancelled,
  (select json_agg(json_build_object('worker', w.id, 'bootId', w.boot_id, 'pidNamespace', w.pid_namespace, 'pid', w.pid,
      'pidStart', w.pid_start))
    from ${workers} w where w.host = :host::text and w.dead_at is null and w.id <> :worker::bigint) as neighbours,
  (select ${now} - min(j.available_at) from ${jobs} j
    where j.suspect = 1 and ${waiting} and ${wanted}) as suspect_wait,
  exists (select from ${jobs} j
    where j.version > 1 and ${waiting} and ${wantedOfAnyVersion} and j.version > :maxVersion::bigint) as newer,
  ${anyParents(tables.parents)} as waiting`
}

/** The parameters of a look. */
export function lookValues({ worker, host, held, filter }: Look): Values {
  return { worker, host, held: bigints(held), ...filterValues(filter) }
}

/** Reads the row of its answer. */
export function sightOf(row: Row | undefined): Sight {
  return {
    known: row?.known === true,
    restart: row?.restart === true,
    cancelled: (row?.cancelled ?? []) as readonly number[],
    neighbours: (row?.neighbours ?? []) as readonly Neighbour[],
    suspectWaitMs: (row?.suspect_wait ?? null) as number | null,
    newer: row?.newer === true,
    waiting: row?.waiting === true,
  }
}
