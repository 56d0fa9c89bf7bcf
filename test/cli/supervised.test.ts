import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { notifySetting, Supervised } from '../../src/cli/supervised.ts'
import { EventBus } from '../../src/core/events.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

/** A worker whose life the test decides on, and what its supervisor hears. */
class Watched {
  readonly clock = new ManualClock()
  readonly events = new EventBus()
  readonly heard: string[] = []
  readonly ready = Promise.withResolvers<void>()
  readonly supervised: Supervised
  done = 0
  #loop: Promise<void> = Promise.resolve()

  constructor(watchdogMs: number | null = null) {
    const counts = { running: 0, retried: 0, failed: 0, released: 0, cancelled: 0, lost: 0 }
    this.supervised = new Supervised({
      handle: {
        ready: this.ready.promise,
        turned: () => this.#loop,
        counts: () => ({ ...counts, done: this.done }),
      },
      events: this.events,
      clock: this.clock,
      send: async (assignments) => void this.heard.push(assignments.join(' ')),
      watchdogMs,
    })
  }

  hang(): void {
    this.#loop = new Promise(() => {})
  }

  async pass(seconds: number): Promise<void> {
    await this.clock.advance(seconds * 1_000)
  }

  /** What was said about one thing. */
  about(name: string): readonly string[] {
    return this.heard.filter((text) => text.includes(`${name}=`))
  }
}

it('says READY when the first reservation is answered, and not before', async () => {
  const worker = new Watched()
  await worker.pass(5)
  expect(worker.about('READY')).toEqual([])
  worker.ready.resolve()
  await turn()
  expect(worker.heard).toEqual(['READY=1 STATUS=0 running, 0 done, 0 retried, 0 failed'])
})

it('tells the counts every 10 s, and only when they have changed', async () => {
  const worker = new Watched()
  worker.ready.resolve()
  await worker.pass(30)
  worker.done = 7
  await worker.pass(30)
  expect(worker.about('STATUS').slice(1)).toEqual(['STATUS=0 running, 7 done, 0 retried, 0 failed'])
})

it('feeds the watchdog three times within its interval, until the loop hangs', async () => {
  const worker = new Watched(30_000)
  await worker.pass(30)
  expect(worker.about('WATCHDOG')).toHaveLength(3)
  worker.hang()
  await worker.pass(120)
  expect(worker.about('WATCHDOG')).toHaveLength(3)
})

it('says nothing to a watchdog that nobody has set', async () => {
  const worker = new Watched(null)
  await worker.pass(120)
  expect(worker.about('WATCHDOG')).toEqual([])
})

it('a drain says STOPPING once, and asks for 30 s more every 10 s for as long as it lasts', async () => {
  const worker = new Watched()
  worker.ready.resolve()
  await turn()
  worker.events.emit('worker.draining', { worker: 'web1', reason: 'signal', running: 1 })
  await worker.pass(30)
  expect(worker.about('STOPPING')).toEqual([
    'STOPPING=1 STATUS=draining: 0 running, 0 done, 0 retried, 0 failed EXTEND_TIMEOUT_USEC=30000000',
  ])
  expect(worker.about('EXTEND_TIMEOUT_USEC')).toHaveLength(4)
  await worker.supervised.close()
  await worker.pass(30)
  expect(worker.about('EXTEND_TIMEOUT_USEC')).toHaveLength(4)
})

it('takes the socket and the watchdog out of the environment, so that jobs cannot speak for the worker', () => {
  const env = { NOTIFY_SOCKET: '/run/systemd/notify', WATCHDOG_USEC: '30000000', WATCHDOG_PID: '7', HOME: '/root' }
  expect(notifySetting(env, 7)).toEqual({
    env: { NOTIFY_SOCKET: '/run/systemd/notify', WATCHDOG_USEC: '30000000', WATCHDOG_PID: '7', HOME: '/root' },
    watchdogMs: 30_000,
  })
  expect(env).toEqual({ HOME: '/root' })
})

it('a watchdog that is meant for another process is not ours', () => {
  expect(notifySetting({ WATCHDOG_USEC: '30000000', WATCHDOG_PID: '8' }, 7).watchdogMs).toBeNull()
})
