import { chmodSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type ConfigInput, resolveConfig } from '../../src/core/config.ts'
import { exec } from '../../src/core/executable.ts'
import { handlerBrand } from '../../src/core/handler.ts'
import { defineJob, Job } from '../../src/core/job.ts'
import { Registry } from '../../src/core/registry.ts'
import { TempProject } from '../support/temp-project.ts'

const open = (root: string, jobs?: ConfigInput['jobs']): Promise<Registry> =>
  Registry.open(resolveConfig(jobs === undefined ? {} : { jobs }, { root, file: null, env: {}, flags: {} }))

const invalid = (message: string): object => expect.objectContaining({ code: 'CONFIG_INVALID', message })

describe('a folder', () => {
  test('registers modules under their file names and skips what is private, typed, a test or a folder', async () => {
    const files = [
      'a.ts',
      'b.mts',
      'c.js',
      'd.mjs',
      'send.welcome.ts',
      '_x.ts',
      '.y.ts',
      'z.d.ts',
      'z.d.mts',
      'z.d.cts',
      'a.test.ts',
      'a.test.mjs',
      'r.json',
      'r.cjs',
      'README',
      'sub/e.ts',
    ]
    using project = new TempProject(
      Object.fromEntries(files.map((name) => [`jobs/${name}`, 'throw new Error("imported")'])),
    )
    mkdirSync(join(project.path, 'jobs/f.ts'))
    const registry = await open(project.path)
    expect(registry.names()).toEqual(['a', 'b', 'c', 'd', 'r', 'send.welcome'])
    expect(registry.get('a')?.source).toBe('./jobs/a.ts')
  })

  test('with a file behind a link registers it, and passes over a link to nowhere', async () => {
    using project = new TempProject({ 'real.ts': '', 'jobs/x': '' })
    symlinkSync(join(project.path, 'real.ts'), join(project.path, 'jobs/linked.ts'))
    symlinkSync(join(project.path, 'nowhere.ts'), join(project.path, 'jobs/dangling.ts'))
    expect((await open(project.path)).names()).toEqual(['linked'])
  })

  test('that does not exist is refused where it was named, and is no matter where it was not', async () => {
    using project = new TempProject({ 'a.ts': '' })
    expect((await open(project.path)).names()).toEqual([])
    await expect(open(project.path, './nope')).rejects.toThrow(
      invalid('the jobs folder ./nope cannot be read (ENOENT)'),
    )
    await expect(open(project.path, './a.ts')).rejects.toThrow(
      invalid('jobs names ./a.ts, which is a file and not a folder'),
    )
  })

  test('that all may write is refused', async () => {
    using project = new TempProject({ 'jobs/a.ts': '' })
    chmodSync(join(project.path, 'jobs'), 0o777)
    await expect(open(project.path)).rejects.toMatchObject({
      code: 'CONFIG_UNSAFE',
      message: './jobs is writable by all',
    })
  })
})

describe('executables', () => {
  const script = '#!/bin/sh\nexit 0\n'

  function projectWith(...files: readonly string[]): TempProject {
    const project = new TempProject(Object.fromEntries(files.map((name) => [name, script])))
    for (const name of files) chmodSync(join(project.path, name), 0o755)
    return project
  }

  test('of a folder are the files with the execute bit, under their names without extension, modules apart', async () => {
    using project = projectWith('jobs/resize.sh', 'jobs/plain', 'jobs/old.tar.py', 'jobs/a.ts', 'jobs/_lib.sh')
    for (const name of ['.hidden.sh', 'x.test.sh', 'sub/y.sh']) {
      project.write(`jobs/${name}`, script)
      chmodSync(join(project.path, 'jobs', name), 0o755)
    }
    project.write('jobs/README.md', 'no bit, no job')
    const registry = await open(project.path)
    expect(registry.names()).toEqual(['a', 'old.tar', 'plain', 'resize'])
    expect(registry.get('resize')).toMatchObject({ source: './jobs/resize.sh', mayBePrefetched: false })
    expect(registry.get('a')).toMatchObject({ source: './jobs/a.ts', mayBePrefetched: true })
  })

  test('tell their terms without being loaded, and say where nothing here can run them', async () => {
    using project = projectWith('jobs/resize.sh')
    const registry = await open(project.path, [
      './jobs',
      { big: exec('./bin/big.sh', { queue: 'high', tries: 5, timeout: '1m' }), small: { exec: './bin/small.sh' } },
    ])
    const terms = await Promise.all(['resize', 'big', 'small'].map((name) => registry.get(name)?.terms()))
    expect(terms).toEqual([{}, { queue: 'high', tries: 5, timeoutMs: 60_000 }, {}])
    expect(registry.get('big')).toMatchObject({ mayHaveSchema: false, mayBePrefetched: false, source: './bin/big.sh' })
    await expect(registry.get('small')?.handler()).rejects.toMatchObject({
      code: 'MODULE_BROKEN',
      message: './bin/small.sh is an executable, and nothing here can run one',
    })
  })

  test('and modules of one name are refused with both sources', async () => {
    using project = projectWith('jobs/a.sh')
    project.write('jobs/a.ts', '')
    await expect(open(project.path)).rejects.toThrow(invalid('job "a" has two handlers: ./jobs/a.sh and ./jobs/a.ts'))
  })
})

describe('names', () => {
  test('two handlers for one name are refused with both sources', async () => {
    using project = new TempProject({ 'jobs/a.ts': '', 'jobs/a.js': '', 'more/a.mjs': '', 'lib/b.ts': '' })
    await expect(open(project.path)).rejects.toThrow(invalid('job "a" has two handlers: ./jobs/a.js and ./jobs/a.ts'))
    await expect(open(project.path, ['./more', { a: './lib/b.ts' }])).rejects.toThrow(
      invalid('job "a" has two handlers: ./more/a.mjs and ./lib/b.ts'),
    )
    await expect(open(project.path, [{ a: defineJob({ handle: () => 1 }) }, { a: './lib/b.ts' }])).rejects.toThrow(
      invalid('job "a" has two handlers: the job "a" in the configuration and ./lib/b.ts'),
    )
  })

  test('one handler said twice is one handler, unless the terms make it another', async () => {
    using project = new TempProject({ 'jobs/a.ts': '' })
    expect((await open(project.path, ['./jobs', { a: './jobs/a.ts' }])).names()).toEqual(['a'])
    await expect(open(project.path, ['./jobs', { a: { module: './jobs/a.ts', tries: 2 } }])).rejects.toThrow(
      invalid('job "a" has two handlers: ./jobs/a.ts and ./jobs/a.ts'),
    )
  })

  test('two names for one handler are fine', async () => {
    using project = new TempProject({ 'jobs/send-welcome.ts': '' })
    expect((await open(project.path, ['./jobs', { send_welcome_email: './jobs/send-welcome.ts' }])).names()).toEqual([
      'send-welcome',
      'send_welcome_email',
    ])
  })

  test.each(['constructor', '__proto__', 'toString', '../../evil', 'file:///etc/passwd', './jobs/a.ts', 'A', ''])(
    '%j is simply unknown',
    async (name) => {
      using project = new TempProject({ 'jobs/a.ts': '', 'evil.ts': '' })
      expect((await open(project.path)).get(name)).toBeUndefined()
    },
  )

  test('a job may be called __proto__ or constructor', async () => {
    const job = defineJob({ handle: () => 1 })
    const registry = await open('/', JSON.parse('{"__proto__":"x.ts"}') as { __proto__: string })
    expect(registry.names()).toEqual(['__proto__'])
    expect((await open('/', { constructor: job })).get('constructor')?.name).toBe('constructor')
  })

  test('an unknown name is answered as in the manual', async () => {
    const registry = await open('/', { 'send-welcome': defineJob({ handle: () => 1 }) })
    expect(registry.unknown('send-welcom')).toMatchObject({
      code: 'JOB_UNKNOWN',
      message: 'unknown job "send-welcom". Did you mean "send-welcome"?',
      fix: 'khepri jobs lists the known ones; --allow-unknown dispatches it all the same',
    })
    expect(registry.unknown('\u001b[2J\nx').message).toBe('unknown job "\\u001b[2J\\nx"')
  })
})

describe('entries', () => {
  test('may be a definition, a class, a function or what another layer made', async () => {
    class Welcome extends Job {
      handle(): void {}
    }
    const definition = defineJob({ tries: 2, handle: () => 1 })
    const plain = (): number => 1
    const layer = {
      [handlerBrand]: () => {
        throw new Error('made')
      },
      terms: { queue: 'high' },
    }
    const registry = await open('/', { definition, welcome: Welcome, plain, layer })
    expect(await registry.get('definition')?.terms()).toEqual({ tries: 2 })
    expect(await registry.get('layer')?.terms()).toEqual({ queue: 'high' })
    expect(registry.get('layer')?.mayHaveSchema).toBe(false)
    expect([Welcome, definition, plain, class Other {}].map((job) => registry.nameOf(job))).toEqual([
      'welcome',
      'definition',
      'plain',
      undefined,
    ])
  })

  test.each([
    [{ a: 7 }, 'jobs.a must be a path, a job or an object with a module or exec, got 7'],
    [{ a: null }, 'jobs.a must be a path, a job or an object with a module or exec, got null'],
    [{ a: '' }, 'jobs.a must be a path, a job or an object with a module or exec, got ""'],
    [{ a: { tries: 3 } }, 'jobs.a.module must be a path, got undefined'],
    [{ a: { module: './a.ts', tris: 3 } }, 'unknown key "tris" in jobs.a. Did you mean "tries"?'],
    [{ a: { module: './a.ts', tries: 0 } }, 'jobs.a.tries must be a whole number of at least 1, got 0'],
    [{ a: class Foo {} }, 'jobs.a must be a path, a job or an object with a module or exec, got a function'],
  ])('refuses %o', async (jobs, message) => {
    await expect(open('/', jobs as unknown as NonNullable<ConfigInput['jobs']>)).rejects.toThrow(invalid(message))
  })

  test('refuses a definition where a map of definitions belongs', () => {
    expect(() =>
      resolveConfig({ jobs: defineJob({ handle: () => 1 }) as never }, { root: '/', file: null, env: {}, flags: {} }),
    ).toThrow(invalid('jobs is a job without a name'))
  })
})

describe('loading', () => {
  test('imports a module at the first question about it and never again', async () => {
    using project = new TempProject({
      'package.json': '{"type":"commonjs"}',
      'jobs/counted.ts':
        'globalThis.imports = (globalThis.imports ?? 0) + 1\nimport { defineJob } from "khepri"\nexport default defineJob({ tries: 3, queue: "mail", handle: () => "ran" })',
    })
    const found = await project.runCode(`
      const registry = await openRegistry()
      const before = globalThis.imports
      const job = registry.get('counted')
      const terms = [await job.terms(), await job.terms()]
      report([before, terms, await (await job.handler()).run(null, {}), globalThis.imports])
    `)
    expect(found).toEqual([
      'undefined',
      [
        { tries: 3, queue: 'mail' },
        { tries: 3, queue: 'mail' },
      ],
      'ran',
      1,
    ])
  })

  test('an entry that carries terms answers them without an import, and overrides those of the module at work', async () => {
    using project = new TempProject({
      'khepri.config.mjs':
        'export default { jobs: { report: { module: "./lib/report.ts", queue: "slow", tries: 3 } } }',
      'lib/report.ts':
        'globalThis.imported = true\nimport { defineJob } from "khepri"\nexport default defineJob({ tries: 9, timeout: "5s", handle: () => 1 })',
    })
    const found = await project.runCode(`
      const job = (await openRegistry()).get('report')
      const terms = await job.terms()
      const before = globalThis.imported
      report([terms, job.mayHaveSchema, before, (await job.handler()).terms])
    `)
    expect(found).toEqual([
      { queue: 'slow', tries: 3 },
      false,
      'undefined',
      { queue: 'slow', tries: 3, timeoutMs: 5_000 },
    ])
  })

  test('a module that cannot be imported rejects each time and leaves the others alone', async () => {
    using project = new TempProject({
      'jobs/bad.ts': 'throw new Error("boom")',
      'jobs/good.ts': 'export default () => 1',
    })
    const found = await project.runCode(`
      const registry = await openRegistry()
      report([await caught(registry.get('bad').handler()), await caught(registry.get('bad').terms()), await registry.get('good').terms()])
    `)
    const error = {
      code: 'MODULE_BROKEN',
      message: 'cannot import ./jobs/bad.ts:1: boom',
      fix: 'correct line 1, then: khepri jobs',
    }
    expect(found).toEqual([error, error, {}])
  })

  test("wrong terms of a module are the module's fault", async () => {
    using project = new TempProject({
      'jobs/a.ts': 'import { Job } from "khepri"\nexport default class A extends Job { static tries = 0; handle() {} }',
    })
    expect(await project.runCode(`report(await caught((await openRegistry()).get('a').terms()))`)).toMatchObject({
      code: 'MODULE_BROKEN',
      message: './jobs/a.ts: tries must be a whole number of at least 1, got 0',
    })
  })
})
