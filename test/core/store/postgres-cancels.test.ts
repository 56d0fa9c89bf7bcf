import { describe, expect, test } from 'vitest'
import { aWish, enqueueOne } from '../../../src/testing/conformance/builders.ts'
import { postgresSkipReason } from '../../support/postgres.ts'
import { inTransaction, migratedDatabase, openAdmin, openStore, untilItWaits } from './postgres-support.ts'

const nothing = { worker: 7, settle: [], enqueue: [], start: [], disown: [], reserve: null }

async function runningJob() {
  const url = await migratedDatabase()
  const [store, admin] = [await openStore(url), await openAdmin(url)]
  const id = await enqueueOne(store)
  const { reserved } = await store.exchange({ ...nothing, reserve: aWish() })
  return { url, store, admin, id, fence: reserved[0]?.fence ?? 0 }
}

describe.skipIf(postgresSkipReason())('a job that is cancelled on Postgres while its worker settles it', () => {
  test('is missing where the worker has completed it in that moment', async () => {
    const { url, admin, id } = await runningJob()
    const worker = await inTransaction(url, `delete from jobs where id = ${id}`)
    const cancelling = admin.cancel([id])
    await untilItWaits(url)
    await worker`commit`

    expect(await cancelling).toEqual({ cancelled: [], marked: [], missing: [id] })
  })

  test('is cancelled at once where the worker has given it back in that moment', async () => {
    const { url, admin, id } = await runningJob()
    const worker = await inTransaction(url, `update jobs set worker = null, started_at = null where id = ${id}`)
    const cancelling = admin.cancel([id])
    await untilItWaits(url)
    await worker`commit`

    expect(await cancelling).toEqual({ cancelled: [id], marked: [], missing: [] })
    expect(await admin.find(id)).toMatchObject({ home: 'ended', state: 'cancelled' })
  })

  test('is not retried by a worker that was waiting for the mark to be written', async () => {
    const { url, store, admin, id, fence } = await runningJob()
    const operator = await inTransaction(url, `update jobs set cancelled_at = 1 where id = ${id}`)
    const attempt = { attempt: 1, worker: 'w', startedAt: 0, endedAt: 1, errorType: 'Error', message: 'no' }
    const settling = store.exchange({
      ...nothing,
      settle: [{ id, fence, kind: 'retry', delayMs: 0, attempt: { ...attempt, stack: null, output: null } }],
    })
    await untilItWaits(url)
    await operator`commit`

    expect(await settling).toMatchObject({ lost: [], cancelled: [id] })
    expect(await admin.find(id)).toMatchObject({ home: 'ended', state: 'cancelled' })
  })

  test('is not reserved while the operator’s transaction is still open', async () => {
    const url = await migratedDatabase()
    const [store, admin] = [await openStore(url), await openAdmin(url)]
    const id = await enqueueOne(store)
    const operator = await inTransaction(url, `update jobs set cancelled_at = 1 where id = ${id}`)

    expect((await store.exchange({ ...nothing, reserve: aWish() })).reserved).toEqual([])
    await operator`commit`
    expect(await store.recover({ observer: 1, gone: [], rebooted: [], silent: true })).toMatchObject({ cancelled: 1 })
    expect(await admin.find(id)).toMatchObject({ state: 'cancelled' })
  })
})
