import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'
import type { TableNames } from '../names.ts'

/**
 * Builds the tables of one installation for SQLite; what each column means stands here, and here only.
 *
 * Moments are epoch milliseconds, flags are 0 or 1. There is no state column: the state of a job follows from the table
 * that holds it and from `available_at`, `worker` and `started_at`. The Postgres schema has the same shape; a test holds
 * the two equal.
 */
export function sqliteTables(names: TableNames) {
  /** Live jobs: waiting, held or running. */
  const jobs = sqliteTable(
    names.jobs,
    {
      /** AUTOINCREMENT: without it SQLite gives the newest id out again after its row has left. */
      id: integer('id').primaryKey({ autoIncrement: true }),
      queue: text('queue').notNull(),
      priority: integer('priority').notNull().default(0),
      availableAt: integer('available_at').notNull(),
      /** Who holds it. No foreign key: a random number that outlives its row in `workers`. */
      worker: integer('worker'),
      /** The reservation it was taken with, so that one whose answer was lost can be found again. */
      batch: integer('batch'),
      fence: integer('fence').notNull().default(0),
      /** When its handler was started; null while it is only held. */
      startedAt: integer('started_at'),
      failures: integer('failures').notNull().default(0),
      crashes: integer('crashes').notNull().default(0),
      suspect: integer('suspect').notNull().default(0),
      cancelledAt: integer('cancelled_at'),
      job: text('job').notNull(),
      uniqueKey: text('unique_key'),
      version: integer('version').notNull(),
      enqueuedAt: integer('enqueued_at').notNull(),
      envelope: text('envelope').notNull(),
    },
    (table) => [
      index(`${names.jobs}_ready`)
        .on(table.queue, table.priority, table.availableAt, table.id)
        .where(sql`"worker" is null`),
      index(`${names.jobs}_held`).on(table.worker).where(sql`"worker" is not null`),
      // A look once a second: these are empty nearly always, and then cost nothing.
      index(`${names.jobs}_suspect`).on(table.queue, table.availableAt).where(sql`"suspect" = 1 and "worker" is null`),
      index(`${names.jobs}_newer`).on(table.queue, table.availableAt).where(sql`"version" > 1 and "worker" is null`),
      index(`${names.jobs}_cancelled`)
        .on(table.cancelledAt)
        .where(sql`"cancelled_at" is not null and "worker" is null`),
      uniqueIndex(`${names.jobs}_unique`).on(table.uniqueKey).where(sql`"unique_key" is not null`),
    ],
  )

  /** Jobs that failed for good, until they are retried or flushed. */
  const failed = sqliteTable(
    names.failed,
    {
      id: integer('id').primaryKey(),
      fence: integer('fence').notNull(),
      queue: text('queue').notNull(),
      priority: integer('priority').notNull(),
      job: text('job').notNull(),
      failures: integer('failures').notNull(),
      crashes: integer('crashes').notNull(),
      uniqueKey: text('unique_key'),
      version: integer('version').notNull(),
      enqueuedAt: integer('enqueued_at').notNull(),
      failedAt: integer('failed_at').notNull(),
      reason: text('reason').notNull(),
      errorType: text('error_type').notNull(),
      error: text('error').notNull(),
      envelope: text('envelope').notNull(),
    },
    (table) => [index(`${names.failed}_failed_at`).on(table.failedAt, table.id)],
  )

  /** Jobs that ended otherwise: cancelled ones, and done ones where they are kept. */
  const ended = sqliteTable(
    names.ended,
    {
      id: integer('id').primaryKey(),
      /** 'done' or 'cancelled'. */
      state: text('state').notNull(),
      fence: integer('fence').notNull(),
      queue: text('queue').notNull(),
      priority: integer('priority').notNull(),
      job: text('job').notNull(),
      failures: integer('failures').notNull(),
      version: integer('version').notNull(),
      enqueuedAt: integer('enqueued_at').notNull(),
      endedAt: integer('ended_at').notNull(),
      envelope: text('envelope').notNull(),
    },
    (table) => [index(`${names.ended}_state`).on(table.state, table.endedAt)],
  )

  /** One row for each attempt that did not succeed. */
  const attempts = sqliteTable(
    names.attempts,
    {
      id: integer('id').primaryKey({ autoIncrement: true }),
      jobId: integer('job_id').notNull(),
      fence: integer('fence').notNull(),
      attempt: integer('attempt').notNull(),
      worker: text('worker').notNull(),
      startedAt: integer('started_at').notNull(),
      endedAt: integer('ended_at').notNull(),
      errorType: text('error_type').notNull(),
      message: text('message').notNull(),
      stack: text('stack'),
      output: text('output'),
    },
    (table) => [index(`${names.attempts}_job`).on(table.jobId, table.id)],
  )

  /** Worker processes; the lease is here, not on the jobs, so that a beat is one row. */
  const workers = sqliteTable(names.workers, {
    id: integer('id').primaryKey(),
    name: text('name').notNull(),
    version: text('version').notNull(),
    host: text('host').notNull(),
    bootId: text('boot_id'),
    pidNamespace: text('pid_namespace'),
    pid: integer('pid').notNull(),
    pidStart: text('pid_start'),
    queues: text('queues').notNull(),
    concurrency: integer('concurrency').notNull(),
    leaseMs: integer('lease_ms').notNull(),
    /** 'working' or 'draining'. */
    state: text('state').notNull(),
    startedAt: integer('started_at').notNull(),
    beatAt: integer('beat_at').notNull(),
    deadAt: integer('dead_at'),
    /** How it died, judged once: 'alone', 'company' or 'free'. */
    verdict: text('verdict'),
    /** What pays for its death: {"id": fence} of the started jobs that it held when it was judged. */
    blamed: text('blamed'),
    /** When somebody asked it to make room for a new process; null: nobody did. */
    restartAt: integer('restart_at'),
    /** Until when it sleeps: who makes a job ready meanwhile wakes it, where the store needs to know. */
    asleepUntil: integer('asleep_until'),
  })

  /** Queues that are paused; a queue without a row is not. */
  const queues = sqliteTable(names.queues, {
    name: text('name').primaryKey(),
    pausedAt: integer('paused_at').notNull(),
    pausedUntil: integer('paused_until'),
    reason: text('reason'),
  })

  /** Schedules by name: what the newest configuration says of each, and how far it has come. */
  const schedules = sqliteTable(names.schedules, {
    name: text('name').primaryKey(),
    /** JSON, compared as text; '' where no configuration defines it (any more). */
    definition: text('definition').notNull(),
    /** When its slots are, compared as text: where it changes, the plan begins anew. '' where there are none. */
    cadence: text('cadence').notNull(),
    /** When the process began that wrote the definition: whoever began earlier leaves it alone. */
    definedAt: integer('defined_at').notNull(),
    /** Slots up to here were taken, passed over, or came before the schedule was first seen. */
    lastSlot: integer('last_slot').notNull(),
    /** Slots without a run since the last run, because nobody looked in time. */
    missed: integer('missed').notNull().default(0),
    /** A slot that waits for the run before it to end. */
    waitingSlot: integer('waiting_slot'),
    pausedAt: integer('paused_at'),
    /** The job of the last run, whether a slot or a person asked for it. */
    lastJob: integer('last_job'),
    /** When that was. */
    firedAt: integer('fired_at'),
  })

  /** Slots that were taken, the latest ones of each schedule. */
  const slots = sqliteTable(
    names.slots,
    {
      schedule: text('schedule').notNull(),
      slot: integer('slot').notNull(),
      /** Null: it waits, or was passed over because a run before it had not ended. */
      jobId: integer('job_id'),
    },
    (table) => [primaryKey({ columns: [table.schedule, table.slot] })],
  )

  /** One row: when anybody looked at the schedules last, and who. */
  const ticks = sqliteTable(names.ticks, {
    id: integer('id').primaryKey(),
    tickedAt: integer('ticked_at').notNull(),
    ticker: text('ticker').notNull(),
  })

  /**
   * What a job waits for, a row for each parent. The child is in `jobs` all the while, due at no moment (see
   * `continuations.ts`), so that its unique key is taken and it can be cancelled as any other.
   */
  const parents = sqliteTable(
    names.parents,
    {
      parent: integer('parent').notNull(),
      child: integer('child').notNull(),
      /** 'wait', 'cancel' or 'run'. */
      onFailure: text('on_failure').notNull(),
      /** When the child may run, once it waits for nothing any more; the same in each of its rows. */
      availableAt: integer('available_at').notNull(),
      /** 1: the parent is gone and was not done. Of one that is gone otherwise nothing is kept, so that it counts as done. */
      lost: integer('lost').notNull().default(0),
    },
    (table) => [
      primaryKey({ name: `${names.parents}_pk`, columns: [table.parent, table.child] }),
      index(`${names.parents}_child`).on(table.child),
    ],
  )

  return { jobs, failed, ended, attempts, workers, queues, schedules, slots, ticks, parents }
}

/** The tables of one installation, as drizzle knows them. */
export type SqliteTables = ReturnType<typeof sqliteTables>
