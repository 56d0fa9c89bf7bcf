import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'

/**
 * Measures what looking after many schedules costs while none is due: the processor time of `khepri schedule work` beside
 * the same with one schedule. `npm run bench:schedules -- [--schedules 1000] [--seconds 60] [--database URL]`.
 */

const { values } = parseArgs({
  options: {
    schedules: { type: 'string', default: '1000' },
    seconds: { type: 'string', default: '60' },
    database: { type: 'string' },
  },
})
const bin = join(import.meta.dirname, '../bin/run.cjs')

/** Due once a year, each at a minute of its own: none while this measures, unless it is run on New Year's Eve. */
function configuration(count: number): string {
  const names = Array.from({ length: count }, (_, index) => index)
  const schedules = names.map((n) => [
    `s${n}`,
    { exec: 'true', cron: `${n % 60} ${n % 24} 31 12 *`, zone: 'Europe/Oslo' },
  ])
  return JSON.stringify({
    ...(values.database && { database: values.database }),
    schedules: Object.fromEntries(schedules),
  })
}

/** Milliseconds of processor time that a process has used: Linux says it in hundredths of a second. */
function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number)
  return (user + system) * 10
}

/** Share of a core, in percent, over the measured time, which begins when it has settled. */
async function measure(folder: string, count: number): Promise<number> {
  writeFileSync(join(folder, 'khepri.config.json'), configuration(count))
  const child: ChildProcess = spawn(process.execPath, [bin, 'schedule', 'work'], { cwd: folder, stdio: 'ignore' })
  const pid = child.pid as number
  await wait(12_000)
  const before = processorMs(pid)
  await wait(Number(values.seconds) * 1_000)
  const used = processorMs(pid) - before
  child.kill('SIGTERM')
  return used / (10 * Number(values.seconds))
}

const folder = mkdtempSync(join(tmpdir(), 'khepri-schedules-'))
try {
  writeFileSync(join(folder, 'package.json'), '{}')
  writeFileSync(join(folder, 'khepri.config.json'), configuration(1))
  const { status, stderr } = spawnSync(process.execPath, [bin, 'migrate'], { cwd: folder, encoding: 'utf8' })
  if (status !== 0) throw new Error(`khepri migrate ended with ${status}: ${stderr}`)
  for (const count of [1, Number(values.schedules)])
    console.log(`${count} schedules: ${(await measure(folder, count)).toFixed(2)} % of a core over ${values.seconds}s`)
} finally {
  rmSync(folder, { recursive: true })
}
