import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { styleText } from 'node:util'

/**
 * Shows the main road for real, on SQLite in a temporary folder: dispatch from files and a stream, work, retry, fail,
 * list, mend, put back, work again. Each command is echoed as a user would type it; ends with 0 only if every effect was seen.
 */

const root = dirname(dirname(fileURLToPath(import.meta.url)))

const files = {
  'package.json': '{ "name": "demo", "private": true, "type": "module" }\n',
  'jobs/resize-image.ts': `import { readFileSync } from 'node:fs'
import { defineJob } from 'khepri'
export default defineJob<{ file: string }>({
  queue: 'high', tries: 2, backoff: { kind: 'none' },
  handle({ file }, { log }) { log(\`\${file}: \${readFileSync(file, 'utf8').trim()}\`) },
})
`,
  'jobs/flaky.ts': `import { defineJob } from 'khepri'
export default defineJob({
  tries: 3, backoff: { kind: 'none' },
  handle(_, { attempt }) { if (attempt === 1) throw new Error('the network was away') },
})
`,
  'image.json': '{ "job": "resize-image", "payload": { "file": "seven.txt" } }\n',
  'jobs.ndjson': '{"job":"flaky"}\n{"job":"send-welcome","payload":{"userId":8},"priority":-1}\n',
} as const

interface Ran {
  readonly stdout: string
  readonly stderr: string
  readonly code: number | null
}

/** Runs one line in a shell, shows it with all that it writes, and checks what came of it. */
class Stage {
  readonly #folder: string
  readonly #env: NodeJS.ProcessEnv

  constructor(folder: string) {
    this.#folder = folder
    const ours = Object.entries(process.env).filter(([name]) => !/^(?:KHEPRI_|npm_|NODE_OPTIONS$)/.test(name))
    const path = [join(folder, 'bin'), dirname(process.execPath), process.env.PATH].join(delimiter)
    this.#env = { ...Object.fromEntries(ours), PATH: path }
  }

  /** wanted: what must be seen in stdout and stderr together, in any order. */
  async run(line: string, ...wanted: readonly RegExp[]): Promise<void> {
    console.log(`${styleText('bold', '$')} ${styleText('bold', line)}`)
    const { stdout, stderr, code } = await this.#shell(line)
    if (code !== 0) throw new Error(`expected exit 0, got ${code}`)
    for (const pattern of wanted)
      if (!pattern.test(`${stdout}\n${stderr}`)) throw new Error(`expected to see ${pattern}`)
    console.log()
  }

  #shell(line: string): Promise<Ran> {
    return new Promise((resolve, reject) => {
      const child = spawn('sh', ['-c', line], { cwd: this.#folder, env: this.#env, stdio: ['ignore', 'pipe', 'pipe'] })
      const seen = { stdout: '', stderr: '' }
      for (const name of ['stdout', 'stderr'] as const)
        child[name].setEncoding('utf8').on('data', (text: string) => {
          seen[name] += text
          process[name].write(text)
        })
      child.on('error', reject).on('close', (code) => resolve({ ...seen, code }))
    })
  }
}

async function play(stage: Stage): Promise<void> {
  await stage.run('khepri init', /created {2}khepri\.config\.ts/, /created {2}jobs\/send-welcome\.ts/)
  await stage.run('khepri migrate', /applied {2}0000_jobs/)

  await stage.run(
    `khepri dispatch --job send-welcome --payload '{"userId":7}'`,
    /^1$/m,
    /Dispatched send-welcome on default\. Run it: khepri work/,
  )
  await stage.run('khepri dispatch image.json jobs.ndjson', /^2\n3\n4$/m, /Dispatched 3 jobs/)
  await stage.run(
    `seq 100 | sed 's/.*/{"userId":&}/' | khepri dispatch - --job send-welcome`,
    /Dispatched 100 jobs in /,
  )

  await stage.run(
    'khepri work --queue=high,default --stop-when-empty --log results | grep -v " send-welcome "',
    / RETRY 2 resize-image queue=high try=1\/2 .*seven\.txt/,
    / FAILED 2 resize-image queue=high try=2\/2 .*seven\.txt/,
    / RETRY 3 flaky queue=default try=1\/3 .*"the network was away"/,
    / DONE 3 flaky queue=default try=2\/3 /,
    /stopped: 103 done, 2 retried, 1 failed/,
  )

  await stage.run('khepri failed', /^2 +high +resize-image .*no such file.*seven\.txt/m)
  await stage.run('echo seven pixels > seven.txt && khepri retry --all', /Retried 1 job: 2 \(resize-image on high\)/)
  await stage.run(
    'khepri work --queue=high,default --stop-when-empty',
    / LOG 2 resize-image .*"seven\.txt: seven pixels"/,
    / DONE 2 resize-image queue=high try=1\/2 /,
    /stopped: 1 done, 0 retried, 0 failed/,
  )
  await stage.run('khepri failed --json', /^\[\]$/m)
}

async function main(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'khepri-demo-'))
  try {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true })
      await writeFile(join(folder, name), text)
    }
    await mkdir(join(folder, 'bin'))
    await symlink(join(root, 'bin', 'run.cjs'), join(folder, 'bin', 'khepri'))
    await play(new Stage(folder))
    console.log('Every effect was seen.')
  } catch (error) {
    console.error(`The demo failed: ${(error as Error).message}`)
    process.exitCode = 1
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

await main()
