/** Every default and every limit of khepri, with its unit and its reason. */
export const defaults = Object.freeze({
  database: 'sqlite:./khepri.db',
  table: 'jobs',
  failedTable: 'failed_jobs',
  queue: 'default',
  concurrency: 1,
  priority: 0,
  tries: 1,
  maxCrashes: 3,
  /** Silence after which a worker is dead. */
  retryAfterMs: 90_000,
  /** A shorter lease is over before a busy machine has written the next beat. */
  leastRetryAfterMs: 1_000,
  /** The longest wait between two looks at an idle store. */
  sleepMs: 1_000,
  /** A wake-up is not answered earlier than this after the last look: whoever filters would look for everybody else's jobs. */
  leastWakeMs: 5,
  longestListenPauseMs: 30_000,
  /** A look that came back empty is not repeated earlier than this, whatever nextDue says. */
  leastSleepMs: 50,
  /** A beat comes at least this often, so that a neighbour can judge contact within seconds. */
  longestBeatMs: 10_000,
  /** How often a worker looks for cancellations and dead neighbours: a death on this host is answered within two. */
  lookEveryMs: 1_000,
  /** A suspect that has waited so long makes a worker let its slots run empty; up to as much again is added at random. */
  suspectPatienceMs: 5_000,
  /** How long a worker lets its slots run empty for a suspect, the first time. */
  roomMs: 10_000,
  /** A job that has run so long is named in the log, and again each time as much has passed. */
  busyMs: 300_000,
  /** How often a worker shows its beat thread that its event loop turns. */
  tickMs: 1_000,
  backoff: Object.freeze({ kind: 'exponential', baseMs: 1_000, maxMs: 3_600_000, jitter: true } as const),
  /** release() without a delay: "not ready yet" must not spin. */
  releaseMs: 1_000,
  /** Time a handler has to answer its abort signal before it counts as stuck. */
  graceMs: 5_000,
  /** Bound of a failed() hook whose job has no timeout. */
  hookMs: 30_000,
  /** A worker that ends tries for so long to take its row away: a database that is starting anew needs some seconds, */
  leaveWithinMs: 3_000,
  /** and is asked again after so long. */
  leaveAgainMs: 500,
  /** A job module that has loaded for so long is named, */
  slowLoadMs: 5_000,
  /** and one that has loaded for so long is given up. */
  loadMs: 60_000,
  /** How long a module that was given up may take to show what it exports. */
  thenableMs: 200,
  maxPayloadBytes: 1024 * 1024,
  /** Room in an envelope beside its payload: names of 255 characters, a backoff of many delays. */
  envelopeRoomBytes: 64 * 1024,
  /** What an application hands on to its jobs; it is in every one of them. */
  maxContextBytes: 16 * 1024,
  /** Levels of arrays and objects in a payload: JSON.stringify and recursive validators fail far above it. */
  maxDepth: 1_000,
  /** Held unstarted by one worker, for each round that may be under way: where the cost of one no longer shows (bench/). */
  mostPrefetched: 400,
  /** A worker holds what its slots start within so long, */
  prefetchWindowMs: 25,
  /** and gives back what it has not started after so long. */
  prefetchPatienceMs: 50,
  /** Results wait so long for company, unless a slot would idle. */
  settleWithinMs: 5,
  /** So many results are company enough. */
  mostSettled: 400,
  /** Envelopes in one reservation: bounds the memory of a worker. */
  maxReservedBytes: 16 * 1024 * 1024,
  /** How long the command line waits for a locked or silent database. */
  deadlineMs: 10_000,
  /** A worker prunes for the first time after so long, and up to as much again, drawn at random. */
  firstPruneMs: 600_000,
  /** And from then on so often. */
  pruneEveryMs: 3_600_000,
  /** A slot that is taken so much later counts as missed: whoever ticks from cron comes once a minute. */
  misfireMs: 60_000,
  /** So many missed slots are counted at most. */
  mostMissed: 10_000,
  /** So many missed slots may be made up for. */
  mostCaughtUp: 1_000,
  /** Whoever looks after schedules looks at least this often: a clock that was set shows, and so does a pause. */
  longestTickMs: 10_000,
  /** And not more often than this, however early a timer is. */
  leastTickMs: 10,
  /** A run that waits for the one before it is asked for so often. */
  waitingTickMs: 1_000,
  /** When nobody has looked after the schedules for so long, people are told. */
  unwatchedMs: 600_000,
  keepCancelledMs: 7 * 86_400_000,
  /** Jobs that one job may wait for: each is a row. */
  mostParents: 1_000,
  /** Names of jobs and queues, and unique keys; characters. */
  maxNameLength: 255,
  /** Delays and times beyond ten years are mistakes. */
  maxDelayMs: 3_650 * 86_400_000,
  /** Kept of an error, characters: enough to read, small enough to keep a hundred of them. */
  maxMessageLength: 8_192,
  maxStackLength: 16_384,
  maxOutputLength: 65_536,
  /** A dead worker's row stays so long: what a merely frozen one still commits is found and freed. */
  keepDeadMs: 86_400_000,
  /** Attempts kept of one job: the first ten and the last ninety. */
  keptFirstAttempts: 10,
  keptLastAttempts: 90,
} as const)
