import type { AskedJob, LedgerLine } from '../history/history.ts'

/** Counts the jobs that are surely in and have not ended, by the ledger: enough to feed a campaign and to end it. */
export class Progress {
  readonly #open = new Map<string, AskedJob>()
  /** Ended before their dispatch had said that they are in. */
  readonly #early = new Set<string>()
  /** What each worker has in hand, or had when it died. */
  readonly #running = new Map<string, Set<number>>()
  readonly #crashes = new Map<string, number>()

  get open(): number {
    return this.#open.size
  }

  expect(jobs: readonly AskedJob[]): void {
    for (const job of jobs) if (!this.#early.delete(job.key)) this.#open.set(job.key, job)
  }

  isBusy(worker: string): boolean {
    return (this.#running.get(worker)?.size ?? 0) > 0
  }

  take(lines: readonly LedgerLine[]): void {
    for (const line of lines) {
      this.#note(line)
      if (this.#isLast(line) && !this.#open.delete(line.key)) this.#early.add(line.key)
    }
  }

  #note({ event, worker, id }: LedgerLine): void {
    const running = this.#running.get(worker) ?? new Set()
    this.#running.set(worker, running)
    if (event === 'start') running.add(id)
    else running.delete(id)
  }

  /** Wrong now and then, where a result is lost and the job runs again; the campaign's end waits for more than this. */
  #isLast(line: LedgerLine): boolean {
    if (line.event === 'start') return false
    if (line.outcome === 'done') return true
    if (line.outcome === 'threw') return line.attempt >= (this.#open.get(line.key)?.tries ?? 3)
    if (line.outcome !== 'crashed') return false
    const crashes = (this.#crashes.get(line.key) ?? 0) + 1
    this.#crashes.set(line.key, crashes)
    return crashes >= 3
  }
}
