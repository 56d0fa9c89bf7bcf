import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { median } from './quantiles.ts'
import { number } from './report.ts'

/** Measures how long short commands take beside an empty Node: `npm run bench:startup -- [--runs 20]`. */

const { values } = parseArgs({ options: { runs: { type: 'string', default: '20' } } })
const bin = join(import.meta.dirname, '../bin/run.cjs')

const commands: Readonly<Record<string, readonly string[]>> = {
  'node -e 0': ['-e', '0'],
  'khepri --version': [bin, '--version'],
  'khepri dispatch job.json': [bin, 'dispatch', 'job.json'],
}

/** A project with one job and its database, as `khepri init` leaves it. */
function prepare(folder: string): void {
  mkdirSync(join(folder, 'jobs'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'jobs/bench.ts'), 'export default () => {}\n')
  writeFileSync(join(folder, 'job.json'), '{ "job": "bench", "payload": { "n": 1 } }')
  timed(folder, [bin, 'migrate'])
}

/** Milliseconds of one run. Throws where it fails. */
function timed(cwd: string, words: readonly string[]): number {
  const startedAt = performance.now()
  const { status, stderr } = spawnSync(process.execPath, words, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`node ${words.join(' ')} ended with ${status}: ${stderr}`)
  return performance.now() - startedAt
}

/** All commands in turn, so that a noisy moment meets each of them; the first turn fills the caches and does not count. */
function measure(folder: string, runs: number): Readonly<Record<string, readonly number[]>> {
  const times = Object.fromEntries(Object.keys(commands).map((name) => [name, [] as number[]]))
  for (let run = 0; run <= runs; run++)
    for (const [name, words] of Object.entries(commands)) {
      const ms = timed(folder, words)
      if (run > 0) times[name]?.push(ms)
    }
  return times
}

const folder = mkdtempSync(join(tmpdir(), 'khepri-startup-'))
try {
  prepare(folder)
  const times = measure(folder, Number(values.runs))
  const floor = median(times['node -e 0'] ?? [])
  for (const [name, all] of Object.entries(times)) {
    const own = median(all)
    const spread = `${number(Math.min(...all))} to ${number(Math.max(...all))}`
    console.log(`${name.padEnd(26)} ${number(own).padStart(6)} ms   ${spread.padEnd(14)} ${number(own / floor)} x node`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
