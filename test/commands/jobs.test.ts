import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { KhepriProject } from '../support/khepri-project.ts'

const good = {
  'jobs/note.mjs': 'export default () => {}',
  'jobs/send-welcome.ts': `import { defineJob } from 'khepri'
    export default defineJob<{ userId: number }>({ queue: 'mail', tries: 3, timeout: '30s', handle() {} })`,
}

describe('khepri jobs', () => {
  it('does not pass over CommonJS modules of the folder', async () => {
    using project = new KhepriProject({
      'jobs/a.cjs': 'module.exports = () => {}',
      'jobs/b.cts': 'module.exports = (): void => {}',
    })
    const { code, stdout } = await project.khepri(['jobs'])
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/a\.cjs\n.*b\.cts\n$/) })
  })

  it("a module that cannot be read is not told twice, in Node's words and in ours", async () => {
    using project = new KhepriProject({
      'package.json': '{"type":"commonjs"}',
      'jobs/bad.js': "import fs from 'node:fs'\nexport default () => { fs",
    })
    const { code, stderr } = await project.khepri(['jobs'])
    expect(code).toBe(1)
    expect(stderr).toMatch(/^error: cannot import \.\/jobs\/bad\.js:\d+: [^\n]+\n {2}fix: [^\n]+\n$/)
  })

  it('lists every registered job with its terms and its source', async () => {
    using project = new KhepriProject(good)
    expect(await project.khepri(['jobs'])).toMatchObject({
      code: 0,
      stderr: '',
      stdout: `Job           Queue    Tries  Timeout  Source
note          default  1      -        ./jobs/note.mjs
send-welcome  mail     3      30s      ./jobs/send-welcome.ts
`,
    })
  })

  it('names each module that does not load, after all have been tried, and exits 1', async () => {
    using project = new KhepriProject({
      ...good,
      'jobs/bad.mjs': 'export default 5',
      'jobs/worse.mjs': 'export default (',
    })
    const { code, stdout, stderr } = await project.khepri(['jobs'])
    expect(code).toBe(1)
    expect(stdout.split('\n')).toHaveLength(6)
    expect(stdout).toMatch(/^bad .*\.\/jobs\/bad\.mjs {2}does not load$/m)
    expect(stderr).toMatch(/^error: .*bad\.mjs/m)
    expect(stderr).toMatch(/^error: .*worse\.mjs/m)
  })

  it('is an array with --json, and each error a line of JSON', async () => {
    using project = new KhepriProject({ ...good, 'jobs/bad.mjs': 'export default 5' })
    const { code, stdout, stderr } = await project.khepri(['jobs', '--json'])
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toEqual([
      { job: 'bad', source: './jobs/bad.mjs', loads: false },
      { job: 'note', source: './jobs/note.mjs', loads: true, queue: 'default', tries: 1, timeoutMs: null },
      {
        job: 'send-welcome',
        source: './jobs/send-welcome.ts',
        loads: true,
        queue: 'mail',
        tries: 3,
        timeoutMs: 30_000,
      },
    ])
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'MODULE_BROKEN', exit: 1 } })
  })

  it('looks for every executable, and says how one that cannot be started is mended', async () => {
    using project = new KhepriProject({
      'jobs/resize.sh': '#!/bin/sh\n',
      'bin/report.sh': '#!/bin/sh\n',
      'khepri.config.json': JSON.stringify({
        jobs: ['./jobs', { gone: { exec: './bin/gone.sh', tries: 2 }, report: { exec: './bin/report.sh' } }],
      }),
    })
    chmodSync(join(project.path, 'jobs/resize.sh'), 0o755)
    const { code, stdout, stderr } = await project.khepri(['jobs'])
    expect(stdout).toBe(`Job     Queue    Tries  Timeout  Source
gone    -        -      -        ./bin/gone.sh  does not load
report  -        -      -        ./bin/report.sh  does not load
resize  default  1      -        ./jobs/resize.sh
`)
    expect(stderr).toBe(`error: cannot start ./bin/gone.sh: there is no such file
error: cannot start ./bin/report.sh: it is not executable
  fix: chmod +x ./bin/report.sh
`)
    expect(code).toBe(1)
  })

  it('needs no database', async () => {
    using project = new KhepriProject(good)
    expect(await project.khepri(['jobs', '--database=postgres://127.0.0.1:1/none'])).toMatchObject({ code: 0 })
  })

  it('without any says how to come by one', async () => {
    using project = new KhepriProject()
    expect(await project.khepri(['jobs'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'No jobs are registered. Next:  khepri init, or put a module into ./jobs\n',
    })
  })
})
