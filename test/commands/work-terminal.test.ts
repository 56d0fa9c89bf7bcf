import { spawnSync } from 'node:child_process'
import { stripVTControlCharacters } from 'node:util'
import { expect, it } from 'vitest'
import { migratedProject } from '../support/khepri-project.ts'
import { Live } from '../support/live.ts'

const jobs = {
  'jobs/wait.mjs': 'export default () => new Promise((resolve) => setTimeout(resolve, 3_200))',
  'jobs/resize-image.mjs': `import { defineJob } from 'khepri'
    export default defineJob({ queue: 'high', tries: 5, backoff: '10s', handle() { console.log('half a line'); throw new Error('in/7.png: no such file\\u001b[31m') } })`,
}

/** `script` gives a process a terminal of its own; the terminal's output is what it prints. */
const hasScript = spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0
const inTerminal = 'stty cols 110; script -qec "$(printf "stty cols 110; exec"; printf " \\"%s\\"" "$@")" /dev/null'

it.skipIf(!hasScript)(
  'at a terminal shows aligned lines, a footer redrawn in place, and stops gently on Ctrl-C',
  async () => {
    using made = await migratedProject(jobs)
    for (const job of ['wait', 'wait', 'resize-image']) await made.khepri(['dispatch', '--job', job, '--quiet'])
    await using worker = Live.start(['work', '--queue=high,default', '--concurrency=4'], {
      cwd: made.path,
      shell: inTerminal,
    })
    const [, pid] = await worker.until(/worker \S+-(\d+)/)
    await worker.until(/2 running .*1 scheduled/)
    process.kill(Number(pid), 'SIGINT')
    const { stdout, code } = await worker.ended

    expect(code).toBe(0)
    const shown = stdout
      .split(/\r?\n/)
      .map((line) => stripVTControlCharacters(line.replaceAll(/.*\r(?:\u001b\[K)?/g, '')))
    const time = String.raw`\d\d:\d\d:\d\d`
    expect(shown[0]).toMatch(
      /^khepri \S+ {2}worker \S+ {2}queues high,default {2}concurrency 4 {2}sqlite:\.\/khepri\.db {4}Ctrl-C stops gently$/,
    )
    expect(shown.find((line) => line.includes('RETRY'))).toMatch(
      new RegExp(`^${time} {2}3 {8}resize-image {2}high {5}try 1/5 \\.{16} +\\d+ms {2}RETRY in 10s$`),
    )
    expect(shown).toContain('          in/7.png: no such file')
    expect(shown).toContain('half a line')
    expect(
      shown.filter((line) =>
        new RegExp(`^${time} {2}[12] {8}wait {10}default {2}try 1/1 \\.{16} +3\\.\\d+s {2}DONE$`).test(line),
      ),
    ).toHaveLength(2)
    expect(shown).toContain('stopping: waiting for 2 jobs (Ctrl-C again to abandon them)')
    expect(shown.at(-2)).toMatch(/^stopped: 2 done, 1 retried, 0 failed in \S+$/)
    expect(stdout).toMatch(/ {2}2 running {2}0 ready {2}1 scheduled {2}0 failed {3}\d+\/s {3}\^C stops/)
  },
)
