import type { Khepri } from '../app.ts'
import { examined, type Finding, fault, ok, warning } from '../core/findings.ts'
import { loadAll } from './loaded-jobs.ts'
import { isStartedByNpm } from './npm-parent.ts'
import { schemaFault } from './schema-fault.ts'
import { count } from './words.ts'

/** The process that asks, as far as it says how workers started like it would fare. */
export interface Circumstances {
  readonly env: NodeJS.ProcessEnv
  readonly pid: number
}

/**
 * Checks everything that a worker needs, and goes on after a fault where the next check does not depend on it.
 *
 * load: reads the configuration. Changes nothing, and never throws.
 */
export async function examine(load: () => Promise<Khepri>, circumstances: Circumstances): Promise<readonly Finding[]> {
  const here = [ok('node', `${process.versions.node}, ${process.platform} ${process.arch}`), judgeStart(circumstances)]
  try {
    return [...here, ...(await installation(await load()))]
  } catch (error) {
    return [...here, fault('config', error)]
  }
}

async function installation(app: Khepri): Promise<readonly Finding[]> {
  const { file } = app.config
  return [
    ok('config', file ?? 'no file; everything has its default'),
    ...(await judgeJobs(app)),
    ...(await judgeSchedules(app)),
    ...(await judgeDatabase(app)),
  ]
}

/** npm passes no signal on, and the first process of a container takes over what others leave behind. */
function judgeStart({ env, pid }: Circumstances): Finding {
  if (isStartedByNpm(env))
    return warning(
      'signals',
      'started by npm, which does not pass SIGTERM on: a worker would go on until it sees that npm is gone',
      'let supervisors call node_modules/.bin/khepri, or node with the bin file',
    )
  if (pid === 1)
    return warning(
      'signals',
      'this is process 1 of its container: what executables leave behind stays as zombies',
      'start the container with an init: docker run --init, or init: true in compose',
    )
  return ok('signals', 'reach this process')
}

async function judgeJobs(app: Khepri): Promise<readonly Finding[]> {
  try {
    const jobs = await loadAll(await app.registry())
    const broken = jobs.filter(({ terms }) => terms === null)
    if (broken.length > 0) return broken.map((job) => fault(`job ${job.name}`, job.fault))
    if (jobs.length > 0)
      return [ok('jobs', `${count(jobs.length, 'job')}, and ${jobs.length === 1 ? 'it loads' : 'all load'}`)]
    return [warning('jobs', 'none is registered', 'khepri init, or put a module into ./jobs')]
  } catch (error) {
    return [fault('jobs', error)]
  }
}

/** Each is asked for the job of a slot, as it will be when one comes. */
async function judgeSchedules(app: Khepri): Promise<readonly Finding[]> {
  const schedules = await app.schedules()
  const faults: Finding[] = []
  for (const schedule of schedules) {
    const { name } = schedule
    const found = await examined(`schedule ${name}`, async () => {
      await app.scheduledJob(schedule, { name, scheduledFor: 0, firedAt: 0, missed: 0 })
      return ok(`schedule ${name}`, 'can fire')
    })
    if (found.state === 'fault') faults.push(found)
  }
  if (schedules.length === 0 || faults.length > 0) return faults
  return [
    ok('schedules', `${count(schedules.length, 'schedule')}, and ${schedules.length === 1 ? 'it' : 'all'} can fire`),
  ]
}

/** Nothing ticks unless somebody is told to. */
async function judgeTicking(app: Khepri): Promise<readonly Finding[]> {
  const { unwatched, watchFix } = await import('./unwatched.ts')
  const text = await unwatched(app)
  return text === null ? [] : [warning('ticking', text, watchFix)]
}

/** Tables are not asked of a database that cannot be reached. */
async function judgeDatabase(app: Khepri): Promise<readonly Finding[]> {
  const found = await app.checkup()
  const isThere = found.some(({ check, state }) => check === 'database' && state === 'ok')
  if (!isThere) return found
  const schema = await examined('schema', () => judgeSchema(app))
  return [...found, schema, ...(schema.state === 'ok' ? await judgeTicking(app) : [])]
}

async function judgeSchema(app: Khepri): Promise<Finding> {
  const status = await (await app.migrations()).status()
  const wrong = schemaFault(status, app.config.database.label)
  if (wrong !== null) throw wrong
  return ok('schema', `at ${status.applied.at(-1)}`)
}
