import { AssertionError } from 'node:assert'
import { expect, it } from 'vitest'
import { createKhepri, defineJob, Job } from '../../src/index.ts'
import { fakeQueue } from '../../src/testing/index.ts'

class SendWelcome extends Job {
  readonly userId: number
  constructor(userId: number) {
    super()
    this.userId = userId
  }
  handle(): void {}
}

const resize = defineJob<{ readonly width: number }>({ queue: 'images', handle() {} })

/** An installation whose database is not there: whatever is written fails. */
const anApp = () =>
  createKhepri({ database: 'sqlite:./no/such/folder.db', jobs: { 'send-welcome': SendWelcome, resize } })

const failure = (message: string) => expect.objectContaining({ name: 'AssertionError', message })

it('what was pushed is found by name and by value, and nothing is written', async () => {
  const khepri = anApp()
  using queue = fakeQueue(khepri)
  expect(await khepri.dispatch(new SendWelcome(7))).toEqual({ id: 1, duplicate: false })
  expect(await khepri.dispatch('resize', { width: 80 })).toEqual({ id: 2, duplicate: false })
  queue.assertPushed('send-welcome')
  queue.assertPushed(SendWelcome, ({ userId }) => userId === 7)
  queue.assertPushed(resize, (_, job) => job.queue === 'images')
  queue.assertPushedCount(2)
  queue.assertPushedCount(1, resize)
  expect(queue.pushedJobs(SendWelcome).map(({ payload }) => payload.userId)).toEqual([7])
})

it('dispatchMany and pushRaw are taken too', async () => {
  const khepri = anApp()
  using queue = fakeQueue(khepri)
  await khepri.dispatchMany([
    { job: 'resize', payload: { width: 1 } },
    { job: 'resize', payload: { width: 2 } },
  ])
  await khepri.pushRaw('{"v":1,"job":"send-welcome","dispatchedAt":1,"maxCrashes":3,"payload":{"userId":7}}')
  queue.assertPushedCount(3)
})

it('failures print what was pushed', async () => {
  const khepri = anApp()
  using queue = fakeQueue(khepri)
  expect(() => queue.assertPushed(resize)).toThrow(failure('expected resize to be pushed; nothing was pushed'))
  await khepri.dispatch('resize', { width: 80 }, { delay: '10m', unique: 'k' })
  await khepri.dispatch(new SendWelcome(7), { at: '2030-01-31T09:00:00Z' })
  const pushed = `pushed was:
  resize {"width":80} on images, in 10m, unique k
  send-welcome {"userId":7} on default, at 2030-01-31T09:00:00.000Z`
  expect(() => queue.assertPushed(resize, ({ width }) => width === 81)).toThrow(
    failure(`resize was pushed, but the predicate holds for none; ${pushed}`),
  )
  expect(() => queue.assertPushedCount(3)).toThrow(failure(`expected 3 jobs to be pushed, got 2; ${pushed}`))
  expect(() => queue.assertPushedCount(2, resize)).toThrow(
    failure(`expected 2 of resize to be pushed, got 1; ${pushed}`),
  )
  expect(() => queue.assertNotPushed('send-welcome')).toThrow(
    failure(`expected send-welcome not to be pushed; ${pushed}`),
  )
  expect(() => queue.assertNothingPushed()).toThrow(failure(`expected nothing to be pushed; ${pushed}`))
  expect(() => queue.assertNothingPushed()).toThrow(AssertionError)
})

it('what was not pushed passes', async () => {
  const khepri = anApp()
  using queue = fakeQueue(khepri)
  queue.assertNothingPushed()
  await khepri.dispatch('resize', { width: 80 })
  queue.assertNotPushed(SendWelcome)
  queue.assertNotPushed(resize, ({ width }) => width === 81)
})

it('a payload and a name are checked as if they were written', async () => {
  const khepri = anApp()
  using queue = fakeQueue(khepri)
  await expect(khepri.dispatch('resize', { width: Number.NaN })).rejects.toThrow('payload.width is NaN')
  // @ts-expect-error: no job has this name
  await expect(khepri.dispatch('resise', { width: 80 })).rejects.toThrow('Did you mean "resize"?')
  queue.assertNothingPushed()
})

it('a job that nobody registered is not asserted about in vain', () => {
  using queue = fakeQueue(anApp())
  // @ts-expect-error: no job has this name
  expect(() => queue.assertNotPushed('resise')).toThrow('unknown job "resise"')
  expect(() => queue.assertNotPushed(class extends SendWelcome {})).toThrow('not one of the values in jobs')
})

it('a unique key is pushed once', async () => {
  const khepri = anApp()
  using queue = fakeQueue(khepri)
  await khepri.dispatch('resize', { width: 1 }, { unique: 'k' })
  expect(await khepri.dispatch('resize', { width: 2 }, { unique: 'k' })).toEqual({ id: 1, duplicate: true })
  queue.assertPushedCount(1)
})

it('restoreQueue lets the installation write again, and a second fake on one queue is refused', async () => {
  const khepri = createKhepri({ database: 'memory:', jobs: { resize } })
  const queue = fakeQueue(khepri)
  expect(() => fakeQueue(khepri)).toThrow('the queue of this khepri is a fake already')
  await khepri.dispatch('resize', { width: 1 })
  queue.restoreQueue()
  await khepri.dispatch('resize', { width: 2 })
  queue.assertPushedCount(1)
  expect((await (await khepri.work({ stopWhenEmpty: true, queues: 'all' })).finished).done).toBe(1)
  await khepri.close()
})
