/**
 * What was seen of khepri from outside: what handlers wrote down, what clients were answered, what befell workers.
 * Nothing in it comes from khepri's own tables, so that a stranger could have recorded it.
 */
export interface History {
  readonly timing: Timing
  /** In the order in which the lines stand in the file. */
  readonly ledger: readonly LedgerLine[]
  readonly clients: readonly Client[]
  readonly workers: readonly WorkerProcess[]
}

/** Every duration the promises are measured by, in milliseconds. */
export interface Timing {
  /** Silence after which a worker is dead: `retryAfter`. */
  readonly leaseMs: number
  /** A worker beats, and judges its neighbours, this often. */
  readonly beatMs: number
  /** After this long the jobs of a dead worker have been started elsewhere, where somebody was free to take them. */
  readonly recoverMs: number
  /** The same for a job that died in company, which waits for a worker of its own; null: no bound is promised yet. */
  readonly recoverSuspectMs: number | null
  /** Between a reservation and the first line of its handler, at most. */
  readonly promptMs: number
  /** How late a busy machine may be with anything else. */
  readonly slackMs: number
}

/** How a handler came to its end, by its own word. `crashed`: it is about to kill its process. */
export type RunOutcome = 'done' | 'threw' | 'released' | 'interrupted' | 'lost' | 'crashed'

/** A line of the ledger: one write of a handler to a file that outlives every process. */
export type LedgerLine = {
  /** Given by the khepri process that ran the handler. */
  readonly id: number
  /** What the client called the job, before it had an id. */
  readonly key: string
  readonly attempt: number
  /** The name of the worker process; each process has its own. */
  readonly worker: string
  readonly pid: number
  /** Wall clock, epoch milliseconds. */
  readonly ms: number
} & ({ readonly event: 'start' } | { readonly event: 'end'; readonly outcome: RunOutcome })

/** One job as a client asked for it; complete, so that the checker guesses nothing. */
export interface AskedJob {
  readonly key: string
  readonly job: string
  readonly queue: string
  readonly priority: number
  readonly tries: number
  /** The least wait between two attempts. */
  readonly backoffMs: number
  readonly delayMs: number
  readonly maxCrashes: number
  /** The payload's text, byte for byte. */
  readonly payload: string
}

/** A command that was run to its end, or killed. */
export interface Client {
  readonly argv: readonly string[]
  /** What a dispatch was to put in, in this order. */
  readonly asked: readonly AskedJob[]
  readonly code: number | null
  readonly signal: string | null
  readonly stdout: string
  readonly stderr: string
  readonly startedAt: number
  readonly endedAt: number
}

export interface SentSignal {
  readonly signal: string
  /** Taken before the signal was sent, or after it for SIGCONT: the fault lies within. */
  readonly at: number
}

/** A worker process from its start to its end. */
export interface WorkerProcess {
  readonly name: string
  readonly argv: readonly string[]
  /** In strict order. */
  readonly queues: readonly string[]
  readonly concurrency: number
  readonly startedAt: number
  /** When it said that it works; null: it was gone before. */
  readonly readyAt: number | null
  readonly signals: readonly SentSignal[]
  readonly code: number | null
  readonly signal: string | null
  readonly stdout: string
  readonly stderr: string
  readonly endedAt: number
}

/** The message of the error that a campaign's handler throws. */
export const plannedFailure = (key: string, attempt: number): string =>
  `planned failure of ${key} at attempt ${attempt}`

/** What a worker says that came to its end without having found anything to do. */
export const foundNothing = /\bstopped: 0 done, 0 retried, 0 failed /
