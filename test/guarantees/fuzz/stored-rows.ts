import { join } from 'node:path'
import Database from 'better-sqlite3'
import { type KhepriProject, migratedProject } from '../../support/khepri-project.ts'
import type { Ended } from '../../support/live.ts'
import { Seeded } from '../simulation/seeded.ts'
import { anEnvelope } from './envelopes.ts'
import { awkwardWord } from './mutation.ts'
import { judgeEnd } from './target.ts'

/**
 * Rows that somebody else wrote into the table: a worker runs them all, and the commands for failed jobs show them.
 *
 * Answers what was wrong. seed: of this batch.
 */
export async function feedRows(seed: number, count: number): Promise<readonly string[]> {
  using project = await migratedProject({ 'jobs/note.mjs': 'export default () => {}' })
  writeRows(project, { seed, count })
  const worked = await project.khepri(['work', '--queue=*', '--stop-when-empty', '--concurrency=20'])
  const left = project.count()
  const commands = [['failed'], ['failed', '--json'], ['failed', '--by=error'], ['retry', '--all'], ['flush', '--all']]
  const ended: [string, Ended][] = [['work', worked]]
  for (const argv of commands) ended.push([argv.join(' '), await project.khepri(argv)])
  const wrong = ended.flatMap(([name, each]) => [
    ...judgeEnd(each).map((what) => `${name}: ${what}: ${each.stderr.slice(0, 500)}`),
    ...(each.code === 0 || name === 'retry --all' ? [] : [`${name} exited ${each.code}: ${each.stderr.slice(0, 500)}`]),
  ])
  const total = sumOf(worked.stdout)
  if (left > 0) wrong.push(`${left} of ${count} rows are neither done nor failed`)
  if (total !== count) wrong.push(`${count} rows came to ${total} ends`)
  return wrong.map(
    (what) =>
      `rows of seed ${seed}: ${what}\n  replay: feedRows(${seed}, ${count}) of test/guarantees/fuzz/stored-rows.ts`,
  )
}

/** How many attempts came to an end, by the line with which the worker stops. */
function sumOf(stdout: string): number {
  const [, done, retried, failed] = /stopped: (\d+) done, (\d+) retried, (\d+) failed/.exec(stdout) ?? []
  return Number(done) + Number(retried) + Number(failed)
}

const insertion = `insert into jobs (queue, priority, available_at, job, unique_key, version, enqueued_at, envelope)
  values (?, ?, 0, ?, ?, 1, 0, ?)`

function writeRows({ path }: KhepriProject, { seed, count }: { readonly seed: number; readonly count: number }): void {
  const db = new Database(join(path, 'khepri.db'))
  const insert = db.prepare(insertion)
  db.transaction(() => {
    for (let row = 0; row < count; row++) insert.run(...aRow(new Seeded(seed * 1_000_003 + row)))
  })()
  db.close()
}

/** Some are no text at all, and some no Unicode: SQLite keeps whatever it is given. */
function aRow(dice: Seeded): readonly (string | number | Buffer | null)[] {
  const { text, column } = anEnvelope(dice)
  const queue = dice.chance(0.8) ? 'default' : awkwardWord(dice)
  const envelope = dice.chance(0.05) ? Buffer.from(text.slice(0, 40), 'latin1') : text
  const job = dice.chance(0.95) ? column : awkwardWord(dice)
  return [queue, dice.whole(-2, 2), job, null, envelope]
}
