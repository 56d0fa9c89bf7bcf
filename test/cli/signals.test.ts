import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { WorkerSignals } from '../../src/cli/signals.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

/** A process and a worker on paper: what the worker was told, in order. */
function onPaper({ belongsToJob = false } = {}) {
  const clock = new ManualClock()
  const source = new EventEmitter()
  const told: string[] = []
  const handle = {
    drain: (reason?: string) => void told.push(`drain ${reason}`),
    abort: () => void told.push('abort'),
    quiet: () => void told.push('quiet'),
    resume: () => void told.push('resume'),
    attribute: () => belongsToJob,
  }
  const report = (error: unknown): void => void told.push(`report ${error}`)
  return { clock, source, told, signals: new WorkerSignals({ handle, source, clock, report }) }
}

it.each(['SIGINT', 'SIGTERM', 'SIGHUP'])('the first %s drains and changes no exit status', (name) => {
  const { source, told, signals } = onPaper()
  source.emit(name)
  expect(told).toEqual(['drain signal'])
  expect(signals.exitStatus).toBeNull()
})

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('a second %s after 1 s aborts, and the exit status is %d', async (name, status) => {
  const { clock, source, told, signals } = onPaper()
  source.emit(name)
  await clock.advance(1_000)
  source.emit(name)
  source.emit(name)
  expect(told).toEqual(['drain signal', 'abort'])
  expect(signals.exitStatus).toBe(status)
})

it('a signal that comes twice within 999 ms counts as one', async () => {
  const { clock, source, told, signals } = onPaper()
  source.emit('SIGINT')
  await clock.advance(999)
  source.emit('SIGINT')
  expect(told).toEqual(['drain signal'])
  expect(signals.exitStatus).toBeNull()
})

it('SIGUSR2 quiets and SIGCONT resumes', () => {
  const { source, told } = onPaper()
  source.emit('SIGUSR2')
  source.emit('SIGCONT')
  expect(told).toEqual(['quiet', 'resume'])
})

it('an uncaught error that belongs to a job is left to the worker', () => {
  const { source, told, signals } = onPaper({ belongsToJob: true })
  source.emit('uncaughtException', new Error('late'))
  expect(told).toEqual([])
  expect(signals.exitStatus).toBeNull()
})

it.each(['uncaughtException', 'unhandledRejection'])(
  'an %s of nobody is reported once, drains, aborts after 5 s and ends with 70',
  async (name) => {
    const { clock, source, told, signals } = onPaper()
    source.emit(name, new Error('first'))
    source.emit(name, new Error('second'))
    expect(told).toEqual(['report Error: first', 'drain uncaught'])
    await clock.advance(5_000)
    expect(told.at(-1)).toBe('abort')
    expect(signals.exitStatus).toBe(70)
  },
)

it('after the end no listener and no timer is left', () => {
  const { clock, source, signals } = onPaper()
  source.emit('uncaughtException', new Error('first'))
  signals.close()
  expect(source.eventNames()).toEqual([])
  expect(clock.pending).toBe(0)
})
