import { createKhepri, type Enqueued, KhepriError, type NewJob } from 'khepri'

/**
 * Hands jobs to a service that runs them, over HTTP: for a broker, or an edge runtime that reaches no database.
 *
 * A driver that only dispatches is this one method. Names, payloads, schemas and terms are checked before it is called.
 */
export function httpDriver(url: string) {
  return {
    async enqueue(jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(jobs.map(({ queue, priority, due, envelope }) => ({ queue, priority, due, envelope }))),
      })
      if (!response.ok) throw new KhepriError('STORE_FAILED', `${url} answered ${response.status}; nothing was queued`)
      return (await response.json()) as Enqueued[]
    },
  }
}

/** An installation whose jobs go to that service. */
export function dispatchOnly(url: string) {
  return createKhepri({ role: 'producer', jobs: { 'send-welcome': sendWelcome } }, { driver: httpDriver(url) })
}

async function sendWelcome({ userId }: { readonly userId: number }): Promise<void> {
  console.log(`runs elsewhere, for user ${userId}`)
}
