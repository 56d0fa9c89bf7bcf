import { existsSync } from 'node:fs'
import type { Khepri } from '../app.ts'
import { KhepriError } from '../core/errors.ts'
import { unstored } from '../core/lone-attempt.ts'
import type { WholeJob } from '../core/store/admin.ts'
import type { JobId, Reservation } from '../core/store/store.ts'
import { Inputs, located, type PayloadFlags, payloadText } from './dispatch-inputs.ts'
import type { JsonItem } from './job-files.ts'
import { unselectedErrors } from './live-selection.ts'

/** A job of this name, with a payload from flags. Throws JOB_UNKNOWN and what refuses a payload. */
export async function jobNamed(app: Khepri, job: string, payload: PayloadFlags): Promise<Reservation> {
  const dispatcher = await app.dispatcher()
  const request = { job, payloadText: payloadText(payload), terms: {}, due: null, unique: null }
  return unstored(await dispatcher.prepare(request), Date.now())
}

/** The only job of a file, or of stdin for "-". Throws what refuses a file, and DATA_INVALID where it holds several. */
export async function jobInFile(app: Khepri, file: string): Promise<Reservation> {
  const nothing = { job: null, terms: {}, due: null, unique: null }
  const { maxPayloadBytes } = app.config
  const inputs = new Inputs([file], nothing, { stdin: process.stdin, maxPayloadBytes })
  const item = await onlyOne(inputs, file)
  try {
    return unstored(await (await app.dispatcher()).prepare(inputs.request(item)), Date.now())
  } catch (error) {
    throw located(error, item)
  }
}

async function onlyOne(inputs: Inputs, file: string): Promise<JsonItem> {
  const [first, second] = await firstTwo(inputs.items())
  if (first === undefined || second !== undefined)
    throw new KhepriError('DATA_INVALID', `${file} holds ${first === undefined ? 'no job' : 'more than one job'}`, {
      fix: 'khepri run takes one; khepri dispatch takes as many as there are',
    })
  return first
}

async function firstTwo(items: AsyncIterable<JsonItem>): Promise<readonly JsonItem[]> {
  const found: JsonItem[] = []
  for await (const item of items) if (found.push(item) === 2) break
  return found
}

/** Tells whether a word that is no job's name was meant as a file. */
export const looksLikeFile = (word: string): boolean =>
  word === '-' || /[/\\]|\.(json|ndjson|jsonl)$/.test(word) || existsSync(word)

/** A job of the store as it is there. Throws NOT_FOUND. */
export async function jobStored(app: Khepri, id: JobId): Promise<WholeJob> {
  const job = await (await app.admin()).stored(id)
  if (job === null) throw unselectedErrors([{ id, state: null }])[0]
  return job
}

/** The run of a stored job: its next attempt, or of one that has ended the last again. How many workers it killed does not count here. */
export function replayOf(job: WholeJob): Reservation {
  const { id, fence, queue, priority, failures, enqueuedAt, envelope } = job
  const isOver = job.endedAt !== null
  return {
    ...{ id, fence, job: job.job, queue, priority, enqueuedAt, envelope },
    ...{ failures: isOver ? Math.max(0, failures - 1) : failures, crashes: 0, suspect: false },
    availableAt: job.availableAt ?? enqueuedAt,
  }
}
