import { setImmediate } from 'node:timers/promises'
import type { Violation } from './record.ts'
import { type Outcome, simulate } from './simulation.ts'

export type Form = 'test' | 'short' | 'long'
export type Figures = Record<string, number | string>

/** How many seeds each form plays. */
const seedsOf: Readonly<Record<Form, number>> = { test: 200, short: 2_000, long: 100_000 }

const reportEvery = 5_000

/** Plays the seeds from 0 on; answers what they came to, or throws with the first promise that did not hold. */
export async function run(form: Form, print: (line: string) => void): Promise<Figures> {
  const { stackTraceLimit } = Error
  // Handlers throw all the time, and nobody reads where.
  Error.stackTraceLimit = 0
  try {
    return await play(seedsOf[form], print)
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

async function play(seeds: number, print: (line: string) => void): Promise<Figures> {
  const started = process.cpuUsage()
  const sums = { jobs: 0, runs: 0, steps: 0, virtualMs: 0 }
  for (let seed = 0; seed < seeds; seed++) {
    const { figures } = kept(await simulate(seed))
    for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += figures[key]
    if ((seed + 1) % reportEvery === 0) print(`simulation: ${seed + 1} of ${seeds} seeds`)
    // Whoever shares this event loop has a turn.
    await setImmediate()
  }
  const { user, system } = process.cpuUsage(started)
  const cpuMs = (user + system) / 1_000
  return {
    seeds,
    jobs: sums.jobs,
    'runs of handlers': sums.runs,
    'steps of the scheduler': sums.steps,
    'virtual hours': Math.round(sums.virtualMs / 3_600_000),
    'seeds in one second of CPU': Math.round((seeds / cpuMs) * 1_000),
  }
}

function kept(outcome: Outcome): Outcome {
  if (outcome.violations.length === 0) return outcome
  throw new Error(reportOf(outcome))
}

const shownLines = 40

/** What broke, what came before it, and how to see it again. */
export function reportOf({ seed, violations, lines }: Outcome): string {
  const broken = violations.map((violation: Violation) => {
    return `  promise ${violation.promise}, after ${violation.at.toFixed(0)} ms: ${violation.what}`
  })
  return [
    `seed ${seed} breaks a promise:`,
    ...broken,
    `the last ${shownLines} of ${lines.length} lines of what happened:`,
    ...lines.slice(-shownLines).map((line) => `  ${line}`),
    `to see all of it again: node test/guarantees/simulation/replay.ts ${seed}`,
  ].join('\n')
}
