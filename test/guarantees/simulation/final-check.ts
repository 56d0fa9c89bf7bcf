import type { Account } from './account.ts'
import type { StoreEnd } from './link.ts'
import type { Record } from './record.ts'

/** In the end every acknowledged job has ended, and the failed ones are listed as they were dispatched. */
export async function checkEnd(end: StoreEnd, acknowledged: readonly string[], record: Record): Promise<void> {
  const accounts = [...end.witness.accounts.values()]
  const known = new Set(accounts.map(({ envelope }) => envelope))
  for (const envelope of acknowledged)
    if (!known.has(envelope)) record.accuse(1, `an acknowledged job was never written: ${envelope}`)
  const failed = accounts.filter(({ home }) => home === 'failed')
  for (const account of failed) await checkFailed(end, account, record)
  await checkCounts(end, failed.length, record)
}

async function checkFailed({ admin }: StoreEnd, { id, envelope, failures }: Account, record: Record): Promise<void> {
  const row = await admin.findFailed(id)
  if (row?.envelope !== envelope) record.accuse(9, `job ${id} has failed and is not listed as it was dispatched`, [id])
  const attempts = await admin.attempts(id)
  if (attempts.length < failures)
    record.accuse(9, `${attempts.length} of ${failures} attempts of job ${id} are kept`, [id])
}

async function checkCounts({ admin }: StoreEnd, failed: number, record: Record): Promise<void> {
  const counts = await admin.counts()
  const left = counts.reduce((sum, { ready, running, scheduled }) => sum + ready + running + scheduled, 0)
  if (left > 0) record.accuse(2, `${left} jobs are left in the queues that nobody knows of`)
  const listed = counts.reduce((sum, each) => sum + each.failed, 0)
  if (failed !== listed) record.accuse(9, `${failed} jobs have failed, and ${listed} are listed`)
}
