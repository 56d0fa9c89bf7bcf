import { expect, it } from 'vitest'
import { livingFirst, stateOf, workersText } from '../../src/cli/worker-list.ts'
import type { WorkerRow } from '../../src/core/store/admin.ts'

const now = 1_000_000

const worker = (id: number, parts: Partial<WorkerRow> = {}): WorkerRow => ({
  ...{ id, name: `web1-${id}`, version: '0.1.0', host: 'web1', pid: id, queues: 'default', concurrency: 4 },
  ...{ state: 'working', startedAt: 0, beatAt: now - 1_000, leaseMs: 90_000, held: 0, running: 0 },
  ...parts,
})

it('a worker is silent once it has not beaten for longer than its lease, and dead only when declared so', () => {
  expect(stateOf(worker(1), now)).toBe('working')
  expect(stateOf(worker(1, { beatAt: now - 90_000 }), now)).toBe('working')
  expect(stateOf(worker(1, { beatAt: now - 90_001 }), now)).toBe('silent')
  expect(stateOf(worker(1, { state: 'draining', beatAt: 0 }), now)).toBe('silent')
  expect(stateOf(worker(1, { state: 'dead', beatAt: 0 }), now)).toBe('dead')
})

it('dead workers come last, and otherwise the order stays', () => {
  const workers = [
    worker(1, { state: 'dead' }),
    worker(2),
    worker(3, { state: 'draining' }),
    worker(4, { state: 'dead' }),
  ]
  expect(livingFirst(workers).map(({ id }) => id)).toEqual([2, 3, 1, 4])
})

it('workers are counted by state', () => {
  expect(workersText([], now)).toBe('none')
  const workers = [worker(1), worker(2), worker(3, { state: 'draining' }), worker(4, { beatAt: 0 })]
  expect(workersText(workers, now)).toBe('2 working, 1 draining, 1 silent')
})
