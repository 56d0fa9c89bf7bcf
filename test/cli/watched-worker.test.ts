import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { isWell, readHealth } from '../../src/cli/health.ts'
import { watchWorker } from '../../src/cli/watched-worker.ts'
import { EventBus } from '../../src/core/events.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { TempProject } from '../support/temp-project.ts'

const counts = { running: 0, done: 0, retried: 0, failed: 0, released: 0, cancelled: 0, lost: 0 }

/** A worker whose loop turns until it is told to hang. */
async function watched(healthFile: string, maxMemoryBytes?: number) {
  const clock = new ManualClock()
  const ready = Promise.withResolvers<void>()
  const events = new EventBus()
  const drains: (string | undefined)[] = []
  let loop: Promise<void> = Promise.resolve()
  const worker = await watchWorker({
    handle: {
      worker: 'web1',
      ready: ready.promise,
      turned: () => loop,
      counts: () => counts,
      drain: (reason) =>
        drains.push(reason) && events.emit('worker.draining', { worker: 'web1', reason: 'asked', running: 0 }),
    },
    watched: { healthFile, healthPort: undefined, maxMemoryBytes },
    events,
    clock,
  })
  const hang = (): void => {
    loop = new Promise(() => {})
  }
  return { worker, clock, ready, drains, hang }
}

it('a health file says starting, working, draining and stuck, each when it is so', async () => {
  using project = new TempProject()
  const file = join(project.path, 'health')
  const { worker, clock, ready, hang } = await watched(file)
  expect(readHealth(file)).toMatchObject({ worker: 'web1', pid: process.pid, state: 'starting', counts })
  expect(isWell(readHealth(file), clock.now())).toBe(false)
  ready.resolve()
  await clock.advance(1_000)
  expect(readHealth(file).state).toBe('working')
  expect(isWell(readHealth(file), clock.now())).toBe(true)
  hang()
  await clock.advance(15_000)
  expect(readHealth(file).state).toBe('working')
  await clock.advance(3_000)
  expect(readHealth(file).state).toBe('stuck')
  expect(isWell(readHealth(file), clock.now())).toBe(false)
  await worker.close()
  expect(existsSync(file)).toBe(false)
})

it('a health file that nobody has kept for 15 s is no sign of health', async () => {
  using project = new TempProject()
  const file = join(project.path, 'health')
  const { worker, clock, ready } = await watched(file)
  ready.resolve()
  await clock.advance(1_000)
  const last = readHealth(file)
  expect(isWell(last, clock.now() + 15_000)).toBe(true)
  expect(isWell(last, clock.now() + 15_001)).toBe(false)
  await worker.close()
})

it('drains once when the process holds more memory than it may', async () => {
  using project = new TempProject()
  const { worker, clock, drains } = await watched(join(project.path, 'health'), 1)
  await clock.advance(5_000)
  expect(drains).toEqual(['max-memory'])
  expect(readFileSync(join(project.path, 'health'), 'utf8')).toContain('"draining"')
  await worker.close()
  expect(clock.pending).toBe(0)
})

it('a file that cannot be written is an error at the start, which names it', async () => {
  await expect(watched('/nowhere/health')).rejects.toMatchObject({
    code: 'IO',
    message: expect.stringMatching(/^the health file \/nowhere\/health cannot be written: ENOENT/),
  })
})
