import { sleep, systemClock } from '../core/clock.ts'
import type { Admin, Cancelled, FoundJob } from '../core/store/admin.ts'
import type { JobId } from '../core/store/store.ts'
import { inChunks } from './selection.ts'

/** Cancels jobs chunk by chunk, each in a transaction of its own: whoever stops half-way leaves every job whole. */
export async function cancelAll(
  admin: Admin,
  ids: readonly JobId[],
  onProgress: (done: number) => void,
): Promise<Cancelled> {
  const total = { cancelled: [] as JobId[], marked: [] as JobId[], missing: [] as JobId[] }
  for (const chunk of inChunks(ids)) {
    const { cancelled, marked, missing } = await admin.cancel(chunk)
    total.cancelled.push(...cancelled)
    total.marked.push(...marked)
    total.missing.push(...missing)
    onProgress(total.cancelled.length + total.marked.length + total.missing.length)
  }
  return total
}

/** How a cancelled job ended. */
export interface Ending {
  readonly id: JobId
  readonly state: 'cancelled' | 'done' | 'failed'
}

/** A marked job is looked at so often; its worker looks once a second. */
const lookEveryMs = 200

/** After so long, and again each time as much has passed, it is said who is waited for. */
const patienceMs = 10_000

/** Waits until marked jobs have ended, and says how, one by one; from time to time it says which have not. */
export async function* endingsOf(
  admin: Admin,
  marked: readonly JobId[],
  onPatience: (left: readonly JobId[]) => Promise<void>,
): AsyncGenerator<Ending> {
  let toldAt = systemClock.monotonic()
  for (let left = marked; ; ) {
    const ended = await endedOf(admin, left)
    yield* ended
    left = left.filter((id) => !ended.some((ending) => ending.id === id))
    if (left.length === 0) return
    if (systemClock.monotonic() - toldAt >= patienceMs) {
      toldAt = systemClock.monotonic()
      await onPatience(left)
    }
    await sleep(systemClock, lookEveryMs)
  }
}

/** What runs is left alone; what somebody has given back meanwhile is ended here, as there may be no worker to do it. */
async function endedOf(admin: Admin, marked: readonly JobId[]): Promise<readonly Ending[]> {
  const running = new Set(await admin.selectLive({ ids: marked, state: 'running' }))
  const rest = marked.filter((id) => !running.has(id))
  if (rest.length === 0) return []
  const { cancelled, missing } = await admin.cancel(rest)
  const endings: Ending[] = cancelled.map((id) => ({ id, state: 'cancelled' }))
  for (const id of missing) endings.push({ id, state: endingIn(await admin.find(id)) })
  return endings
}

/** A job of which nothing is left was done: nobody keeps those unless told to. */
function endingIn(found: FoundJob | null): Ending['state'] {
  return found?.state === 'cancelled' || found?.state === 'failed' ? found.state : 'done'
}
