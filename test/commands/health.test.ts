import { watch } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readHealth } from '../../src/cli/health.ts'
import { Installation, onBothStores } from '../support/installation.ts'
import { KhepriProject } from '../support/khepri-project.ts'
import { freePort } from '../support/postgres.ts'
import { expectJsonRefusal, expectRefusal } from '../support/refusals.ts'

onBothStores('khepri health', (store) => {
  it.concurrent('is 0 while a worker of this host lives, and 1 before and after', async () => {
    await using installation = await Installation.migrated(store)
    expectRefusal(await installation.run(['health']), { code: 1, says: 'no live worker on ' })
    await using worker = await installation.worker('--name=web1')
    expect(await installation.run(['health'])).toMatchObject({ code: 0, stdout: '' })
    expect(await installation.run(['health', '--name=web1'])).toMatchObject({ code: 0 })
    expect(JSON.parse(await installation.must('health', '--json'))).toMatchObject({ healthy: true })
    expectRefusal(await installation.run(['health', '--name=web2']), {
      code: 1,
      says: 'no live worker of the name "web2"\n  fix: khepri workers lists',
    })
    worker.kill('SIGTERM')
    await worker.ended
    expectJsonRefusal(await installation.run(['health', '--json']), { code: 'UNHEALTHY', exit: 1 })
  })
})

/** Resolves when a worker that keeps this file says that it is in a state. */
function untilState(file: string, state: string): Promise<void> {
  return new Promise((resolve) => {
    const watcher = watch(join(file, '..'), () => look())
    const look = (): void => {
      if (stateIn(file) !== state) return
      watcher.close()
      resolve()
    }
    look()
  })
}

function stateIn(file: string): string | null {
  try {
    return readHealth(file).state
  } catch {
    return null
  }
}

describe('khepri work', () => {
  it('--health-file keeps a file that khepri health reads without a database, and takes it away at the end', async () => {
    await using installation = await Installation.migrated('sqlite')
    const file = join(installation.project.path, 'health', 'web1')
    installation.project.write('health/.keep', '')
    await using worker = await installation.worker('--name=web1', `--health-file=${file}`)
    await untilState(file, 'working')
    const probe = ['health', `--file=${file}`, '--database=sqlite:./nowhere/x.db']
    expect(await installation.run(probe)).toMatchObject({ code: 0, stderr: 'worker web1 is working\n' })
    await installation.dispatch('hold')
    await installation.ledger.untilStarted(1)
    worker.kill('SIGTERM')
    await untilState(file, 'draining')
    expect(await installation.run(probe)).toMatchObject({ code: 0, stderr: 'worker web1 is draining\n' })
    installation.open()
    expect(await worker.ended).toMatchObject({ code: 0 })
    expectRefusal(await installation.run(probe), { code: 1, says: `${file} cannot be read: no worker keeps it\n` })
  })

  it('--health-port answers 200 with the counts once the worker has reserved', async () => {
    await using installation = await Installation.migrated('sqlite')
    const port = await freePort()
    await installation.dispatch('hold')
    await using worker = await installation.worker('--name=web1', `--health-port=${port}`)
    await installation.ledger.untilStarted(1)
    const response = await fetch(`http://127.0.0.1:${port}/`)
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ worker: 'web1', state: 'working', counts: { running: 1 } })
    installation.open()
    worker.kill('SIGTERM')
    expect(await worker.ended).toMatchObject({ code: 0 })
  })

  it('--health-port that somebody else listens on is 74, and the worker leaves no row', async () => {
    await using installation = await Installation.migrated('sqlite')
    const port = await freePort()
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(port, resolve))
    const { code, stderr } = await installation.run(['work', `--health-port=${port}`])
    other.close()
    expect(stderr).toMatch(
      new RegExp(`error: nobody can listen on port ${port}: .*EADDRINUSE.*\n {2}fix: name another`),
    )
    expect(code).toBe(74)
    expect(await installation.ask('select * from jobs_workers')).toEqual([])
  })

  it('--max-memory drains, says so, and exits 0', async () => {
    await using installation = await Installation.migrated('sqlite')
    await installation.dispatch('hold')
    await using worker = await installation.worker('--max-memory=1MiB')
    await worker.until(/stopping at --max-memory: waiting for 1 job/, 'stderr')
    installation.open()
    expect(await worker.ended).toMatchObject({ code: 0, stdout: expect.stringContaining('stopped: 1 done') })
  })

  it.each<[string[], string]>([
    [['work', '--max-memory=12'], '--max-memory must be a size such as 512MiB or 2GiB, got "12"\n'],
    [['work', '--health-port=70000'], '--health-port must be a whole number from 1 to 65535, got "70000"\n'],
  ])('%j is wrong usage', async (words, says) => {
    using project = new KhepriProject()
    expectRefusal(await project.khepri(words), { code: 2, says })
  })
})
