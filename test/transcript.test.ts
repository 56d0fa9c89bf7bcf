import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { atTerminal, terminalShell, terminalSkipReason } from './support/cli.ts'
import { freePort } from './support/postgres.ts'
import { repository, TempProject } from './support/temp-project.ts'
import { Session, seen } from './support/transcript.ts'

/** What a new user meets, command by command; each block begins where it says. */

const migrations = readdirSync(join(repository, 'drizzle', 'sqlite'))
  .filter((name) => name.endsWith('.sql'))
  .map((name) => basename(name, '.sql'))
  .sort()
const latest = migrations.at(-1) ?? ''
const [latestNumber] = latest.split('_')

const sample = {
  'khepri.config.json': '{}',
  // One that is told to holds on until the file that it is told is there.
  'jobs/send-welcome.mjs': `import { existsSync } from 'node:fs'
    import { setTimeout as wait } from 'node:timers/promises'
    import { defineJob } from 'khepri'
    export default defineJob({ tries: 3, async handle({ hold }) { while (hold && !existsSync(hold)) await wait(20) } })`,
}

/** A job that fails as a program does. */
const resizing = {
  'khepri.config.json': JSON.stringify({
    jobs: ['./jobs', { 'resize-image': { exec: './resize.sh', queue: 'high', tries: 5, backoff: '10m' } }],
  }),
  'jobs/send-welcome.mjs': sample['jobs/send-welcome.mjs'],
  'resize.sh': '#!/bin/sh\necho "in/7.png: no such file" >&2\nexit 1\n',
}

describe('the transcript of the command line', () => {
  it('from npm init -y on: init, work without tables, migrate twice, dispatch', async () => {
    using session = new Session()
    // As npm i khepri leaves it, without a registry.
    execFileSync('npm', ['init', '-y'], { cwd: session.path, stdio: 'ignore' })
    mkdirSync(join(session.path, 'node_modules', '.bin'), { recursive: true })
    symlinkSync(repository, join(session.path, 'node_modules', 'khepri'))
    symlinkSync('../khepri/bin/run.cjs', join(session.path, 'node_modules', '.bin', 'khepri'))
    await session.prepares('npm pkg delete type')
    await session.plays(`
$ npx khepri init
created  khepri.config.ts         sqlite:./khepri.db
created  jobs/send-welcome.ts     a sample job
2| Next:  npx khepri migrate && npx khepri dispatch --job send-welcome --payload '{"userId":7}' && npx khepri work
$ cat jobs/send-welcome.ts
import { defineJob } from 'khepri'
export default defineJob<{ userId: number }>({
  tries: 3, backoff: ['10s', '1m'], timeout: '30s',
  async handle(payload, { signal, log }) { log(\`greeting user \${payload.userId}\`) },
})
$ khepri work
2| error: the schema of sqlite:./khepri.db is missing
2|   fix: khepri migrate                                                                             [78]
$ khepri migrate
applied  0000_jobs .. ${latest}     ${migrations.length} migrations, 31ms
$ khepri migrate
2| Nothing to do: sqlite:./khepri.db is at ${latestNumber}
$ khepri dispatch --job send-welcome --payload '{"userId":7}'
1
2| Dispatched send-welcome on default. Run it: khepri work
$ echo '{"job":"send-welcome","payload":{"userId":8}}' > job.json; khepri dispatch job.json --delay 10m --quiet
2
$ khepri work --stop-when-empty | grep -c ' DONE 1 send-welcome queue=default try=1/3 '
1
`)
  })

  it.skipIf(terminalSkipReason() !== null)(
    'a large file shows a bar at a terminal, and a count at the end',
    async () => {
      using session = new Session(sample)
      await session.prepares('khepri migrate')
      session.write('users.ndjson', '{"userId":7}\n'.repeat(110_000))
      const { code, stdout } = await atTerminal(['dispatch', 'users.ndjson', '--job', 'send-welcome'], {
        cwd: session.path,
      })
      expect(code).toBe(0)
      expect(stdout).toMatch(/\rdispatching {2}█*░+ {2}[\d,]+ lines? {2}\d+% {2}[\d.]+k?\/s(?: {2}eta \d+s)?\u001b\[K/)
      expect(seen(stdout)).toMatch(/^Dispatched 110,000 jobs in [\d.]+m?s \([\d,]+\/s\)\n$/)
    },
  )

  it('a stream with lines that are no jobs is counted, and the first of those is named', async () => {
    using session = new Session(sample)
    const good = '{"job":"send-welcome","payload":{"userId":7}}'
    const lines = Array.from({ length: 100 }, () => good)
    lines[41] = '{"job":"send-welcome","try":1 "queue":"mail"}'
    lines[77] = '{"job":"send-welcome",}'
    session.write('users.txt', `${lines.join('\n')}\n`)
    session.write('.bin/gen-users', '#!/bin/sh\ncat users.txt\n')
    await session.prepares('khepri migrate', 'chmod +x .bin/gen-users')
    await session.plays(`
$ gen-users | khepri dispatch - --skip-invalid --rejects bad.ndjson
2| Dispatched 98 jobs in 12ms; 2 lines rejected, see bad.ndjson (first: line 42:31, expected ',' or '}' after a value)   [1]
$ wc -l < bad.ndjson | tr -d ' '
2
`)
  })

  it.skipIf(terminalSkipReason() !== null)('a worker at a terminal, and its gentle end', async () => {
    using session = new Session(resizing)
    await session.prepares('khepri migrate', 'khepri dispatch --job resize-image')
    await using worker = session.start(['work', '--queue=high,default', '--concurrency=4'], {
      shell: terminalShell(120),
    })
    await worker.until(/RETRY/)
    await session.prepares('khepri dispatch --job send-welcome')
    await worker.until(/DONE/)
    const [, pid] = await worker.until(/worker \S+-(\d+)/)
    await session.prepares(
      'khepri dispatch --job send-welcome --set hold=first',
      'khepri dispatch --job send-welcome --set hold=second',
    )
    await worker.until(/2 running {2}0 ready {2}1 scheduled {2}0 failed {3}\d+\/s {3}\^C stops/)
    process.kill(Number(pid), 'SIGINT')
    await worker.until(/abandon them/)
    session.write('first', '')
    await worker.until(/ 3 {8}send-welcome .*DONE/)
    session.write('second', '')
    const { code, stdout } = await worker.ended
    expect(code).toBe(0)
    expect(lined(seen(stdout))).toBe(`\
khepri <version>  worker <worker>  queues high,default  concurrency 4  sqlite:./khepri.db    Ctrl-C stops gently
<clock>  1        resize-image  high     try 1/5 ................ <ms>  RETRY in 10m  exit 1: in/7.png: no such file
<clock>  2        send-welcome  default  try 1/3 ................ <ms>  DONE
stopping: waiting for 2 jobs (Ctrl-C again to abandon them)
<clock>  3        send-welcome  default  try 1/3 ................ <ms>  DONE
<clock>  4        send-welcome  default  try 1/3 ................ <ms>  DONE
stopped: 3 done, 1 retried, 0 failed in <ms>
`)
  })

  it.skipIf(terminalSkipReason() !== null)(
    'what failed, at a terminal and in a pipe, and how it is put back',
    async () => {
      const once = resizing['khepri.config.json'].replace('"tries":5', '"tries":1')
      using session = new Session({ ...resizing, 'khepri.config.json': once })
      await session.prepares(
        'khepri migrate',
        'for i in 1 2 3; do khepri dispatch --job send-welcome --delay 1h; done',
        'khepri dispatch --job resize-image',
        'khepri work --queue=high --stop-when-empty',
      )
      await session.plays(`
tty$ khepri failed
ID  Queue  Job           Failed at  Error
4   high   resize-image  5m ago     exit 1: in/7.png: no such file
$ khepri failed | cat
ID  Queue  Job           Failed at                 Error
4   high   resize-image  2026-11-30T14:02:58.114Z  exit 1: in/7.png: no such file
$ khepri retry 4 99
Retried 1 job: 4 (resize-image on high)
2| error: no failed job 99                                                                           [1]
`)
    },
  )

  it('what is mistyped, broken or not there is named with its value and the way out', async () => {
    using session = new Session({
      ...sample,
      'broken.json': '{\n  "job": "send-welcome",\n  "payload": 7 "queue": "high"\n}\n',
    })
    const port = await freePort()
    await session.prepares('khepri migrate')
    await session.plays(`
$ khepri dispatch --job send-welcom --payload '{}'
2| error: unknown job "send-welcom". Did you mean "send-welcome"?
2|   fix: khepri jobs lists the known ones; --allow-unknown dispatches it all the same                [65]
$ khepri dispatch broken.json
2| error: broken.json:3:16: expected ',' or '}' after a value
2|   3 |   "payload": 7 "queue": "high"
2|     |                ^                                                                             [65]
$ KHEPRI_DATABASE_URL=postgres://app:s3cret@127.0.0.1:${port}/app khepri status
2| error: cannot reach postgres://app:***@127.0.0.1:${port}/app: connection refused
2|   fix: is the server up and the URL right? khepri doctor tests name, port, login and rights         [69]
$ khepri work --concurency=4
2| error: unknown flag --concurency. Did you mean --concurrency?                                      [2]
$ khepri wrok --json
2| {"error":{"code":"USAGE","message":"unknown command \\"wrok\\". Did you mean \\"work\\"?","fix":"khepri help","exit":2}}   [2]
`)
  })
})

it('a transcript that differs in one word does not pass', async () => {
  using folder = new TempProject()
  using session = new Session()
  await expect(
    session.plays(`$ cd ${folder.path} && khepri wrok\n2| error: unknown command "wrok"   [2]`),
  ).rejects.toThrow()
})

/** The worker's own screen, with what differs from run to run as patterns. */
function lined(screen: string): string {
  return screen
    .replace(/^khepri \S+/, 'khepri <version>')
    .replaceAll(/^\d\d:\d\d:\d\d/gm, '<clock>')
    .replaceAll(/(?<=worker )\S+/g, '<worker>')
    .replaceAll(/ +\d+(?:\.\d+)?m?s(?=$|\n| {2}(?:DONE|RETRY))/g, ' <ms>')
}
