import { anyParents, now, type Relations, rung } from './fragments.ts'
import { levels, markedLevels, reservation, type Scope, type Start } from './reserving.ts'
import { completions, followUps, otherEndings, starts } from './settling.ts'

/** One statement for a whole round: whatever it names happens together. */
export function exchange(tables: Relations, scope: Scope, size: 'lean' | 'full', start: Start = 'everywhere'): string {
  const parts = [
    ...(start === 'marks' ? [markedLevels(tables)] : levels(tables, scope)),
    ...completions(tables),
    ...starts(tables),
    ...(size === 'full' ? [...otherEndings(tables), ...followUps(tables)] : []),
    ...reservation(tables, scope, start),
    slept(tables),
    ...(size === 'full' ? [rung(tables, freesNow)] : []),
  ]
  const answers = [reservedRows, refused('asked_done', 'done', 'settle'), refused('asked_start', 'begun', 'start')]
  if (size === 'full') answers.push(refused('asked_end', 'held', 'settle'), cancelledRows, followedRows, rungRows)
  answers.push(childRows(tables, size === 'full' ? ['done', 'kept', 'cancelling', 'failing'] : ['done']))
  return `with recursive ${parts.join(',\n')}\n${answers.join('\nunion all ')}`
}

const reservedRows = `select 'reserved' as kind, null::bigint as place, t.id, t.fence, t.job, t.queue, t.priority,
  t.available_at, t.enqueued_at, t.failures, t.crashes, t.suspect, t.envelope from taken t`

const noJob = 'null, null, null, null, null, null, null, null, null'

function refused(asked: string, accepted: string, kind: string): string {
  return `select '${kind}', null, a.id, a.fence, ${noJob} from ${asked} a
  where not exists (select from ${accepted} d where d.id = a.id and d.fence = a.fence)`
}

/** Whoever finds nothing says that it sleeps, in the same moment. */
function slept({ workers }: Relations): string {
  return `slept as (update ${workers} w set asleep_until = ${now} + :sleepMs::bigint
  where w.id = :worker::bigint and :sleepMs::bigint > 0 and not exists (select from taken))`
}

/** What is given back, and what was dispatched with a completion, may be somebody else's at once. */
const freesNow = `exists (select from held h where h.kind in ('release', 'retry') and coalesce(h.delay, 0) <= 0)
  or exists (select from added)`

const rungRows = `select 'rung', null, null, null, ${noJob} from rung`

const cancelledRows = `select 'cancelled', null, h.id, h.fence, ${noJob} from held h where h.kind <> h.asked`

/**
 * Who waited for what has ended. In the order of the key, so that it is a look into the index for each, whatever the
 * planner takes the table for; and nothing at all where nobody waits.
 */
function childRows({ parents }: Relations, ended: readonly string[]): string {
  const all = ended.map((part) => `select d.id from ${part} d`).join(' union all ')
  return `select 'child', null, c.child, null, ${noJob} from (${all}) e,
  lateral (select p.child from ${parents} p where p.parent = e.id order by p.parent, p.child) c
  where ${anyParents(parents)}`
}

const followedRows = `select 'followed', f.place, f.id, null, ${noJob} from followed f join added a on a.id = f.id`
