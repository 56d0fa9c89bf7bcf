import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { tableNames } from '../../../src/core/store/names.ts'
import { statementsFor } from '../../../src/core/store/sqlite/statements.ts'
import { aWish, migratedPath } from './sqlite-support.ts'

const statements = statementsFor(tableNames('jobs', 'failed_jobs'))
const everyPart = aWish({ only: ['a'], except: ['b'], exclude: [1], suspects: false })

const named = aWish({ queues: [['a'], ['b']] })

/** Held jobs, suspects and jobs that are too new are few, and have indexes of their own. */
const fewOnly = /INDEX jobs_(held|suspect|newer)/

/** Statements that run while workers wait. Those beyond 64 levels may scan a queue, but by its index. */
const hot: Record<string, string> = {
  ...Object.fromEntries(
    Object.entries(statements).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  ),
  level: statements.level(aWish()),
  'level, every part of the filter': statements.level(everyPart),
  levelDue: statements.levelDue(everyPart),
  beyond: statements.beyond(everyPart),
  beyondDue: statements.beyondDue(everyPart),
  suspectDue: statements.suspectDue(aWish()),
  'suspectDue, every part of the filter': statements.suspectDue(everyPart),
  newer: statements.newer(aWish()),
  'newer, every part of the filter': statements.newer(everyPart),
}

async function database(analysed: boolean): Promise<Database.Database> {
  const db = new Database(await migratedPath())
  onTestFinished(() => void db.close())
  const insert = db.prepare(
    `insert into jobs (queue, priority, available_at, job, version, enqueued_at, envelope) values (?, ?, ?, 'note', 1, 0, '')`,
  )
  db.exec('begin')
  for (let id = 0; id < 2_000; id++) insert.run(`q${id % 3}`, id % 5, id)
  db.exec('commit')
  if (analysed) db.exec('analyze')
  return db
}

function planOf(db: Database.Database, text: string): string[] {
  const statement = db.prepare(`explain query plan ${text}`)
  const parameters = Object.fromEntries([...text.matchAll(/:(\w+)/g)].map(([, name]) => [name, null]))
  return (statement.all(parameters) as { detail: string }[]).map(({ detail }) => detail)
}

describe.each([{ analysed: false }, { analysed: true }])('with 2,000 jobs, analysed: $analysed', ({ analysed }) => {
  test.each(Object.entries(hot))('%s reads no table of jobs or attempts from end to end', async (_, text) => {
    const plan = planOf(await database(analysed), text)

    const scans = plan.filter((step) => /^SCAN (j|jobs|jobs_attempts)\b/.test(step) && !fewOnly.test(step))
    expect(scans).toEqual([])
  })

  test('the jobs of a level come out of the index in order, without a sort', async () => {
    const plan = planOf(await database(analysed), statements.level(everyPart))

    expect(plan[0]).toBe('SEARCH jobs USING INDEX jobs_ready (queue=? AND priority=? AND available_at<?)')
    expect(plan.join('\n')).not.toContain('TEMP B-TREE FOR ORDER BY')
  })

  test.each([
    ['suspectDue', statements.suspectDue(named), 'SEARCH jobs USING INDEX jobs_suspect (queue=? AND available_at<?)'],
    ['newer', statements.newer(named), 'SEARCH jobs USING INDEX jobs_newer (queue=? AND available_at<?)'],
    ['abandoned', statements.abandoned, 'SEARCH jobs USING INDEX jobs_cancelled (cancelled_at>?)'],
    ['heldByDead', statements.heldByDead, 'SEARCH j USING COVERING INDEX jobs_held (worker=? AND rowid>?)'],
    ['chores', statements.chores, 'SEARCH jobs USING INDEX jobs_cancelled (cancelled_at>?)'],
    ['cancelled', statements.cancelled, 'SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)'],
  ])('%s asks an index that is empty nearly always, or by id', async (_, text, step) => {
    expect(planOf(await database(analysed), text)).toContain(step)
  })
})
