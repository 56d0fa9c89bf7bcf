import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { repository, TempProject } from './support/temp-project.ts'

const execute = promisify(execFile)

/** npm and khepri as in a shell of the user's: none of this run's settings, our Node first on the PATH. */
const env = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:KHEPRI_|npm_|NODE_OPTIONS$)/.test(name))),
  PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
}

interface Packed {
  readonly filename: string
  readonly files: readonly { readonly path: string }[]
}

async function pack(folder: string): Promise<{ readonly tarball: string; readonly files: readonly string[] }> {
  const { stdout } = await execute('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
    cwd: repository,
    env,
  })
  // A list, or from npm 12 on an object by package name; Object.values reads both.
  const [packed] = Object.values(JSON.parse(stdout) as Readonly<Record<string, Packed>>)
  if (packed === undefined) throw new Error(`npm pack reported nothing: ${stdout}`)
  return { tarball: join(folder, packed.filename), files: packed.files.map(({ path }) => path) }
}

describe('the packed package', () => {
  it('holds what runs and nothing of what builds or tests it', async () => {
    using folder = new TempProject()
    const { files } = await pack(folder.path)
    expect(files).toEqual(
      expect.arrayContaining([
        'bin/run.cjs',
        'dist/cli.js',
        'dist/index.js',
        'dist/types/index.d.ts',
        'drizzle/sqlite/0000_jobs.sql',
        'drizzle/postgres/0000_jobs.sql',
      ]),
    )
    const linked = [...readFileSync(join(repository, 'README.md'), 'utf8').matchAll(/\]\(([^):]+)\)/g)].map(
      ([, path = '']) => path,
    )
    expect(linked.length).toBeGreaterThan(4)
    // No link of the README may lead out of the package.
    expect(files).toEqual(expect.arrayContaining(linked))
    expect(files.filter((file) => /^(?:src|test|scripts|bench|node_modules)\//.test(file))).toEqual([])
  })

  it('is installed into an empty project and works there from another directory', { timeout: 180_000 }, async () => {
    using folder = new TempProject({ 'package.json': '{"private":true,"allowScripts":{"better-sqlite3":false}}' })
    const { tarball } = await pack(folder.path)
    await execute('npm', ['install', '--no-audit', '--no-fund', tarball], { cwd: folder.path, env })
    const elsewhere = join(folder.path, 'deep', 'below')
    mkdirSync(elsewhere, { recursive: true })
    const run = async (...args: readonly string[]): Promise<string> =>
      (await execute(join(folder.path, 'node_modules', '.bin', 'khepri'), [...args], { cwd: elsewhere, env })).stdout

    folder.write(
      'khepri.config.ts',
      `import { defineConfig } from 'khepri'\nexport default defineConfig({ database: 'sqlite:./q.db' })\n`,
    )
    folder.write(
      'jobs/greet.ts',
      `import { defineJob } from 'khepri'\nexport default defineJob<{ name: string }>({ handle: ({ name }, { log }) => log(\`hello \${name}\`) })\n`,
    )
    expect(await run('migrate')).toMatch(/^applied {2}0000_jobs/)
    expect(await run('dispatch', '--job', 'greet', '--set', 'name=Ada')).toBe('1\n')
    expect(await run('work', '--stop-when-empty')).toMatch(/ LOG 1 greet .* text="hello Ada"\n.* DONE 1 greet /)
    expect(readdirSync(elsewhere)).toEqual([])
    expect(readdirSync(folder.path)).toContain('q.db')
  })

  it('gives its types to a program that uses the library', async () => {
    using folder = new TempProject({
      'program.mts': `import { createKhepri, defineJob } from 'khepri'
        const greet = defineJob<{ name: string }>({ handle() {} })
        const app = createKhepri({ jobs: { greet } })
        await app.dispatch('greet', { name: 'Ada' })
        // @ts-expect-error: the payload is typed by its job
        await app.dispatch('greet', { name: 7 })
      `,
      'tsconfig.json': JSON.stringify({
        compilerOptions: {
          strict: true,
          noEmit: true,
          module: 'nodenext',
          target: 'es2024',
          lib: ['es2024', 'esnext.disposable'],
          types: ['node'],
          typeRoots: [join(repository, 'node_modules', '@types')],
          paths: { khepri: [join(repository, 'dist', 'types', 'index.d.ts')] },
        },
        files: ['program.mts'],
      }),
    })
    const { stdout } = await execute(join(repository, 'node_modules', '.bin', 'tsc'), ['-p', folder.path], {
      cwd: folder.path,
      env,
    })
    expect(stdout).toBe('')
  })
})
