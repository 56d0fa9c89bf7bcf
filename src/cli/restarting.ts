import { sleep, systemClock } from '../core/clock.ts'
import type { Admin, WorkerRow } from '../core/store/admin.ts'
import type { WorkerId } from '../core/store/store.ts'
import { stateOf } from './worker-list.ts'

/** A worker that is gone: it left by itself, or its silence says that it will not. */
export interface Gone {
  readonly id: WorkerId
  readonly fate: 'stopped' | 'dead'
}

const lookEveryMs = 200

/** After so long, and again each time as much has passed, it is said who is waited for. */
const patienceMs = 10_000

/** Waits until workers are gone, and tells of each; from time to time it says which are not. */
export async function* goneOf(
  admin: Admin,
  asked: readonly WorkerId[],
  onPatience: (left: readonly WorkerRow[]) => void,
): AsyncGenerator<Gone> {
  let toldAt = systemClock.monotonic()
  for (let left = asked; left.length > 0; ) {
    const rows = new Map((await admin.workers()).map((worker) => [worker.id, worker]))
    const gone = left.flatMap((id) => goneAs(id, rows.get(id)) ?? [])
    yield* gone
    left = left.filter((id) => !gone.some((one) => one.id === id))
    if (left.length === 0) return
    if (systemClock.monotonic() - toldAt >= patienceMs) {
      toldAt = systemClock.monotonic()
      onPatience(left.flatMap((id) => rows.get(id) ?? []))
    }
    await sleep(systemClock, lookEveryMs)
  }
}

function goneAs(id: WorkerId, row: WorkerRow | undefined): Gone | null {
  if (row === undefined) return { id, fate: 'stopped' }
  const state = stateOf(row, Date.now())
  return state === 'dead' || state === 'silent' ? { id, fate: 'dead' } : null
}
