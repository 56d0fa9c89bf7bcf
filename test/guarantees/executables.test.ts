import { chmodSync, existsSync, readdirSync, readFileSync, watch } from 'node:fs'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { Installation, onBothStores } from '../support/installation.ts'

/** Whole graces of 5 s, on a machine that may be busy. */
vi.setConfig({ testTimeout: 180_000 })

/**
 * Holds a lock while it runs, as any ledger of its own would: a second run beside the first one says so. Neither it nor
 * its child hears SIGTERM.
 */
const long = `#!/bin/bash
trap '' TERM
exec 9>>lock
flock -n 9 || echo overlap >>runs
echo "start $KHEPRI_JOB_FENCE $KHEPRI_JOB_ATTEMPT $$" >>runs
(while [ ! -e open ]; do sleep 0.05; done) & 
while [ ! -e open ]; do sleep 0.05; done
echo "end $KHEPRI_JOB_FENCE" >>runs
`

/** Ends when it is asked to, and its child with it. */
const gentle = `#!/bin/bash
echo "start $KHEPRI_JOB_FENCE $KHEPRI_JOB_ATTEMPT $$" >>runs
sleep 60 &
wait
`

const block = `export default (_, { log }) => { log('blocking'); for (;;); }`

/** An installation with scripts that write down what they do. */
async function withScripts(store: 'sqlite' | 'postgres'): Promise<Installation> {
  const installation = await Installation.migrated(store)
  for (const [name, text] of Object.entries({ long, gentle })) {
    const path = installation.project.write(`jobs/${name}.sh`, text)
    chmodSync(path, 0o755)
  }
  installation.project.write('jobs/spin.mjs', block)
  return installation
}

/** The lines of the scripts so far. */
function runsOf({ project }: Installation): readonly string[] {
  const path = join(project.path, 'runs')
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []
}

/** Resolves as soon as the scripts have written so many lines; the result is the lines. */
function untilLines(installation: Installation, count: number): Promise<readonly string[]> {
  return new Promise((resolve) => {
    const watcher = watch(installation.project.path, () => look())
    const look = (): void => {
      const lines = runsOf(installation)
      if (lines.length < count) return
      watcher.close()
      resolve(lines)
    }
    look()
  })
}

const groupOf = (line: string | undefined): number => Number(line?.split(' ').at(-1))

/** The living processes of a group. */
function membersOf(group: number): readonly string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      const [state = '', , id] = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')
      return Number(id) === group && !/[ZX]/.test(state)
    } catch {
      return false
    }
  })
}

/** Resolves when nothing of a group lives. Nobody tells of the end of somebody else's process: it is looked for. */
async function untilGone(group: number): Promise<void> {
  while (membersOf(group).length > 0) await new Promise((resolve) => setTimeout(resolve, 20))
}

onBothStores('an executable', (store) => {
  it.concurrent('is ended, its children too, before its job runs again, when its worker is killed with SIGKILL', async () => {
    await using installation = await withScripts(store)
    const id = await installation.dispatch('long', '--tries=1')
    await using killed = await installation.worker()
    const [first] = await untilLines(installation, 1)
    await using heir = await installation.worker()
    killed.kill('SIGKILL')
    await killed.ended
    const [, second] = await untilLines(installation, 2)
    expect(membersOf(groupOf(first))).toEqual([])
    installation.open()
    await heir.until(new RegExp(`DONE ${id} `))
    heir.kill('SIGTERM')
    expect(await heir.ended).toMatchObject({ code: 0 })
    expect(runsOf(installation)).toEqual([
      expect.stringMatching(/^start 1 1 /),
      expect.stringMatching(/^start 3 1 /),
      'end 3',
    ])
    expect(groupOf(second)).not.toBe(groupOf(first))
  })

  it.concurrent('is ended, its children too, though no other worker is there to see its worker die', async () => {
    await using installation = await withScripts(store)
    await installation.dispatch('long')
    await using killed = await installation.worker()
    const [first] = await untilLines(installation, 1)
    killed.kill('SIGKILL')
    await killed.ended
    await untilGone(groupOf(first))
    expect(runsOf(installation)).toHaveLength(1)
  })

  it.concurrent('that was running when its worker was frozen beyond its lease is ended before its job runs again', async () => {
    await using installation = await withScripts(store)
    const id = await installation.dispatch('long')
    await using frozen = await installation.worker()
    const [first] = await untilLines(installation, 1)
    frozen.kill('SIGSTOP')
    await using heir = await installation.worker()
    await untilLines(installation, 2)
    expect(membersOf(groupOf(first))).toEqual([])
    installation.open()
    await heir.until(new RegExp(`DONE ${id} `))
    frozen.kill('SIGCONT')
    await frozen.until(new RegExp(`LOST ${id} `))
    expect(runsOf(installation).filter((line) => line === 'overlap')).toEqual([])
  })

  it.concurrent('ends with the process that the beat thread ends because its event loop is blocked', async () => {
    await using installation = await withScripts(store)
    await installation.dispatch('long')
    await using blocked = await installation.worker('--concurrency=2')
    const [first] = await untilLines(installation, 1)
    await installation.dispatch('spin', '--timeout=1s')
    expect(await blocked.ended).toMatchObject({ signal: 'SIGKILL' })
    expect(membersOf(groupOf(first))).toEqual([])
    expect(await installation.ask('select job from jobs where worker is null and fence > 0')).toEqual([{ job: 'long' }])
  })

  it.concurrent('that ignores SIGTERM past its timeout is killed 5 s later, and its worker goes on', async () => {
    await using installation = await withScripts(store)
    const id = await installation.dispatch('long', '--timeout=1s')
    await using worker = await installation.worker()
    await worker.until(new RegExp(`FAILED ${id} .*timed out after 1s`))
    const [first] = runsOf(installation)
    expect(membersOf(groupOf(first))).toEqual([])
    const next = await installation.dispatch('note')
    await worker.until(new RegExp(`DONE ${next} `))
    worker.kill('SIGTERM')
    expect(await worker.ended).toMatchObject({ code: 0, stderr: expect.not.stringMatching(/stuck/) })
  })

  it.concurrent('that is cancelled hears SIGTERM, and nothing of it is left', async () => {
    await using installation = await withScripts(store)
    const id = await installation.dispatch('gentle')
    await using worker = await installation.worker()
    const [first] = await untilLines(installation, 1)
    await installation.must('cancel', String(id))
    await worker.until(new RegExp(`CANCELLED ${id} `))
    expect(membersOf(groupOf(first))).toEqual([])
  })

  it.concurrent('runs to its end in a drain, and on a second signal hears SIGTERM and costs nothing', async () => {
    await using installation = await withScripts(store)
    const id = await installation.dispatch('gentle', '--tries=1')
    await using worker = await installation.worker('--drain-timeout=1s')
    const [first] = await untilLines(installation, 1)
    worker.kill('SIGTERM')
    await worker.until(new RegExp(`RELEASED ${id} `))
    await worker.ended
    expect(membersOf(groupOf(first))).toEqual([])
    expect(await installation.ask('select failures, crashes from jobs')).toEqual([{ failures: 0, crashes: 0 }])
  })
})
