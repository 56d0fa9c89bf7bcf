import { describe, expect, it } from 'vitest'
import { type KhepriProject, migratedProject } from '../support/khepri-project.ts'

const exits = 'process.exit(0)'
const hangs = 'await new Promise(() => {})\nexport default () => {}'
const thenable = 'export function then() {}\nexport default () => {}'
const rejects = `Promise.reject(new Error('left alone'))\nexport default () => {}`
const ticks = `setTimeout(() => { throw new Error('left alone') }, 1)\nexport default () => {}`

const project = (job: string, text: string): Promise<KhepriProject> => migratedProject({ [`jobs/${job}.mjs`]: text })

describe('a module that calls process.exit(0) while it is imported', () => {
  it.each([[['dispatch', '--job', 'leaver']], [['jobs']], [['work', '--stop-when-empty']]])(
    'does not make %j end well: 70, and the file is named',
    async (words) => {
      using made = await project('leaver', exits)
      const { code, stdout, stderr } = await made.khepri(words)
      expect(stderr).toMatch(/^error: \.\/jobs\/leaver\.mjs, being loaded, ended the process with process\.exit\(0\)/)
      expect(stdout).toBe('')
      expect(code).toBe(70)
      expect(made.count()).toBe(0)
    },
  )

  it('is named in the form of --json where that was asked for', async () => {
    using made = await project('leaver', exits)
    const { code, stderr } = await made.khepri(['dispatch', '--job', 'leaver', '--json'])
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'EXIT_CALLED', exit: 70 } })
    expect(code).toBe(70)
  })

  it('is named where it is the configuration', async () => {
    using made = await migratedProject({ 'khepri.config.mjs': exits })
    const { code, stderr } = await made.khepri(['status'])
    expect(stderr).toMatch(/^error: khepri\.config\.mjs, being loaded, ended the process/)
    expect(code).toBe(70)
  })
})

describe('a handler that calls process.exit(0)', () => {
  it('does not make its worker end well, and loses no line that was announced', async () => {
    using made = await migratedProject({
      'jobs/good.mjs': 'export default () => {}',
      'jobs/leaver.mjs': 'export default () => { process.exit(0) }',
    })
    await made.khepri(['dispatch', '--job', 'good'])
    await made.khepri(['dispatch', '--job', 'leaver'])
    const { code, stdout, stderr } = await made.khepri(['work', '--stop-when-empty'])
    expect(stdout).toMatch(/^\S+ khepri .*\n\S+ DONE 1 good .*\n$/)
    expect(stderr).toMatch(/^error: job 2 \(leaver\) ended the process with process\.exit\(0\)/)
    expect(code).toBe(70)
    expect(made.count()).toBe(1)
  })

  it('loses no event of --json', async () => {
    using made = await project('leaver', 'export default (_, { log }) => { log("going"); process.exit(0) }')
    await made.khepri(['dispatch', '--job', 'leaver'])
    const { code, stdout } = await made.khepri(['work', '--stop-when-empty', '--json'])
    const events = stdout.trim().split('\n')
    expect(events.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual([
      'worker.started',
      'job.started',
      'job.log',
    ])
    expect(code).toBe(70)
  })
})

describe('a module that never finishes loading', () => {
  it.each([
    ['await', hangs, 'its top-level await does not end'],
    ['then', thenable, 'it exports a function named "then"'],
  ])('because of its %s is named by dispatch, and not passed over in silence', async (job, text, why) => {
    using made = await project(job, text)
    const { code, stderr } = await made.khepri(['dispatch', '--job', job])
    expect(stderr).toContain(`error: cannot import ./jobs/${job}.mjs: ${why}`)
    expect(code).toBe(78)
    expect(made.count()).toBe(0)
  })

  it('does not keep jobs from listing the others', async () => {
    using made = await migratedProject({
      'jobs/hangs.mjs': hangs,
      'jobs/thenable.mjs': thenable,
      'jobs/good.mjs': 'export default () => {}',
    })
    const { code, stdout, stderr } = await made.khepri(['jobs'])
    expect(stdout).toMatch(/good .*\.\/jobs\/good\.mjs\n/)
    expect(stdout).toMatch(/hangs .*does not load/)
    expect(stderr).toContain('./jobs/thenable.mjs: it exports a function named "then"')
    expect(code).toBe(1)
  })

  it('does not keep a worker from the jobs of others', async () => {
    using made = await migratedProject({ 'jobs/hangs.mjs': hangs, 'jobs/good.mjs': 'export default () => {}' })
    await made.khepri(['dispatch', '--job', 'good'])
    const { code, stdout } = await made.khepri(['work', '--stop-when-empty'])
    expect(stdout).toMatch(/DONE 1 good/)
    expect(code).toBe(0)
  })
})

describe('a module that leaves an error behind', () => {
  it.each([
    ['promise', rejects],
    ['timer', ticks],
  ])('in a %s does not make a committed dispatch look failed: a warning names the file', async (job, text) => {
    using made = await project(job, text)
    const { code, stdout, stderr } = await made.khepri(['dispatch', '--job', job])
    expect(stdout).toBe('1\n')
    expect(stderr).toContain(`warning: ./jobs/${job}.mjs: nobody caught an error: left alone\n`)
    expect(code).toBe(0)
    expect(made.count()).toBe(1)
  })

  it('does not pass the check of jobs', async () => {
    using made = await project('promise', rejects)
    const { code, stderr } = await made.khepri(['jobs'])
    expect(stderr).toContain('warning: ./jobs/promise.mjs: nobody caught an error: left alone\n')
    expect(code).toBe(1)
  })

  it('is named by a worker that stops for it, and not called a bug of khepri', async () => {
    using made = await migratedProject({
      'khepri.config.json': '{"queues":{"default":{}}}',
      'jobs/late.mjs': `export default () => new Promise((resolve) => setTimeout(resolve, 200))
        setTimeout(() => { throw new Error('left alone') }, 100)`,
    })
    await made.khepri(['dispatch', '--job', 'late'])
    const { code, stderr } = await made.khepri(['work', '--stop-when-empty'])
    expect(stderr).toContain('error: ./jobs/late.mjs: nobody caught an error: left alone\n')
    expect(stderr).not.toContain('internal error')
    expect(code).toBe(70)
  })
})

it('a worker whose slots are all stuck does not end well: 70, and it says why', async () => {
  using made = await project('deaf', 'export default () => new Promise(() => setInterval(() => {}, 1_000))')
  await made.khepri(['dispatch', '--job', 'deaf', '--timeout', '100ms'])
  const { code, stderr } = await made.khepri(['work'])
  expect(stderr).toContain('error: every slot of this worker holds a handler that ignores its abort signal\n')
  expect(code).toBe(70)
})

it('a module that takes long to load is named while it does', async () => {
  using made = await project(
    'slow',
    'await new Promise((resolve) => setTimeout(resolve, 60_000))\nexport default () => {}',
  )
  await using live = made.start(['dispatch', '--job', 'slow'])
  await live.until(/^loading \.\/jobs\/slow\.mjs takes long\n/, 'stderr')
})

it('a module whose code never returns is named by jobs', async () => {
  using made = await project('loop', 'for (;;);')
  await using live = made.start(['jobs'])
  await live.until(/^loading \.\/jobs\/loop\.mjs takes long, and its code does not return\n/, 'stderr')
})

describe('a module whose default export throws when it is looked at', () => {
  const revoked = 'const { proxy, revoke } = Proxy.revocable({}, {})\nrevoke()\n'

  it.each([
    ['revoked', `${revoked}export default proxy`],
    ['throwing', `export default new Proxy({}, { get() { throw new Error('not you') } })`],
    ['thrown', `${revoked}throw proxy`],
  ])('is not taken for a bug of khepri where it is %s: 78, and the file is named', async (job, text) => {
    using made = await project(job, text)
    const { code, stderr } = await made.khepri(['dispatch', '--job', job])
    expect(stderr).toMatch(new RegExp(`^error: .*\\./jobs/${job}\\.mjs`))
    expect(stderr).not.toContain('internal error')
    expect(code).toBe(78)
  })

  it.each([
    ['the configuration', `${revoked}export default proxy`, 'khepri.config.mjs throws when its settings are read'],
    ['a job in it', `${revoked}export default { jobs: { odd: proxy } }`, 'jobs.odd cannot be loaded: '],
  ])('is not taken for a bug where it is %s', async (_, text, says) => {
    using made = await migratedProject({ 'khepri.config.mjs': text })
    const { code, stderr } = await made.khepri(['jobs'])
    expect(stderr).toContain(`error: ${says}`)
    expect(code).toBe(78)
  })
})
