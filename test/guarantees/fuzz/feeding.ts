import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Report } from './fuzz-process.ts'
import type { TargetName } from './target.ts'

/** What computes for longer than this hangs. Counted is its own time, as other processes want the machine too. */
const hangMs = 5_000

/** What neither computes nor ends for so long hangs as well; a process has to start within it. */
const patienceMs = 60_000

/** A range of inputs of one target; the same numbers make the same inputs. */
export interface Meal {
  readonly target: TargetName
  readonly seed: number
  readonly from: number
  readonly to: number
}

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Feeds a range of inputs; answers what was wrong. After a crash or a hang it goes on behind that input. */
export async function feed(meal: Meal): Promise<readonly string[]> {
  const wrong: string[] = []
  for (let from = meal.from; from < meal.to; ) {
    const feeding = new Feeding({ ...meal, from })
    from = await feeding.ended
    wrong.push(...feeding.wrong)
  }
  return wrong
}

class Feeding {
  readonly wrong: string[] = []
  /** The input to go on with. */
  readonly ended: Promise<number>
  readonly #meal: Meal
  readonly #child: ChildProcess
  #input: number | null = null
  #isDone = false
  #fedAt = performance.now()
  #cpuMs = 0
  #isHanging = false
  readonly #timer: NodeJS.Timeout

  constructor(meal: Meal) {
    this.#meal = meal
    const { target, seed, from, to } = meal
    this.#child = fork(join(import.meta.dirname, 'fuzz-process.ts'), [target, seed, from, to].map(String), {
      execArgv: [],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    running.add(this.#child)
    this.#timer = setInterval(() => this.#watch(), 1_000)
    this.#child.on('message', (report: Report) => this.#hear(report))
    this.ended = this.#untilEnd()
  }

  async #untilEnd(): Promise<number> {
    let stderr = ''
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-2_000)
    })
    const [code, signal] = (await once(this.#child, 'close')) as [number | null, string | null]
    running.delete(this.#child)
    clearInterval(this.#timer)
    if (this.#isDone) return this.#meal.to
    if (this.#input === null) throw new Error(`the process for ${this.#meal.target} does not start: ${stderr}`)
    if (!this.#isHanging) this.#note(this.#input, `the process ended with ${code ?? signal}: ${stderr}`)
    return this.#input + 1
  }

  #hear(report: Report): void {
    if (report.kind === 'wrong') this.#note(report.input, report.what)
    else this.#goOn(report)
  }

  #goOn(report: Report & { readonly kind: 'feeding' | 'ended' }): void {
    this.#fedAt = performance.now()
    this.#cpuMs = cpuMsOf(this.#child.pid)
    if (report.kind === 'feeding') this.#input = report.input
    else this.#isDone = true
  }

  #watch(): void {
    const isSpinning = cpuMsOf(this.#child.pid) - this.#cpuMs > hangMs
    if (!isSpinning && performance.now() - this.#fedAt < patienceMs) return
    const how = isSpinning
      ? `computes for more than ${hangMs / 1_000} s`
      : `waits for more than ${patienceMs / 1_000} s`
    if (this.#input !== null && !this.#isHanging) this.#note(this.#input, `it ${how}`)
    this.#isHanging = true
    this.#child.kill('SIGKILL')
  }

  #note(input: number, what: string): void {
    const { target, seed } = this.#meal
    this.wrong.push(
      `${target}, input ${input}: ${what}\n  replay: node test/guarantees/fuzz/replay.ts ${target} ${seed} ${input}`,
    )
  }
}

/** How long a process has computed so far, by the kernel's account in hundredths of a second; 0 where it cannot be told. */
function cpuMsOf(pid: number | undefined): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * 10
  } catch {
    return 0
  }
}
