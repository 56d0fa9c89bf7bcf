import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { repository } from './temp-project.ts'

/** How a process ended, and all that it wrote. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface StartOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string
  /** Where its stdout goes instead of to us: an open file. */
  readonly stdout?: number
  /** A shell command in which "$@" stands for khepri's own; by default khepri is run directly. */
  readonly shell?: string
}

const bin = join(repository, 'bin', 'run.cjs')

/** A test that timed out never comes to the end of its block; its processes must not outlive the test run all the same. */
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** A khepri of its own process, while it runs: what it writes can be waited for. Killed at the end of the block that holds it. */
export class Live implements AsyncDisposable {
  readonly ended: Promise<Ended>
  readonly child: ChildProcess
  readonly #texts = { stdout: '', stderr: '' }
  readonly #waiting = new Set<() => void>()
  #isOver = false

  private constructor(child: ChildProcess) {
    this.child = child
    running.add(child)
    for (const name of ['stdout', 'stderr'] as const)
      child[name]?.setEncoding('utf8').on('data', (text: string) => {
        this.#texts[name] += text
        this.#wake()
      })
    this.ended = new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code, signal) => {
        this.#isOver = true
        running.delete(child)
        this.#wake()
        resolve({ code, signal, ...this.#texts })
      })
    })
  }

  /** Starts the built command line with these words. */
  static start(args: readonly string[], { cwd, env = {}, stdin, stdout, shell }: StartOptions): Live {
    const command = [process.execPath, bin, ...args]
    const [file = '', ...rest] = shell === undefined ? command : ['sh', '-c', shell, 'sh', ...command]
    const child = spawn(file, rest, {
      cwd,
      env: { ...cleanEnvironment(), ...env },
      stdio: [stdin === undefined ? 'ignore' : 'pipe', stdout ?? 'pipe', 'pipe'],
    })
    child.stdin?.on('error', () => {}).end(stdin)
    return new Live(child)
  }

  /** Resolves once what it has written so far matches. Rejects where it ends before. */
  until(pattern: RegExp, stream: 'stdout' | 'stderr' = 'stdout'): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = pattern.exec(this.#texts[stream])
        if (!found && !this.#isOver) return
        this.#waiting.delete(look)
        if (found) resolve(found)
        else
          reject(
            new Error(`it ended before ${pattern} was on its ${stream}:\n${this.#texts.stdout}\n${this.#texts.stderr}`),
          )
      }
      this.#waiting.add(look)
      look()
    })
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isOver) this.child.kill('SIGKILL')
    await this.ended
  }

  #wake(): void {
    for (const look of [...this.#waiting]) look()
  }
}

/** Runs the built command line to its end. */
export function khepri(args: readonly string[], options: StartOptions): Promise<Ended> {
  return Live.start(args, options).ended
}

/** The environment without what would change a worker: settings, npm's own, the journal, colours. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(?:KHEPRI_|npm_|JOURNAL_STREAM$|FORCE_COLOR$|NODE_OPTIONS$|DEBUG$)/.test(name),
    ),
  )
}
