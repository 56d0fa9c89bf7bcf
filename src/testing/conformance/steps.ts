import type { Admin, FailedFilter, FoundJob } from '../../core/store/admin.ts'
import type { JobId, NewJob, Recovery } from '../../core/store/store.ts'
import { enqueueOne, gather, leaseMs } from './builders.ts'
import type { Context } from './context.ts'
import { idsOf } from './test-worker.ts'

/** Lets the first worker's lease run out; the second lives on and looks. */
export async function loseFirst({ clock, second }: Context): Promise<Recovery> {
  await second.join()
  await clock.advance(leaseMs)
  await second.beat()
  await clock.advance(1)
  return second.recover()
}

/** Dispatches a job and lets it fail for good. */
export async function failOne(context: Context, parts: Partial<NewJob> = {}, message = 'it broke'): Promise<JobId> {
  const { store, first } = context
  const id = await enqueueOne(store, parts)
  await first.fail(await first.reserveOne({ queues: 'all' }), { message })
  return id
}

/** Tells what has become of a job. */
export async function stateOf(admin: Admin, id: JobId | undefined): Promise<FoundJob['state'] | null> {
  return (await admin.find(id ?? 0))?.state ?? null
}

/** Lists failed jobs by their ids. */
export async function listed(admin: Admin, filter: FailedFilter = {}, limit: number | null = null) {
  return idsOf(await gather(admin.failed(filter, limit)))
}
