import { sql } from 'drizzle-orm'
import { bigint, index, integer, pgSchema, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core'
import type { TableNames } from '../names.ts'

/**
 * Builds the tables of one installation for Postgres. The columns and their meaning are those of `sqlite/schema.ts`.
 *
 * schema: qualifies every table; undefined leaves it to the search path.
 */
export function postgresTables(names: TableNames, schema: string | undefined) {
  // The two differ only in whether a type knows the schema's name, which nothing asks for.
  const table = (schema === undefined ? pgTable : pgSchema(schema).table) as typeof pgTable

  /** Live jobs: waiting, held or running. */
  const jobs = table(
    names.jobs,
    {
      /** BY DEFAULT: a retried job comes back under the id it had. */
      id: bigint('id', { mode: 'number' }).primaryKey().generatedByDefaultAsIdentity(),
      queue: text('queue').notNull(),
      priority: integer('priority').notNull().default(0),
      availableAt: bigint('available_at', { mode: 'number' }).notNull(),
      /** Who holds it. No foreign key: a random number that outlives its row in `workers`. */
      worker: bigint('worker', { mode: 'number' }),
      /** The reservation it was taken with, so that one whose answer was lost can be found again. */
      batch: bigint('batch', { mode: 'number' }),
      fence: bigint('fence', { mode: 'number' }).notNull().default(0),
      /** When its handler was started; null while it is only held. */
      startedAt: bigint('started_at', { mode: 'number' }),
      failures: integer('failures').notNull().default(0),
      crashes: integer('crashes').notNull().default(0),
      suspect: integer('suspect').notNull().default(0),
      cancelledAt: bigint('cancelled_at', { mode: 'number' }),
      job: text('job').notNull(),
      uniqueKey: text('unique_key'),
      version: integer('version').notNull(),
      enqueuedAt: bigint('enqueued_at', { mode: 'number' }).notNull(),
      envelope: text('envelope').notNull(),
    },
    (columns) => [
      index(`${names.jobs}_ready`)
        .on(columns.queue, columns.priority, columns.availableAt, columns.id)
        .where(sql`"worker" is null`),
      index(`${names.jobs}_held`).on(columns.worker).where(sql`"worker" is not null`),
      // A look once a second: these are empty nearly always, and then cost nothing.
      index(`${names.jobs}_suspect`)
        .on(columns.queue, columns.availableAt)
        .where(sql`"suspect" = 1 and "worker" is null`),
      index(`${names.jobs}_newer`)
        .on(columns.queue, columns.availableAt)
        .where(sql`"version" > 1 and "worker" is null`),
      index(`${names.jobs}_cancelled`)
        .on(columns.cancelledAt)
        .where(sql`"cancelled_at" is not null and "worker" is null`),
      uniqueIndex(`${names.jobs}_unique`).on(columns.uniqueKey).where(sql`"unique_key" is not null`),
    ],
  )

  /** Jobs that failed for good, until they are retried or flushed. */
  const failed = table(
    names.failed,
    {
      id: bigint('id', { mode: 'number' }).primaryKey(),
      fence: bigint('fence', { mode: 'number' }).notNull(),
      queue: text('queue').notNull(),
      priority: integer('priority').notNull(),
      job: text('job').notNull(),
      failures: integer('failures').notNull(),
      crashes: integer('crashes').notNull(),
      uniqueKey: text('unique_key'),
      version: integer('version').notNull(),
      enqueuedAt: bigint('enqueued_at', { mode: 'number' }).notNull(),
      failedAt: bigint('failed_at', { mode: 'number' }).notNull(),
      reason: text('reason').notNull(),
      errorType: text('error_type').notNull(),
      error: text('error').notNull(),
      envelope: text('envelope').notNull(),
    },
    (columns) => [index(`${names.failed}_failed_at`).on(columns.failedAt, columns.id)],
  )

  /** Jobs that ended otherwise: cancelled ones, and done ones where they are kept. */
  const ended = table(
    names.ended,
    {
      id: bigint('id', { mode: 'number' }).primaryKey(),
      /** 'done' or 'cancelled'. */
      state: text('state').notNull(),
      fence: bigint('fence', { mode: 'number' }).notNull(),
      queue: text('queue').notNull(),
      priority: integer('priority').notNull(),
      job: text('job').notNull(),
      failures: integer('failures').notNull(),
      version: integer('version').notNull(),
      enqueuedAt: bigint('enqueued_at', { mode: 'number' }).notNull(),
      endedAt: bigint('ended_at', { mode: 'number' }).notNull(),
      envelope: text('envelope').notNull(),
    },
    (columns) => [index(`${names.ended}_state`).on(columns.state, columns.endedAt)],
  )

  /** One row for each attempt that did not succeed. */
  const attempts = table(
    names.attempts,
    {
      id: bigint('id', { mode: 'number' }).primaryKey().generatedByDefaultAsIdentity(),
      jobId: bigint('job_id', { mode: 'number' }).notNull(),
      fence: bigint('fence', { mode: 'number' }).notNull(),
      attempt: integer('attempt').notNull(),
      worker: text('worker').notNull(),
      startedAt: bigint('started_at', { mode: 'number' }).notNull(),
      endedAt: bigint('ended_at', { mode: 'number' }).notNull(),
      errorType: text('error_type').notNull(),
      message: text('message').notNull(),
      stack: text('stack'),
      output: text('output'),
    },
    (columns) => [index(`${names.attempts}_job`).on(columns.jobId, columns.id)],
  )

  /** Worker processes; the lease is here, not on the jobs, so that a beat is one row. */
  const workers = table(names.workers, {
    id: bigint('id', { mode: 'number' }).primaryKey(),
    name: text('name').notNull(),
    version: text('version').notNull(),
    host: text('host').notNull(),
    bootId: text('boot_id'),
    pidNamespace: text('pid_namespace'),
    pid: integer('pid').notNull(),
    pidStart: text('pid_start'),
    queues: text('queues').notNull(),
    concurrency: integer('concurrency').notNull(),
    leaseMs: bigint('lease_ms', { mode: 'number' }).notNull(),
    /** 'working' or 'draining'. */
    state: text('state').notNull(),
    startedAt: bigint('started_at', { mode: 'number' }).notNull(),
    beatAt: bigint('beat_at', { mode: 'number' }).notNull(),
    deadAt: bigint('dead_at', { mode: 'number' }),
    /** How it died, judged once: 'alone', 'company' or 'free'. */
    verdict: text('verdict'),
    /** What pays for its death: {"id": fence} of the started jobs that it held when it was judged. */
    blamed: text('blamed'),
    /** When somebody asked it to make room for a new process; null: nobody did. */
    restartAt: bigint('restart_at', { mode: 'number' }),
    /** Until when it sleeps: who makes a job ready meanwhile wakes it, where the store needs to know. */
    asleepUntil: bigint('asleep_until', { mode: 'number' }),
  })

  /** Queues that are paused; a queue without a row is not. */
  const queues = table(names.queues, {
    name: text('name').primaryKey(),
    pausedAt: bigint('paused_at', { mode: 'number' }).notNull(),
    pausedUntil: bigint('paused_until', { mode: 'number' }),
    reason: text('reason'),
  })

  /** Schedules by name: what the newest configuration says of each, and how far it has come. */
  const schedules = table(names.schedules, {
    name: text('name').primaryKey(),
    /** JSON, compared as text; '' where no configuration defines it (any more). */
    definition: text('definition').notNull(),
    /** When its slots are, compared as text: where it changes, the plan begins anew. '' where there are none. */
    cadence: text('cadence').notNull(),
    /** When the process began that wrote the definition: whoever began earlier leaves it alone. */
    definedAt: bigint('defined_at', { mode: 'number' }).notNull(),
    /** Slots up to here were taken, passed over, or came before the schedule was first seen. */
    lastSlot: bigint('last_slot', { mode: 'number' }).notNull(),
    /** Slots without a run since the last run, because nobody looked in time. */
    missed: integer('missed').notNull().default(0),
    /** A slot that waits for the run before it to end. */
    waitingSlot: bigint('waiting_slot', { mode: 'number' }),
    pausedAt: bigint('paused_at', { mode: 'number' }),
    /** The job of the last run, whether a slot or a person asked for it. */
    lastJob: bigint('last_job', { mode: 'number' }),
    /** When that was. */
    firedAt: bigint('fired_at', { mode: 'number' }),
  })

  /** Slots that were taken, the latest ones of each schedule. */
  const slots = table(
    names.slots,
    {
      schedule: text('schedule').notNull(),
      slot: bigint('slot', { mode: 'number' }).notNull(),
      /** Null: it waits, or was passed over because a run before it had not ended. */
      jobId: bigint('job_id', { mode: 'number' }),
    },
    (columns) => [primaryKey({ columns: [columns.schedule, columns.slot] })],
  )

  /** One row: when anybody looked at the schedules last, and who. */
  const ticks = table(names.ticks, {
    id: integer('id').primaryKey(),
    tickedAt: bigint('ticked_at', { mode: 'number' }).notNull(),
    ticker: text('ticker').notNull(),
  })

  /** What a job waits for, a row for each parent. */
  const parents = table(
    names.parents,
    {
      parent: bigint('parent', { mode: 'number' }).notNull(),
      child: bigint('child', { mode: 'number' }).notNull(),
      /** 'wait', 'cancel' or 'run'. */
      onFailure: text('on_failure').notNull(),
      /** When the child may run, once it waits for nothing any more; the same in each of its rows. */
      availableAt: bigint('available_at', { mode: 'number' }).notNull(),
      /** 1: the parent is gone and was not done. Of one that is gone otherwise nothing is kept, so that it counts as done. */
      lost: integer('lost').notNull().default(0),
    },
    (columns) => [
      primaryKey({ name: `${names.parents}_pk`, columns: [columns.parent, columns.child] }),
      index(`${names.parents}_child`).on(columns.child),
    ],
  )

  return { jobs, failed, ended, attempts, workers, queues, schedules, slots, ticks, parents }
}

/** The tables of one installation, as drizzle knows them. */
export type PostgresTables = ReturnType<typeof postgresTables>
