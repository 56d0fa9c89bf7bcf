import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** The oldest Node khepri promises to run on, and the newest; the one in between runs every other test. */
const nodes = ['22.18.0', '26'] as const

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const execute = promisify(execFile)

interface Ran {
  readonly stdout: string
  readonly stderr: string
  readonly code: number
}

const config = `import type { ConfigInput } from 'khepri'
import { defineConfig } from 'khepri'
const tries: number = 1
export default defineConfig({ tries } satisfies ConfigInput)
`

const job = `import { existsSync } from 'node:fs'
import { defineJob } from 'khepri'
export default defineJob<{ file: string }>({
  handle({ file }, { log }): void {
    if (!existsSync(file)) throw new Error(\`no such file: \${file}\`)
    log(\`found \${file}\`)
  },
})
`

/** Packs khepri as it is published; the result is the tarball's path. */
async function pack(folder: string): Promise<string> {
  await execute('npm', ['pack', '--pack-destination', folder], { cwd: root })
  const tarball = (await readdir(folder)).find((name) => name.endsWith('.tgz'))
  if (tarball === undefined) throw new Error('npm pack left no tarball')
  return join(folder, tarball)
}

/** An empty project with khepri from the tarball and one Node of its own. */
async function install(folder: string, tarball: string, node: string): Promise<void> {
  await mkdir(join(folder, 'jobs'), { recursive: true })
  // The package "node" fetches its binary in a script of its own, which npm asks to be allowed by name.
  const manifest = { name: 'smoke', private: true, allowScripts: { node: true, 'better-sqlite3': false } }
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  await writeFile(join(folder, 'khepri.config.ts'), config)
  await writeFile(join(folder, 'jobs', 'look.ts'), job)
  await execute('npm', ['install', '--no-audit', '--no-fund', tarball, `node@${node}`], { cwd: folder })
}

const nodeOf = (project: string): string => join(project, 'node_modules', 'node', 'bin', 'node')

/** Runs khepri on the project's own Node, from the project's folder. */
function khepri(project: string, ...args: readonly string[]): Promise<Ran> {
  return run(nodeOf(project), [join(project, 'node_modules', 'khepri', 'bin', 'run.cjs'), ...args], project)
}

async function run(file: string, args: readonly string[], cwd: string): Promise<Ran> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:npm_|KHEPRI_|NODE_)/.test(name)))
  try {
    return { ...(await execute(file, [...args], { cwd, env, timeout: 60_000 })), code: 0 }
  } catch (error) {
    const failed = error as { readonly code: unknown; readonly stdout?: string; readonly stderr?: string }
    if (typeof failed.code !== 'number') throw error
    return { stdout: failed.stdout ?? '', stderr: failed.stderr ?? '', code: failed.code }
  }
}

function expect(
  what: string,
  ran: Ran,
  wanted: { readonly code?: number; readonly stdout?: RegExp; readonly stderr?: RegExp },
): void {
  const { code = 0, stdout = /(?:)/, stderr = /(?:)/ } = wanted
  if (ran.code === code && stdout.test(ran.stdout) && stderr.test(ran.stderr)) return
  throw new Error(
    `${what}: expected exit ${code}, stdout ${stdout}, stderr ${stderr}\n  got exit ${ran.code}\n  stdout: ${ran.stdout}\n  stderr: ${ran.stderr}`,
  )
}

/** The main road once: a job fails for good, its cause is mended, it is put back and runs. */
async function smoke(project: string): Promise<void> {
  expect('work without a schema', await khepri(project, 'work', '--once'), {
    code: 78,
    stderr: /the schema of .* is missing/,
  })
  expect('migrate', await khepri(project, 'migrate'), { stdout: /^applied / })
  expect('dispatch', await khepri(project, 'dispatch', '--job', 'look', '--payload', '{"file":"wanted.txt"}'), {
    stdout: /^1\n$/,
  })
  expect('work', await khepri(project, 'work', '--stop-when-empty'), {
    stdout: / FAILED 1 look .*no such file: wanted\.txt/,
  })
  expect('failed', await khepri(project, 'failed'), { stdout: /^1 +default +look .* no such file: wanted\.txt$/m })
  await writeFile(join(project, 'wanted.txt'), '')
  expect('retry', await khepri(project, 'retry', '1'), { stdout: /^Retried 1 job: 1 \(look on default\)/ })
  const worked = await khepri(project, 'work', '--stop-when-empty')
  expect('work again', worked, { stdout: / LOG 1 look .*found wanted\.txt/ })
  expect('work again', worked, { stdout: / DONE 1 look queue=default try=1\/1 /, stderr: /^$/ })
  expect('failed, when all is done', await khepri(project, 'failed', '--json'), { stdout: /^\[\]\n$/ })
}

async function main(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'khepri-nodes-'))
  try {
    const tarball = await pack(folder)
    for (const node of nodes) {
      const project = join(folder, `node-${node}`)
      await install(project, tarball, node)
      await smoke(project)
      const { stdout } = await run(nodeOf(project), ['--version'], project)
      console.log(`ok: khepri from its tarball on Node ${stdout.trim()}`)
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

await main()
