import { isKhepriError } from '../errors.ts'
import type { Waiting } from './continuations.ts'
import type { BeforeFreeing, JobId, Observation, Recovery, WorkerId } from './store.ts'

/** In the column `suspect`: a worker died that held the job unstarted, and it comes to be started or not at all. */
export const survivor = 2

/** What there is to do; nearly always nothing, and then nothing is locked. */
export interface Chores {
  /** Somebody is to be declared dead. */
  readonly judge: boolean
  /** Dead workers hold jobs. */
  readonly free: boolean
  /** Cancelled jobs are held by nobody. */
  readonly end: boolean
  /** Workers have been dead for so long that nothing of theirs can come any more. */
  readonly forget: boolean
  /** Jobs are held under the number of a worker that has no row. */
  readonly adopt: boolean
  /** Jobs wait for others. */
  readonly release: boolean
}

/** The steps of recovery in one kind of database. A change does all of what it names or nothing. */
export interface RecoverySteps {
  chores(observation: Observation): Promise<Chores>
  judge(observation: Observation): Promise<readonly WorkerId[]>
  /** Everybody who has been declared dead and whose row still stands. */
  dead(): Promise<readonly WorkerId[]>
  /** Some of what dead workers hold, upwards from an id. */
  heldByDead(after: JobId): Promise<readonly JobId[]>
  /** Answers how many jobs were freed. */
  free(ids: readonly JobId[]): Promise<number>
  /** Some of the cancelled jobs that nobody holds, upwards from an id. */
  abandoned(after: JobId): Promise<readonly JobId[]>
  /** Answers how many jobs were ended. */
  end(ids: readonly JobId[]): Promise<number>
  forget(): Promise<void>
  /**
   * Gives the workers without a row one that has beaten just now, with the observer's lease, so that they are judged as
   * others are: where they live, their beats keep it, otherwise silence frees what they hold. It costs the jobs nothing.
   */
  adopt(observer: WorkerId): Promise<void>
  /** Some of the jobs that wait for others, upwards from an id. Reads only. */
  waiting(after: JobId): Promise<Waiting>
  /** Judges jobs by their parents: those that wait for nothing any more are due, or cancelled. Answers how many. */
  release(ids: readonly JobId[]): Promise<number>
  /** Jobs whose columns hold what no statement can compare, so that they never run: among a part of them at each call. */
  malformed(): Promise<readonly JobId[]>
}

/** Recovery as every SQL store does it: in bounded batches, and past rows that the database refuses to change. */
export class RecoveryPass {
  readonly #steps: RecoverySteps
  readonly #reported = new Set<JobId>()
  /** The last of the jobs that wait for others that was looked at. */
  #releasedUpTo: JobId = 0

  constructor(steps: RecoverySteps) {
    this.#steps = steps
  }

  /** See `Store.recover`. */
  async run(observation: Observation, beforeFreeing?: BeforeFreeing): Promise<Recovery> {
    const steps = this.#steps
    const chores = await steps.chores(observation)
    const dead = chores.judge ? await steps.judge(observation) : []
    const freed = chores.free || dead.length > 0 ? await this.#free(beforeFreeing) : nothing
    const ended =
      chores.end || freed.done > 0 ? await inBatches(steps.abandoned.bind(steps), steps.end.bind(steps)) : nothing
    if (chores.forget) await steps.forget()
    if (chores.adopt) await steps.adopt(observation.observer)
    const released = chores.release ? await this.#release() : nothing
    const bad = [...freed.bad, ...ended.bad, ...released.bad, ...(await steps.malformed())]
    return { dead, freed: freed.done, cancelled: ended.done, released: released.done, bad: this.#unreported(bad) }
  }

  /** Goes on where it stopped the last time: completions release at once, so that there is hardly ever anything to do. */
  async #release(): Promise<Changed> {
    const { settled, upTo } = await this.#steps.waiting(this.#releasedUpTo)
    this.#releasedUpTo = upTo ?? 0
    return settled.length === 0 ? nothing : sparing(settled, (ids) => this.#steps.release(ids))
  }

  #free(beforeFreeing: BeforeFreeing | undefined): Promise<Changed> {
    const steps = this.#steps
    const next = async (after: JobId): Promise<readonly JobId[]> => {
      const ids = await steps.heldByDead(after)
      // Asked after the jobs: whoever holds one of them is among the dead by now, also if a neighbour has judged it.
      if (ids.length > 0 && beforeFreeing) await beforeFreeing(await steps.dead())
      return ids
    }
    return inBatches(next, steps.free.bind(steps))
  }

  /** A row that stays bad is met every time, and named once. */
  #unreported(bad: readonly JobId[]): readonly JobId[] {
    return bad.filter((id) => !this.#reported.has(id) && this.#reported.add(id))
  }
}

/** How many rows were changed, and which the database refuses to change. */
interface Changed {
  readonly done: number
  readonly bad: readonly JobId[]
}

type Change = (ids: readonly JobId[]) => Promise<number>

const nothing: Changed = { done: 0, bad: [] }

/** Goes upwards through the ids, so that a bad row is not met twice. */
async function inBatches(next: (after: JobId) => Promise<readonly JobId[]>, change: Change): Promise<Changed> {
  const batches: Changed[] = []
  for (let ids = await next(0); ids.length > 0; ids = await next(ids.at(-1) ?? 0))
    batches.push(await sparing(ids, change))
  return together(batches)
}

/** Changes rows at once, and one by one where that fails, so that one bad row never stops the rest. */
async function sparing(ids: readonly JobId[], change: Change): Promise<Changed> {
  try {
    return { done: await change(ids), bad: [] }
  } catch (error) {
    if (!isRefusal(error)) throw error
    if (ids.length === 1) return { done: 0, bad: ids }
  }
  const each: Changed[] = []
  for (const id of ids) each.push(await sparing([id], change))
  return together(each)
}

function together(all: readonly Changed[]): Changed {
  return { done: all.reduce((sum, { done }) => sum + done, 0), bad: all.flatMap(({ bad }) => bad) }
}

/** The database is there and well, but does not want this: a trigger, a constraint, a damaged page. */
function isRefusal(error: unknown): boolean {
  return isKhepriError(error) && error.code === 'STORE_FAILED'
}
