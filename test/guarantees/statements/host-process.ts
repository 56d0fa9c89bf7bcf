import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Order, Report } from './host.ts'

/** A host that takes longer than this for one order hangs: an operator's command waits a minute for a silent server. */
const patienceMs = 150_000

/** How a host's order ended: with a report, or with the host's death. */
export type Answer = Report | 'killed'

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Runs command lines in a folder, in a process that is started when it is needed and again after it was killed. */
export class Host {
  readonly #folder: string
  #child: Promise<ChildProcess> | null = null

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Throws where the process ends in another way than by SIGKILL, or does not answer. */
  async run(order: Order): Promise<Answer> {
    this.#child ??= this.#start()
    const child = await this.#child
    const gone = new AbortController()
    try {
      child.send(order)
      const answer = await Promise.race([
        once(child, 'message', { signal: gone.signal }).then(([report]) => report as Report),
        once(child, 'exit', { signal: gone.signal }).then(([code, signal]) => this.#died(code, signal)),
        hung(gone.signal),
      ])
      if (answer !== 'hung') return answer
    } finally {
      gone.abort()
    }
    await this.close()
    throw new Error(`it did not end within ${patienceMs / 1_000} s`)
  }

  /** Kills the process, whatever it does: the order under way is answered with 'killed'. */
  async kill(): Promise<void> {
    const child = await this.#child
    child?.kill('SIGKILL')
  }

  async close(): Promise<void> {
    const child = await this.#child
    this.#child = null
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  async #start(): Promise<ChildProcess> {
    const { PATH, HOME } = process.env
    const child = fork(join(import.meta.dirname, 'host.ts'), {
      cwd: this.#folder,
      execArgv: [],
      env: { PATH, HOME, NODE_COMPILE_CACHE: join(this.#folder, '.cache') },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    running.add(child)
    child.once('exit', () => running.delete(child))
    await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(() => {
        throw new Error('the host process does not start')
      }),
    ])
    return child
  }

  #died(code: number | null, signal: NodeJS.Signals | null): 'killed' {
    this.#child = null
    if (signal !== 'SIGKILL') throw new Error(`its process ended with code ${code} and signal ${signal}`)
    return 'killed'
  }
}

function hung(signal: AbortSignal): Promise<'hung'> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve('hung'), patienceMs)
    signal.addEventListener('abort', () => clearTimeout(timer))
  })
}
