import type { Khepri } from '../app.ts'
import type { NewJob } from '../core/store/store.ts'
import { didYouMean } from '../core/suggest.ts'
import { shellWord } from './own-words.ts'

/** A queue, and one of the jobs that went to it. */
export type Places = ReadonlyMap<string, Pick<NewJob, 'job'>>

/** More queues than these are not listed one by one. */
const mostNamed = 5

/** `no declared queue "hihg". Did you mean "high"?` for each queue that the configuration does not declare. */
export function undeclared(queues: Iterable<string>, declared: readonly string[] | null): readonly string[] {
  if (declared === null) return []
  return [...queues]
    .filter((queue) => !declared.includes(queue))
    .slice(0, mostNamed)
    .map((queue) => `no declared queue ${JSON.stringify(queue)}${didYouMean(queue, declared)}`)
}

/** `no registered job "x". Did you mean "y"?` for each name that no handler has. */
export function unregistered(names: Iterable<string>, known: readonly string[]): readonly string[] {
  return [...names]
    .filter((name) => !known.includes(name))
    .map((name) => `no registered job ${JSON.stringify(name)}${didYouMean(name, known)}`)
}

/** The command that works these queues: `khepri work` where it serves them by itself, with --queue otherwise. */
export async function workCommand(app: Khepri, places: Places): Promise<string> {
  for (const [queue, { job }] of places)
    if (!(await isServed(app, queue, job)))
      return `khepri work --queue=${places.size > mostNamed ? "'*'" : shellWord([...places.keys()].join(','))}`
  return 'khepri work'
}

/** A worker serves the declared queues, or else the default queue and those that jobs name. */
async function isServed(app: Khepri, queue: string, job: string): Promise<boolean> {
  const { queues, queue: standard } = app.config
  if (queues !== null) return queues.some(({ name }) => name === queue)
  // A dispatch has loaded the job's terms already.
  return queue === standard || (await (await app.registry()).get(job)?.terms())?.queue === queue
}
