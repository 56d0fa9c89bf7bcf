import { expect, it } from 'vitest'
import { type Ancestry, isStartedByNpm, watchNpm } from '../../src/cli/npm-parent.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'

interface Process {
  parent: number
  readonly program: string
}

/** A family of processes that a test can change: 10 is this one's parent, 5 npm, 2 the user's shell. */
function family(processes: Record<number, Process>) {
  const clock = new ManualClock()
  const ours = { parent: 10 }
  const gone: string[] = []
  const ancestry: Ancestry = { parent: () => ours.parent, of: (pid) => processes[pid] ?? null }
  const stop = watchNpm(clock, () => gone.push('gone'), ancestry)
  return { clock, ours, gone, processes, stop }
}

it('a worker whose npm is its parent learns within 1 s that npm is gone, once', async () => {
  const { clock, ours, gone } = family({ 10: { parent: 2, program: 'npm run work' } })
  await clock.advance(10_000)
  expect(gone).toEqual([])
  ours.parent = 1
  await clock.advance(1_000)
  expect(gone).toEqual(['gone'])
  await clock.advance(10_000)
  expect(gone).toEqual(['gone'])
})

it('a worker below the shell of npm learns that npm is gone though the shell lives', async () => {
  const { clock, gone, processes } = family({
    10: { parent: 5, program: 'sh' },
    5: { parent: 2, program: 'npm run work' },
  })
  processes[10] = { parent: 1, program: 'sh' }
  await clock.advance(1_000)
  expect(gone).toEqual(['gone'])
})

it('the end of the shell from which npm was started is not the end of npm', async () => {
  const { clock, gone, processes } = family({ 10: { parent: 2, program: 'npm run work' } })
  processes[10] = { parent: 1, program: 'npm run work' }
  await clock.advance(10_000)
  expect(gone).toEqual([])
})

it('a watch that was stopped leaves no timer', () => {
  const { clock, stop } = family({})
  stop()
  expect(clock.pending).toBe(0)
})

it.each([
  [{ npm_lifecycle_event: 'work' }, true],
  [{ npm_command: 'exec' }, true],
  [{ PATH: '/bin' }, false],
])('an environment of %j is of npm: %s', (env, expected) => expect(isStartedByNpm(env)).toBe(expected))
