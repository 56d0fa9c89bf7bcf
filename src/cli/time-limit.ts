import { Worker as Thread } from 'node:worker_threads'

/** The time that the thread itself takes to start counts. */
const program = (endAt: number): string =>
  `setTimeout(() => process.kill(process.pid, 'SIGTERM'), Math.max(0, ${endAt} - Date.now()))`

/**
 * Ends this process when it is older than so many milliseconds, whatever it is doing: from a thread, since a
 * configuration may run for ever and a database file may be slow.
 */
export function limitLife(ms: number): void {
  const thread = new Thread(program(performance.timeOrigin + ms), { eval: true, stdin: false, execArgv: [] })
  thread.unref()
}
