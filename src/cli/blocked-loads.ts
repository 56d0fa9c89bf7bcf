import { Worker as Thread } from 'node:worker_threads'
import { defaults } from '../core/defaults.ts'
import { onLoads } from '../core/user-code.ts'

/** Later than the event loop would say it itself, were it not blocked. */
const patienceMs = defaults.slowLoadMs + 500

/** Hears what is loading now, null for nothing, and names it where no news comes for too long. */
const program = `
  const { writeSync } = require('node:fs')
  const { parentPort } = require('node:worker_threads')
  let timer
  parentPort.on('message', (source) => {
    clearTimeout(timer)
    if (source !== null)
      timer = setTimeout(() => writeSync(2, 'loading ' + source + ' takes long, and its code does not return\\n'), ${patienceMs})
  })
`

/**
 * Names a module whose code runs without an end, which this thread cannot do: it is the one that runs it.
 *
 * The result ends the watch. A thread costs some milliseconds, so this is for who looks for faults, not for a dispatch.
 */
export function watchBlockedLoads(): () => void {
  const thread = new Thread(program, { eval: true, stdin: false, execArgv: [] })
  thread.unref()
  const stopHearing = onLoads((source) => thread.postMessage(source))
  return () => {
    stopHearing()
    void thread.terminate()
  }
}
