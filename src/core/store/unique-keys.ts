import { KhepriError } from '../errors.ts'
import type { JobId, NewJob } from './store.ts'

/** The error for a job that must not meet a live one under its unique key. holder: null for an earlier one of the same call. */
export function keyHeld({ job, uniqueKey }: NewJob, holder: JobId | null): KhepriError {
  const who = holder === null ? 'an earlier job of the same call' : `the live job ${holder}`
  return new KhepriError(
    'KEY_HELD',
    `${job} was not dispatched: ${who} holds the unique key ${JSON.stringify(uniqueKey)}`,
    { fix: "without onConflict: 'error' the job that holds the key is the answer" },
  )
}
