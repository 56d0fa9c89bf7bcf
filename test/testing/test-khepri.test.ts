import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { defineJob, Job } from '../../src/index.ts'
import { testKhepri } from '../../src/testing/index.ts'
import { repository, TempProject } from '../support/temp-project.ts'

/** Jobs that write down what happens to them. */
function aJournal() {
  const journal: string[] = []
  const note = defineJob<{ readonly text: string }>({ handle: ({ text }) => void journal.push(text) })
  const flaky = defineJob<{ readonly failures: number }>({
    tries: 3,
    backoff: ['10s', '1m'],
    handle({ failures }, { attempt, log }) {
      log(`attempt ${attempt}`)
      journal.push(`attempt ${attempt}`)
      if (attempt <= failures) throw new Error(`broken ${attempt}`)
    },
  })
  return { journal, jobs: { note, flaky } }
}

it('runJobs runs what is ready and answers how many ran', async () => {
  const { journal, jobs } = aJournal()
  const khepri = testKhepri({ jobs })
  await khepri.dispatch('note', { text: 'one' })
  await khepri.dispatch('note', { text: 'two' })
  expect(await khepri.runJobs()).toBe(2)
  expect(journal).toEqual(['one', 'two'])
  expect(await khepri.runJobs()).toBe(0)
})

it('runJobs runs jobs of every queue, and those that handlers dispatch', async () => {
  const ran: string[] = []
  const khepri = testKhepri({
    jobs: {
      first: async () => void (await khepri.dispatch('second', {}, { queue: 'elsewhere' })),
      second: () => void ran.push('second'),
    },
  })
  await khepri.dispatch('first', {}, { queue: 'mail' })
  expect(await khepri.runJobs()).toBe(2)
  expect(ran).toEqual(['second'])
})

it('a delayed job runs once the clock has been moved past its delay, and not before', async () => {
  const { journal, jobs } = aJournal()
  const khepri = testKhepri({ jobs })
  await khepri.dispatch('note', { text: 'late' }, { delay: '1h' })
  await khepri.clock.advance('59m')
  expect(await khepri.runJobs()).toBe(0)
  await khepri.clock.advance('1m')
  expect(await khepri.runJobs()).toBe(1)
  expect(journal).toEqual(['late'])
})

it('retries wait for the clock', async () => {
  const { journal, jobs } = aJournal()
  const khepri = testKhepri({ jobs })
  await khepri.dispatch('flaky', { failures: 1 })
  expect([await khepri.runJobs(), await khepri.runJobs()]).toEqual([1, 0])
  await khepri.clock.advance(10)
  expect(await khepri.runJobs()).toBe(1)
  expect(journal).toEqual(['attempt 1', 'attempt 2'])
})

it('runUntilIdle moves the clock through delays and retries until nothing waits', async () => {
  const { journal, jobs } = aJournal()
  const khepri = testKhepri({ jobs })
  const from = khepri.clock.now()
  await khepri.dispatch('flaky', { failures: 3 })
  await khepri.dispatch('note', { text: 'late' }, { delay: '2h' })
  expect(await khepri.runUntilIdle()).toBe(4)
  expect(journal).toEqual(['attempt 1', 'attempt 2', 'attempt 3', 'late'])
  expect(khepri.clock.now() - from).toBe(2 * 3_600_000)
  expect(await khepri.failedJobs()).toEqual([expect.objectContaining({ job: 'flaky', error: 'broken 3' })])
})

it('a handler that waits for real time, or for a turn of the event loop, is waited for', async () => {
  const khepri = testKhepri({
    jobs: { wait: () => new Promise<void>((resolve) => setTimeout(() => setImmediate(resolve), 5)) },
  })
  await khepri.dispatch('wait')
  expect(await khepri.runJobs()).toBe(1)
})

it('a timeout fires when the clock is moved past it', async () => {
  const started = Promise.withResolvers<void>()
  const khepri = testKhepri({
    jobs: {
      slow: defineJob({
        timeout: '30s',
        handle: (_payload, { signal }) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason))
            started.resolve()
          }),
      }),
    },
  })
  await khepri.dispatch('slow')
  const running = khepri.runJobs()
  await started.promise
  await khepri.clock.advance('30s')
  expect(await running).toBe(1)
  expect(await khepri.failedJobs()).toEqual([expect.objectContaining({ error: 'timed out after 30s' })])
})

it('a job that dispatches itself does not hang a test: 10,000 runs are an error', async () => {
  const khepri = testKhepri({ jobs: { again: async () => void (await khepri.dispatch('again')) } })
  await khepri.dispatch('again')
  await expect(khepri.runJobs()).rejects.toThrow('10,000 jobs ran and there are more')
})

it('a module that cannot be loaded is an error and not silence', async () => {
  using project = new TempProject({ 'broken.mjs': 'throw new Error("no such thing")' })
  const jobs = { broken: { module: `${project.path}/broken.mjs`, queue: 'mail' } }
  const khepri = testKhepri({ jobs })
  await khepri.dispatch('broken')
  await expect(khepri.runJobs()).rejects.toThrow(
    expect.objectContaining({ code: 'MODULE_BROKEN', message: expect.stringContaining('no such thing') }),
  )
})

it('runJob runs one handler, hands over its log and says how it ended', async () => {
  const { jobs } = aJournal()
  const khepri = testKhepri({ jobs })
  expect(await khepri.runJob('flaky', { failures: 0 })).toEqual({ kind: 'done', logged: ['attempt 1'] })
  expect(await khepri.runJob(jobs.flaky, { failures: 1 })).toEqual({
    ...{ kind: 'retry', delayMs: 10_000, logged: ['attempt 1'] },
    error: new Error('broken 1'),
  })
  expect(await khepri.runJob('flaky', { failures: 1 }, { tries: 1 })).toMatchObject({
    ...{ kind: 'failed', reason: 'tries', error: new Error('broken 1') },
  })
  expect(await khepri.runJobs()).toBe(0)
})

it('runJob takes an instance of a class and tells a release from a failure', async () => {
  class Wait extends Job {
    readonly delay: string
    constructor(delay: string) {
      super()
      this.delay = delay
    }
    handle(): void {
      this.context.release(this.delay)
    }
  }
  const khepri = testKhepri({ jobs: { wait: Wait } })
  expect(await khepri.runJob(new Wait('5s'))).toEqual({ kind: 'released', delayMs: 5_000, logged: [] })
})

it('the kit works in node:test as it does here', async () => {
  using project = new TempProject()
  const kit = new URL('../../src/testing/index.ts', import.meta.url)
  project.write(
    'kit.test.mjs',
    `import assert from 'node:assert/strict'
     import test from 'node:test'
     import { fakeQueue, testKhepri } from '${kit.href}'
     test('delays', async () => {
       const khepri = testKhepri({ jobs: { note() {} } })
       await khepri.dispatch('note', {}, { delay: '1h' })
       assert.equal(await khepri.runJobs(), 0)
       await khepri.clock.advance('1h')
       assert.equal(await khepri.runJobs(), 1)
       const queue = fakeQueue(khepri)
       assert.throws(() => queue.assertPushed('note'), assert.AssertionError)
     })`,
  )
  const args = ['--test', '--test-reporter=tap', `${project.path}/kit.test.mjs`]
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: repository, env })
  expect(stdout).toContain('# pass 1')
})
