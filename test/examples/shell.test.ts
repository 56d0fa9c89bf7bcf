import { chmodSync, cpSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { type Ended, khepri, Live } from '../support/live.ts'
import { repository, TempProject } from '../support/temp-project.ts'

const example = join(repository, 'examples', 'shell')

/** A copy of the example; `khepri` is on the PATH, as a global installation puts it there. */
class Copy extends TempProject {
  readonly env: Readonly<Record<string, string>>

  constructor() {
    super()
    cpSync(example, this.path, { recursive: true })
    const bin = join(repository, 'bin', 'run.cjs')
    chmodSync(this.write('.path/khepri', `#!/bin/sh\nexec "${process.execPath}" "${bin}" "$@"\n`), 0o755)
    this.env = { PATH: `${join(this.path, '.path')}:${process.env.PATH}` }
  }

  async must(...args: readonly string[]): Promise<Ended> {
    const ended = await khepri(args, { cwd: this.path, env: this.env })
    expect(ended, ended.stderr).toMatchObject({ code: 0 })
    return ended
  }
}

it('the folder examples/shell holds a configuration in JSON, scripts and a README, and no JavaScript', () => {
  const names = readdirSync(example, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('.'))
  expect(names.map((name) => name.replace(/^.*\./, '')).sort()).toEqual(['json', 'md', 'sh', 'sh', 'sh'])
})

it('it is a full installation: its jobs run, are tried again, fail, are released and put jobs in', async () => {
  using copy = new Copy()
  await copy.must('migrate')
  expect((await copy.must('jobs', '--plain')).stdout).toBe(
    'checksum\tslow\t3\t1m\t./bin/checksum.sh\ngreet\tdefault\t1\t-\t./jobs/greet.sh\n' +
      'wait-for-file\tdefault\t1\t-\t./jobs/wait-for-file.sh\n',
  )
  const dispatch = async (job: string, payload: string): Promise<number> =>
    Number((await copy.must('dispatch', '--job', job, '--payload', payload)).stdout)
  const greeted = await dispatch('greet', '{"name": "Ada"}')
  const waiting = await dispatch('wait-for-file', '{}')
  const sum = await dispatch('checksum', '"README.md"')
  const gone = await dispatch('checksum', '"gone.txt"')
  const bad = await dispatch('checksum', '{"no":"path"}')

  await using worker = Live.start(['work'], { cwd: copy.path, env: copy.env })
  await worker.until(new RegExp(`DONE ${greeted} greet`))
  await worker.until(new RegExp(`RELEASED ${waiting} wait-for-file`))
  copy.write('ready', '')
  await worker.until(new RegExp(`DONE ${waiting} wait-for-file .*try=1/1`))
  await worker.until(new RegExp(`DONE ${sum} checksum`))
  await worker.until(/DONE 6 greet/)
  await worker.until(new RegExp(`FAILED ${bad} checksum .*try=1/3 .*error="exit 65: not a path: `))
  await worker.until(new RegExp(`FAILED ${gone} checksum .*try=3/3 .*error="exit 1: gone.txt: no such file"`))
  worker.kill('SIGTERM')
  expect(await worker.ended).toMatchObject({ code: 0 })

  expect(readFileSync(join(copy.path, 'greetings.log'), 'utf8')).toBe(
    `job ${greeted}, attempt 1 of 1: {"name": "Ada"}\njob 6, attempt 1 of 1: {"done":"README.md"}\n`,
  )
  const { stdout } = await copy.must('failed', String(gone))
  expect(stdout).toMatch(/^error: +CommandFailed: exit 1: gone\.txt: no such file$/m)
  expect(stdout).toMatch(
    /attempt 3 .*\n {2}CommandFailed: exit 1: gone\.txt: no such file\n {2}output:\n {2}gone\.txt: no such file$/m,
  )
})
