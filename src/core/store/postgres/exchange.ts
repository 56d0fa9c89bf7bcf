import type { Relations } from './fragments.ts'
import { levels, reservation, type Scope } from './reserving.ts'
import { completions, followUps, otherEndings, starts } from './settling.ts'

/** One statement for a whole round: whatever it names happens together. */
export function exchange(tables: Relations, scope: Scope, size: 'lean' | 'full'): string {
  const parts = [
    ...levels(tables, scope),
    ...completions(tables),
    ...starts(tables),
    ...(size === 'full' ? [...otherEndings(tables), ...followUps(tables)] : []),
    ...reservation(tables, scope),
  ]
  const answers = [reservedRows, refused('asked_done', 'done', 'settle'), refused('asked_start', 'begun', 'start')]
  if (size === 'full') answers.push(refused('asked_end', 'held', 'settle'), cancelledRows, followedRows)
  return `with recursive ${parts.join(',\n')}\n${answers.join('\nunion all ')}`
}

const reservedRows = `select 'reserved' as kind, null::bigint as place, t.id, t.fence, t.job, t.queue, t.priority,
  t.available_at, t.enqueued_at, t.failures, t.crashes, t.suspect, t.envelope from taken t`

const noJob = 'null, null, null, null, null, null, null, null, null'

function refused(asked: string, accepted: string, kind: string): string {
  return `select '${kind}', null, a.id, a.fence, ${noJob} from ${asked} a
  where not exists (select from ${accepted} d where d.id = a.id and d.fence = a.fence)`
}

const cancelledRows = `select 'cancelled', null, h.id, h.fence, ${noJob} from held h where h.kind <> h.asked`

const followedRows = `select 'followed', f.place, f.id, null, ${noJob} from followed f join added a on a.id = f.id`
