import { tryOnce } from './campaign.ts'
import { type Fault, faultsOf, type Place } from './faults.ts'
import { operations } from './operations.ts'
import { withPostgres, withSqlite } from './run.ts'
import type { Site } from './site.ts'

/** Replays one case, as a violation names it: `node replay.ts STORE OPERATION FAULT AT`. */

const [, , store, name, fault, at] = process.argv
const operation = operations.find((each) => each.name === name)
const isKnown =
  (store === 'sqlite' || store === 'postgres') && (faultsOf[store] as readonly string[]).includes(fault ?? '')

if (operation && isKnown) {
  const place: Place = { store, operation: operation.name, fault: fault as Fault, at: Number(at) }
  const replay = async ([site]: readonly Site[]): Promise<void> => {
    const { violations, wasReached } = await tryOnce(site as Site, operation, place)
    if (!wasReached) console.log('it ended before that statement')
    console.log(violations.join('\n') || 'nothing is wrong')
    if (violations.length > 0) process.exitCode = 1
  }
  await (store === 'sqlite' ? withSqlite(1, replay) : withPostgres(1, replay))
} else {
  console.error(`usage: replay.ts sqlite|postgres OPERATION FAULT AT
operations: ${operations.map((each) => each.name).join(', ')}
faults: sqlite: ${faultsOf.sqlite.join(', ')}; postgres: ${faultsOf.postgres.join(', ')}`)
  process.exitCode = 2
}
