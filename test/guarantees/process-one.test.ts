import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { Installation } from '../support/installation.ts'

/** A process of its own numbering, as the first one of a container is. */
const alone = 'unshare --pid --fork --mount-proc --kill-child'
const canUnshare = spawnSync('sh', ['-c', `${alone} true`]).status === 0

/** The first process inside, by the number that it has outside. */
function firstInside(unshare: number): number {
  return Number(readFileSync(`/proc/${unshare}/task/${unshare}/children`, 'utf8').trim().split(' ')[0])
}

it.skipIf(!canUnshare)('a worker that is process 1, as in a container, drains on SIGTERM and exits 0', async () => {
  await using installation = await Installation.migrated('sqlite')
  const held = await installation.dispatch('hold')
  await using worker = installation.start(['work', '--name=first'], { shell: `exec ${alone} "$@"` })
  await worker.until(/text=begun/)
  expect(JSON.parse(await installation.must('workers', '--json'))).toMatchObject([{ name: 'first', pid: 1 }])
  process.kill(firstInside(worker.child.pid as number), 'SIGTERM')
  await worker.until(/waiting for 1 job/, 'stderr')
  installation.open()
  const { code, stdout } = await worker.ended
  expect(code).toBe(0)
  expect(stdout).toMatch(/stopped: 1 done, 0 retried, 0 failed/)
  expect([...installation.ledger.ended]).toEqual([held])
})
