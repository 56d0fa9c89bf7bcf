import { describe, expect, it, onTestFinished } from 'vitest'
import type { Admin } from '../../../src/core/store/admin.ts'
import type { Reservation, Store } from '../../../src/core/store/store.ts'
import { aJob, aRecord, aWish, leaseMs } from '../../../src/testing/conformance/builders.ts'
import { postgresSkipReason } from '../../support/postgres.ts'
import * as postgres from './postgres-support.ts'
import * as sqlite from './sqlite-support.ts'

interface Installation {
  /** The sleeper's store, another process's, and an operator's. */
  readonly mine: Store
  readonly other: Store
  readonly admin: Admin
}

const stores = {
  sqlite: async (): Promise<Installation> => {
    const path = await sqlite.migratedPath()
    return {
      mine: await sqlite.openStore(path),
      other: await sqlite.openStore(path),
      admin: await sqlite.openAdmin(path),
    }
  },
  postgres: async (): Promise<Installation> => {
    const url = await postgres.migratedDatabase()
    return {
      mine: await postgres.openStore(url),
      other: await postgres.openStore(url),
      admin: await postgres.openAdmin(url),
    }
  },
}

const profile = {
  ...{ name: 'w', version: '1', host: 'here', bootId: null, pidNamespace: null, pid: 1, pidStart: null },
  ...{ queues: 'default', concurrency: 1, leaseMs },
}

/** Waits for the next wake-up. */
class Sleeper {
  readonly #store: Store
  #next = Promise.withResolvers<void>()
  wakes = 0

  constructor(store: Store) {
    this.#store = store
  }

  async listen(): Promise<void> {
    const stop = await this.#store.listen?.(() => {
      this.wakes++
      this.#next.resolve()
      this.#next = Promise.withResolvers()
    })
    if (stop) onTestFinished(stop)
    await this.#store.beat({ kind: 'joining', worker: 1, profile })
  }

  /** Looks, finds nothing, says that it sleeps, lets somebody act, and answers what a wake-up then led to. */
  async wokenBy(act: () => Promise<unknown>): Promise<readonly Reservation[]> {
    expect(await this.#look()).toEqual([])
    const woken = this.#woken()
    await act()
    return woken
  }

  async #woken(): Promise<readonly Reservation[]> {
    for (;;) {
      await this.#next.promise
      const found = await this.#look()
      if (found.length > 0) return found
    }
  }

  async #look(): Promise<readonly Reservation[]> {
    const round = { worker: 1, settle: [], enqueue: [], disown: [], start: [] }
    return (await this.#store.exchange({ ...round, reserve: aWish({ limit: 1, sleepMs: 60_000 }) })).reserved
  }
}

describe.each(['sqlite', 'postgres'] as const)('a worker that sleeps on %s', (kind) => {
  const test = kind === 'postgres' ? it.skipIf(postgresSkipReason() !== null) : it

  test('is woken by a dispatch of another process', async () => {
    const { mine, other } = await stores[kind]()
    const sleeper = new Sleeper(mine)
    await sleeper.listen()
    for (let count = 0; count < 3; count++) expect(await sleeper.wokenBy(() => other.enqueue([aJob()]))).toHaveLength(1)
  })

  test('is woken by a job that another worker gives back, and by one that it retries at once', async () => {
    const { mine, other } = await stores[kind]()
    const sleeper = new Sleeper(mine)
    await other.beat({ kind: 'joining', worker: 2, profile })
    await other.enqueue([aJob(), aJob()])
    const round = { worker: 2, settle: [], enqueue: [], disown: [], start: [], reserve: null }
    const [first, second] = (await other.exchange({ ...round, reserve: aWish() })).reserved as [
      Reservation,
      Reservation,
    ]
    await sleeper.listen()
    const release = { id: first.id, fence: first.fence, kind: 'release', delayMs: null } as const
    expect(await sleeper.wokenBy(() => other.exchange({ ...round, settle: [release] }))).toMatchObject([
      { id: first.id },
    ])
    const retry = { id: second.id, fence: second.fence, kind: 'retry', delayMs: 0, attempt: aRecord() } as const
    expect(await sleeper.wokenBy(() => other.exchange({ ...round, settle: [retry] }))).toMatchObject([
      { id: second.id },
    ])
  })

  test('is woken by a recovery, by a manual retry and by a queue that goes on', async () => {
    const { mine, other, admin } = await stores[kind]()
    const sleeper = new Sleeper(mine)
    await other.beat({ kind: 'joining', worker: 2, profile })
    await other.enqueue([aJob(), aJob()])
    const round = { worker: 2, settle: [], enqueue: [], disown: [], start: [], reserve: null }
    const [dead, failing] = (await other.exchange({ ...round, reserve: aWish() })).reserved as [
      Reservation,
      Reservation,
    ]
    const fail = { id: failing.id, fence: failing.fence, kind: 'fail', reason: 'tries', attempt: aRecord() } as const
    await other.exchange({ ...round, settle: [fail] })
    await sleeper.listen()
    const observation = { observer: 3, gone: [2], rebooted: [], silent: false }
    expect(await sleeper.wokenBy(() => other.recover(observation))).toMatchObject([{ id: dead.id }])
    const failed = { id: failing.id, fence: failing.fence }
    expect(await sleeper.wokenBy(() => admin.retryFailed([failed], 0))).toMatchObject([{ id: failing.id }])
    await admin.pause(['default'], null, null)
    await other.enqueue([aJob()])
    expect(await sleeper.wokenBy(() => admin.resume(['default']))).toHaveLength(1)
  })
})

describe.skipIf(postgresSkipReason() !== null)('on postgres', () => {
  it('a dispatch notifies nobody while nobody sleeps', async () => {
    const { mine, other } = await stores.postgres()
    const sleeper = new Sleeper(mine)
    await sleeper.listen()
    await sleeper.wokenBy(() => other.enqueue([aJob()]))
    await mine.beat({ kind: 'leaving', worker: 1 })
    const before = sleeper.wakes
    for (let count = 0; count < 20; count++) await other.enqueue([aJob()])
    expect(sleeper.wakes - before).toBe(0)
  })
})

it('on sqlite nothing is heard of own commits, nor twice of one commit of others', async () => {
  const { mine, other } = await stores.sqlite()
  const sleeper = new Sleeper(mine)
  await sleeper.listen()
  await sleeper.wokenBy(() => other.enqueue([aJob()]))
  const before = sleeper.wakes
  for (let count = 0; count < 20; count++) await mine.beat({ kind: 'working', worker: 1 })
  await other.enqueue([aJob()])
  await other.enqueue([aJob()])
  expect(sleeper.wakes).toBe(before)
})
