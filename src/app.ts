import { createRequire } from 'node:module'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Attempt } from './core/attempt.ts'
import { beatInLoop, type StartBeat, unwatched, type Watch } from './core/beat.ts'
import { beatInThread } from './core/beat-thread.ts'
import {
  type Enlisted,
  enlisted,
  type PostgresCaller,
  type RunInside,
  type SqliteCaller,
} from './core/callers-transaction.ts'
import { type Clock, type Random, systemClock } from './core/clock.ts'
import { type Config, type ConfigInput, type ConfigSources, loadConfig, resolveConfig } from './core/config.ts'
import { requireDatabaseFile } from './core/database-file.ts'
import type { SharedDatabase } from './core/database-url.ts'
import { chooseDispatch } from './core/default-khepri.ts'
import { defaults } from './core/defaults.ts'
import { Dispatcher, rawJob } from './core/dispatch.ts'
import {
  type DispatchArguments,
  type DispatchCall,
  type DispatchOptions,
  dueOf,
  type InstanceIn,
  type JobMap,
  type PayloadAndOptions,
  type PayloadOf,
  requestOf,
  type ValueIn,
} from './core/dispatch-call.ts'
import { Enqueuer } from './core/enqueuer.ts'
import type { ScheduledRun } from './core/envelope.ts'
import { KhepriError } from './core/errors.ts'
import { EventBus } from './core/events.ts'
import { examined, type Finding, ok, warning } from './core/findings.ts'
import type { MemoryQueue } from './core/memory-queue.ts'
import { packageRoot, version } from './core/package.ts'
import { fateOf, processIdentity } from './core/process-identity.ts'
import { Pruner } from './core/pruner.ts'
import { type QueueLimits, slotsFor } from './core/queue-limits.ts'
import { Registry } from './core/registry.ts'
import { retentionOf } from './core/retention.ts'
import type { Admin } from './core/store/admin.ts'
import type { Migration, Migrations } from './core/store/migrations.ts'
import type { StoreOptions } from './core/store/options.ts'
import type { ScheduleStore } from './core/store/schedule-store.ts'
import { type Scratch, scratchConfig } from './core/store/scratch.ts'
import type { Enqueued, Filter, NewJob, Store } from './core/store/store.ts'
import { parseTerms, type Terms } from './core/terms.ts'
import { refuseStrangers } from './core/unknown-keys.ts'
import type { WorkHandle, WorkOptions } from './core/work.ts'
import { checkWorkOptions } from './core/work-options.ts'
import { Worker } from './core/worker.ts'

/** Known by their types only: the layer is loaded where there are schedules. */
type Schedule = import('./schedule/schedule.ts').Schedule
type Ticker = import('./schedule/ticker.ts').Ticker
/** What runs jobs where they are dispatched. */
type Runner = import('./sync/run-at-dispatch.ts').RunAtDispatch

/** What an installation can be given besides its configuration. */
export interface AppParts {
  /** Given: it is also what the store takes for now. */
  readonly clock?: Clock
  readonly random?: Random
  readonly startBeat?: StartBeat
  /** Where relative paths of the configuration start; the working directory unless given. */
  readonly root?: string
  /** Takes new jobs instead of a database; somebody else runs them. */
  readonly driver?: Pick<Store, 'enqueue'>
}

/** Where `loadKhepri` looks; what is given outranks the environment, as the flags of the command line do. */
export interface LoadOptions {
  /** Where the search for a configuration begins; the working directory unless given. */
  readonly cwd?: string
  /** A configuration file, instead of the search. */
  readonly config?: string
  readonly database?: string
}

/** What a worker is started with; what is not given follows from the configuration. */
export interface WorkRequest extends Partial<WorkOptions> {
  /** Also looks after the schedules, as long as the worker works. */
  readonly schedule?: boolean | undefined
}

/** One job of a `dispatchMany`. */
export type ManyEntry<Jobs extends JobMap> = {
  readonly [Name in keyof Jobs & string]: {
    readonly job: Name
    readonly payload: PayloadOf<Jobs[Name]>
  } & DispatchOptions
}[keyof Jobs & string]

/**
 * One installation: its configuration, its store, its jobs.
 *
 * Everything is opened when it is first needed. No signal handlers, no process-wide handlers, and it never ends the
 * process: that is the command line's part.
 */
export class Khepri<Jobs extends JobMap = JobMap> {
  readonly config: Config
  readonly events = new EventBus()
  readonly #parts: AppParts
  readonly #workers = new Set<WorkHandle>()
  readonly #tickers = new Set<Ticker>()
  readonly #enqueuer = new Enqueuer({ enqueue: async (jobs) => (await this.#driver()).enqueue(jobs) })
  #stopUsing: (() => void) | null = null
  #isClosed = false
  #store: Promise<Store> | null = null
  #admin: Promise<Admin> | null = null
  #migrations: Promise<Migrations> | null = null
  #schedules: Promise<readonly Schedule[]> | null = null
  #scheduleStore: Promise<ScheduleStore> | null = null
  #registry: Registry | null = null
  #dispatcher: Dispatcher | null = null
  /** All sides of the memory store share one state. */
  #memory: Promise<MemorySides> | null = null
  #sync: Promise<Runner> | null = null

  constructor(config: Config, parts: AppParts = {}) {
    this.config = config
    this.#parts = parts
  }

  /** Finds and reads the configuration as the command line does. Throws CONFIG_ errors. */
  static async load(sources: ConfigSources): Promise<Khepri> {
    const khepri = new Khepri(await loadConfig(sources))
    await khepri.schedules()
    return khepri
  }

  /** Applies the migrations that are missing, under a lock; answers which. */
  async migrate(): Promise<readonly Migration[]> {
    return (await this.migrations()).apply()
  }

  /**
   * Puts one job in; resolves when it is committed. A payload that is not given is {}.
   *
   * job: a name; or an instance of a class, which is its own payload, or any other value, that `jobs` holds itself.
   */
  dispatch(job: InstanceIn<Jobs>, options?: DispatchOptions): Promise<Enqueued>
  dispatch<Value extends ValueIn<Jobs>>(job: Value, ...rest: PayloadAndOptions<PayloadOf<Value>>): Promise<Enqueued>
  dispatch<Name extends keyof Jobs & string>(
    job: Name,
    ...rest: PayloadAndOptions<PayloadOf<Jobs[Name]>>
  ): Promise<Enqueued>
  /** closure: only `memory:` and `sync:` take one, where its code is still there when it runs. */
  dispatch(closure: () => unknown, options?: DispatchOptions): Promise<Enqueued>
  async dispatch(...call: DispatchArguments): Promise<Enqueued> {
    const [enqueued] = await this.enqueue([await this.prepare(...call)])
    return enqueued as Enqueued
  }

  /**
   * Dispatches inside a transaction of the caller's: what it puts in is there once the caller commits, and never if not.
   *
   * On SQLite `dispatchSync` writes before it returns: code after an await would run outside of the transaction.
   */
  with(tx: SqliteCaller): { readonly dispatchSync: DispatchCall<Jobs, Enqueued> }
  with(tx: PostgresCaller): { readonly dispatch: DispatchCall<Jobs, Promise<Enqueued>> }
  with(tx: SqliteCaller | PostgresCaller): object {
    this.#requireOpen()
    const into = enlisted(tx)
    if (into.kind === 'postgres')
      return { dispatch: async (...call: DispatchArguments) => this.enlist(into, await this.prepare(...call)) }
    return { dispatchSync: (...call: DispatchArguments) => this.enlist(into, this.#prepareNow(call)) }
  }

  /** Writes a prepared row on a caller's connection: on SQLite before it returns. Throws USAGE where that is another database. */
  enlist(into: Enlisted, row: NewJob): Enqueued | Promise<Enqueued> {
    this.#requireDispatching()
    this.#requireDatabase()
    const { database } = this.config
    if (into.kind !== database.kind)
      throw new KhepriError(
        'USAGE',
        `with() was given ${into.kind}, and the database of this khepri is ${database.label}`,
      )
    if (into.kind === 'postgres') return this.#enlistPostgres(into.run, row)
    const path = database.kind === 'sqlite' ? database.path : ''
    return sqliteEnlisting().enlist(into.db, [row], { ...this.#storeOptions, path })[0] as Enqueued
  }

  async #enlistPostgres(run: RunInside, row: NewJob): Promise<Enqueued> {
    const [enqueued] = (await (await this.store()).enlist?.(run, [row])) ?? []
    return enqueued as Enqueued
  }

  /** Puts jobs in, all or none, in one transaction; answers in their order. */
  async dispatchMany(jobs: readonly ManyEntry<Jobs>[]): Promise<readonly Enqueued[]> {
    const rows: NewJob[] = []
    for (const entry of jobs) {
      const { job, payload, ...options } = entry as DispatchOptions & {
        readonly job: string
        readonly payload: unknown
      }
      rows.push(await this.prepare(job, payload, options))
    }
    return this.enqueue(rows)
  }

  /** Puts an encoded envelope in as it is: what `failed` and events of another installation hold. */
  async pushRaw(
    envelope: string,
    options: Pick<DispatchOptions, 'queue' | 'priority' | 'delay' | 'at'> = {},
  ): Promise<Enqueued> {
    refuseStrangers(options, ['queue', 'priority', 'delay', 'at'], {
      what: 'the options of pushRaw',
      code: 'DATA_INVALID',
    })
    const { queue = this.config.queue, priority = defaults.priority } = parseTerms(options, '')
    const [enqueued] = await this.enqueue([
      rawJob(envelope, { queue, priority, due: dueOf(options) ?? { delayMs: 0 } }),
    ])
    return enqueued as Enqueued
  }

  /** Starts a worker in this process. Rejects where the store cannot be reached or has no schema. */
  async work(request: WorkRequest = {}): Promise<WorkHandle> {
    if (this.config.role === 'producer')
      throw new KhepriError('USAGE', 'this khepri is a producer and starts no worker', {
        fix: 'set role to "worker" or "both" where jobs are to run',
      })
    if (this.#isSync)
      throw new KhepriError('USAGE', 'sync: runs jobs where they are dispatched, there is nothing to work on')
    checkWorkOptions(request)
    const { schedule = false, ...options } = request
    const registry = await this.registry()
    const complete = await this.#complete(options, registry)
    await this.schedules()
    const ticker = schedule ? await this.ticker({ name: complete.name, tellsOutages: false }) : null
    // Who ends when there is nothing to do runs what is due before that.
    if (complete.once || complete.stopWhenEmpty) await ticker?.tick()
    const { clock = systemClock, random = Math.random } = this.#parts
    const identity = processIdentity()
    const worker = await Worker.start(complete, {
      ...{ store: await this.store(), registry, events: this.events, clock, random },
      ...{ prepare: this.prepare, openScope: this.config.scope },
      ...this.#beats(complete),
      profile: { ...identity, version: version() },
      fateOf: (neighbour) => fateOf(neighbour, identity),
      beforeFreeing: async (dead) => (await import('./exec/recorded-groups.ts')).endGroupsOf(dead),
    })
    this.#workers.add(worker)
    const pruner = new Pruner({ admin: () => this.admin(), retention: retentionOf(this.config), clock, random })
    void ticker?.run()
    const forget = (): void => {
      pruner.stop()
      void ticker?.stop()
      this.#workers.delete(worker)
    }
    worker.finished.then(forget, forget)
    return worker
  }

  /** Makes this installation the one that the exported `dispatch` puts jobs into. */
  use(): this {
    this.#stopUsing = chooseDispatch((...call) =>
      (this.dispatch as (...call: DispatchArguments) => Promise<Enqueued>)(...call),
    )
    return this
  }

  /** What is in memory. Throws USAGE where the database is another one. */
  async memory(): Promise<MemoryQueue> {
    const { database } = this.config
    if (database.kind !== 'memory' || this.#isSync)
      throw new KhepriError('USAGE', `memory() is for memory:, and the database is ${database.label}`)
    const { MemoryQueue } = await import('./core/memory-queue.ts')
    return new MemoryQueue((await this.#openMemory()).state, () => this.#drainMemory())
  }

  async #drainMemory(): Promise<number> {
    let started = 0
    const stopCounting = this.events.on('job.started', () => started++)
    try {
      await (await this.work({ queues: 'all', stopWhenEmpty: true })).finished
    } finally {
      stopCounting()
    }
    return started
  }

  /** Writes rows that a Dispatcher prepared; durable when it resolves. Concurrent calls share commits. */
  async enqueue(jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    this.#requireDispatching()
    if (this.#isSync) return (await this.#runner()).enqueue(jobs)
    const enqueued = await this.#enqueuer.enqueue(jobs)
    if (this.events.isHeard) this.#announce(jobs, enqueued)
    return enqueued
  }

  #announce(jobs: readonly NewJob[], enqueued: readonly Enqueued[]): void {
    for (const [index, { job, queue }] of jobs.entries()) {
      const answer = enqueued[index]
      if (answer && !answer.duplicate) this.events.emit('job.enqueued', { id: answer.id, job, queue })
    }
  }

  /** What turns requests into rows; its jobs' modules are imported as they are named. */
  async dispatcher({ allowUnknown = false }: { readonly allowUnknown?: boolean } = {}): Promise<Dispatcher> {
    return this.#dispatcherOver(await this.registry(), allowUnknown)
  }

  #dispatcherOver(registry: Registry, allowUnknown = false): Dispatcher {
    return new Dispatcher({ registry, config: this.config, clock: this.#parts.clock ?? systemClock, allowUnknown })
  }

  async registry(): Promise<Registry> {
    return this.#registryNow()
  }

  #registryNow(): Registry {
    this.#registry ??= Registry.read(this.config, {
      makeExecutable: async (executable) => (await import('./exec/handler.ts')).executableHandler(executable),
    })
    return this.#registry
  }

  get #isSync(): boolean {
    const { database } = this.config
    return database.kind === 'memory' && database.isSync === true
  }

  /** What takes new jobs: the store, or the driver that only dispatches. */
  async #driver(): Promise<Pick<Store, 'enqueue'>> {
    return this.#parts.driver ?? this.store()
  }

  #requireDatabase(): void {
    if (this.#parts.driver)
      throw new KhepriError('USAGE', 'this khepri has a driver that only dispatches', {
        fix: 'jobs are run by whoever takes them from it',
      })
  }

  async #runner(): Promise<Runner> {
    this.#requireOpen()
    this.#sync ??= this.#openRunner()
    return this.#sync
  }

  async #openRunner(): Promise<Runner> {
    this.#requireEphemeral()
    const { RunAtDispatch } = await import('./sync/run-at-dispatch.ts')
    const { tries, backoff, timeoutMs, maxPayloadBytes, scope: openScope } = this.config
    const { clock = systemClock } = this.#parts
    const [registry, { events, prepare }] = [await this.registry(), this]
    return new RunAtDispatch({
      ...{ registry, clock, events, prepare, tries, backoff, timeoutMs, maxPayloadBytes, openScope },
    })
  }

  /** Jobs that end with their process are for development. Throws CONFIG_INVALID for sync: in production, and warns of memory:. */
  #requireEphemeral(): void {
    const { ephemeral } = this.config
    if (ephemeral || process.env.NODE_ENV !== 'production') return
    const fix = 'name a file or a server, or say ephemeral: true where that is what you want'
    if (this.#isSync)
      throw new KhepriError('CONFIG_INVALID', 'sync: runs jobs where they are dispatched, and NODE_ENV is production', {
        fix,
      })
    process.emitWarning(
      `the jobs in memory: end with this process, and NODE_ENV is production; ${fix}`,
      'KhepriWarning',
    )
  }

  async store(): Promise<Store> {
    this.#requireOpen()
    this.#requireDatabase()
    this.#store ??= this.#openStore()
    return this.#store
  }

  /** The cold side: lists, failed jobs, pauses. */
  async admin(): Promise<Admin> {
    this.#requireOpen()
    this.#requireDatabase()
    this.#admin ??= this.#openAdmin()
    return this.#admin
  }

  async migrations(): Promise<Migrations> {
    this.#requireOpen()
    this.#requireDatabase()
    this.#migrations ??= this.#openMigrations()
    return this.#migrations
  }

  /** What the configuration says of schedules. Throws CONFIG_INVALID for one that is invalid or can never fire. */
  schedules(): Promise<readonly Schedule[]> {
    this.#schedules ??= this.#readSchedules()
    return this.#schedules
  }

  /** What the store keeps of schedules. */
  async scheduleStore(): Promise<ScheduleStore> {
    this.#requireOpen()
    this.#scheduleStore ??= this.#openSchedules()
    return this.#scheduleStore
  }

  /** What looks after the schedules; nothing ticks before it is told to. Throws CONFIG_INVALID in memory in production. */
  async ticker(how: { readonly name: string; readonly tellsOutages: boolean }): Promise<Ticker> {
    const schedules = await this.schedules()
    const [{ Ticker }, { refuseInMemory }] = await Promise.all([
      import('./schedule/ticker.ts'),
      import('./schedule/schedule.ts'),
    ])
    if (this.config.database.kind === 'memory') refuseInMemory(schedules, process.env['NODE_ENV'])
    const ticker = new Ticker({
      ...how,
      ...{ store: await this.scheduleStore(), schedules, events: this.events },
      clock: this.#parts.clock ?? systemClock,
      prepare: async (schedule, run) => this.scheduledJob(schedule, run),
    })
    this.#tickers.add(ticker)
    return ticker
  }

  /** The row for one run of a schedule. Rejects as a dispatch of its job does. */
  async scheduledJob({ job, payloadText, terms }: Schedule, run: ScheduledRun): Promise<NewJob> {
    return this.#dispatcherNow().prepare({ job, payloadText, terms, due: null, unique: null, schedule: run })
  }

  /** Looks whether the database can be worked with; changes nothing, and never rejects for what it finds. */
  async checkup(): Promise<readonly Finding[]> {
    const { database } = this.config
    switch (database.kind) {
      case 'sqlite':
        return (await import('./core/store/sqlite/checkup.ts')).checkSqlite(database.path, this.#storeOptions)
      case 'postgres':
        return (await import('./core/store/postgres/checkup.ts')).checkPostgres(database.url, this.#storeOptions)
      case 'memory':
        return this.#checkMemory()
    }
  }

  /**
   * A place of its own in the same database, for a measurement: empty until it is migrated, gone once it is removed.
   *
   * open: an installation there, with these jobs; whoever opens one closes it. Throws USAGE for the memory store.
   */
  async scratch(): Promise<Scratch & { open(jobs: JobMap): Khepri }> {
    const config = scratchConfig(this.config)
    const installation = createKhepri(config)
    const place = await openScratch(installation.config.database as SharedDatabase, installation.#storeOptions)
    return { ...place, open: (jobs) => createKhepri({ ...config, jobs }) }
  }

  #checkEphemeral(): Finding {
    this.#requireEphemeral()
    return ok('database', this.config.database.label)
  }

  async #checkMemory(): Promise<readonly Finding[]> {
    const { database, ephemeral } = this.config
    if (ephemeral) return [ok('database', `${database.label} is meant to end with its process`)]
    if (this.#isSync && process.env.NODE_ENV === 'production')
      return [await examined('database', () => this.#checkEphemeral())]
    return [
      warning(
        'database',
        `${database.label} ends with its process`,
        'use it in tests; name a file or a server otherwise',
      ),
    ]
  }

  /** Drains the workers that were started here, ends the streams of events and closes the database. Afterwards every call that needs it rejects. */
  async close(): Promise<void> {
    const workers = [...this.#workers]
    for (const worker of workers) worker.drain()
    await Promise.allSettled(workers.map(({ finished }) => finished))
    await Promise.all([...this.#tickers].map((ticker) => ticker.stop()))
    this.#isClosed = true
    this.#stopUsing?.()
    this.events.end()
    const open = [this.#store, this.#admin, this.#migrations, this.#scheduleStore].filter((each) => each !== null)
    this.#store = this.#admin = this.#migrations = this.#scheduleStore = null
    for (const each of await Promise.allSettled<{ close(): Promise<void> }>(open))
      if (each.status === 'fulfilled') await each.value.close()
  }

  /** What a handler dispatches belongs to its work. */
  #requireDispatching(): void {
    if (this.config.role !== 'worker' || Attempt.current() !== undefined) return
    throw new KhepriError('USAGE', 'this khepri is a worker: only its handlers dispatch', {
      fix: 'set role to "producer" or "both" where jobs are dispatched',
    })
  }

  /** Throws USAGE once `close` has ended: a database that opened again would stay open. */
  #requireOpen(): void {
    if (this.#isClosed)
      throw new KhepriError('USAGE', 'this khepri was closed', { fix: 'call close() last, or make another one' })
  }

  /** The row that a dispatch with these arguments would put in. */
  readonly prepare = async (...call: DispatchArguments): Promise<NewJob> =>
    this.#dispatcherNow().prepare(requestOf(call, this.#namesNow()))

  #prepareNow(call: DispatchArguments): NewJob {
    return this.#dispatcherNow().prepareNow(requestOf(call, this.#registryNow()))
  }

  /** Only where every job ends with this process its code may be anywhere in it. */
  #namesNow(): Parameters<typeof requestOf>[1] {
    const registry = this.#registryNow()
    if (this.config.database.kind === 'memory') return registry
    return { get: (name) => registry.get(name), nameOf: (job) => registry.nameOf(job) }
  }

  #dispatcherNow(): Dispatcher {
    this.#dispatcher ??= this.#dispatcherOver(this.#registryNow())
    return this.#dispatcher
  }

  async #complete(options: Partial<WorkOptions>, registry: Registry): Promise<WorkOptions> {
    const { config } = this
    const queues = options.queues ?? (await defaultQueues(config, registry))
    const queueLimits = options.queueLimits ?? limitsOf(config)
    return {
      queues,
      queueLimits,
      concurrency: config.concurrency ?? slotsFor(queueLimits, queues),
      sleepMs: config.sleepMs,
      restMs: 0,
      once: false,
      stopWhenEmpty: false,
      maxJobs: null,
      maxTimeMs: null,
      drainTimeoutMs: null,
      timeoutMs: config.timeoutMs,
      tries: config.tries,
      backoff: config.backoff,
      retryAfterMs: config.retryAfterMs,
      unknownJobs: config.unknownJobs,
      maxPayloadBytes: config.maxPayloadBytes,
      keepDoneMs: config.keepDoneMs,
      endsWhenBlocked: false,
      name: `${hostname()}-${process.pid}`,
      only: null,
      except: [],
      ...withoutUndefined(options),
    }
  }

  async #openStore(): Promise<Store> {
    const { database } = this.config
    requireDatabaseFile(this.config)
    return database.kind === 'memory' ? (await this.#openMemory()).store : openStore(database, this.#storeOptions)
  }

  async #openAdmin(): Promise<Admin> {
    const { database } = this.config
    switch (database.kind) {
      case 'sqlite':
        requireDatabaseFile(this.config)
        return (await import('./core/store/sqlite/admin.ts')).openSqliteAdmin(database.path, this.#storeOptions)
      case 'postgres':
        return (await import('./core/store/postgres/admin.ts')).openPostgresAdmin(database.url, this.#storeOptions)
      case 'memory':
        return (await this.#openMemory()).admin
    }
  }

  async #readSchedules(): Promise<readonly Schedule[]> {
    const { schedules, file } = this.config
    return schedules.length === 0 ? [] : (await import('./schedule/schedule.ts')).readSchedules(schedules, file)
  }

  async #openSchedules(): Promise<ScheduleStore> {
    const { database } = this.config
    switch (database.kind) {
      case 'sqlite':
        requireDatabaseFile(this.config)
        return (await import('./core/store/sqlite/schedules.ts')).openSqliteSchedules(database.path, this.#storeOptions)
      case 'postgres':
        return (await import('./core/store/postgres/schedules.ts')).openPostgresSchedules(
          database.url,
          this.#storeOptions,
        )
      case 'memory':
        return (await this.#openMemory()).schedules
    }
  }

  async #openMigrations(): Promise<Migrations> {
    const { database } = this.config
    switch (database.kind) {
      case 'sqlite':
        return (await import('./core/store/sqlite/migrate.ts')).openSqliteMigrations(database.path, this.#storeOptions)
      case 'postgres':
        return (await import('./core/store/postgres/migrate.ts')).openPostgresMigrations(
          database.url,
          this.#storeOptions,
        )
      case 'memory':
        throw new KhepriError('USAGE', `${database.label} has no schema to migrate`, {
          fix: 'leave migrate() out where the database is memory: or sync:',
        })
    }
  }

  /** From a thread of its own where another thread can open the database, and where nobody plays with time. */
  #beats({ name, endsWhenBlocked }: WorkOptions): { readonly startBeat: StartBeat; readonly watch: Watch } {
    const { database } = this.config
    const { startBeat, clock } = this.#parts
    if (startBeat || clock || database.kind === 'memory')
      return { startBeat: startBeat ?? beatInLoop, watch: unwatched }
    const { clock: _clock, random: _random, ...options } = this.#storeOptions
    return beatInThread({
      database,
      options,
      worker: name,
      endsProcess: endsWhenBlocked,
      onBlocked: (jobs) => this.events.emit('worker.blocked', { worker: name, jobs }),
    })
  }

  #openMemory(): Promise<MemorySides> {
    if (this.#memory === null) this.#requireEphemeral()
    this.#memory ??= openMemory(this.#parts.clock)
    return this.#memory
  }

  get #storeOptions(): StoreOptions {
    const { names, schema, database, prepare } = this.config
    const { clock, random = Math.random } = this.#parts
    const label = `${database.label}${placeIn(this.config)}`
    return { names, schema, label, clock, random, prepare, deadlineMs: defaults.deadlineMs }
  }
}

/** What one memory store offers. */
interface MemorySides {
  readonly state: ConstructorParameters<typeof MemoryQueue>[0]
  readonly store: Store
  readonly admin: Admin
  readonly schedules: ScheduleStore
}

async function openMemory(clock: Clock | undefined): Promise<MemorySides> {
  const [{ openMemoryStore }, { openMemorySchedules }] = await Promise.all([
    import('./core/store/memory/store.ts'),
    import('./core/store/memory/schedules.ts'),
  ])
  const { store, admin, state } = openMemoryStore({ clock })
  return { state, store, admin, schedules: openMemorySchedules(state) }
}

/**
 * What writes on a connection of the caller's. The caller cannot wait, so it is loaded at once: a file of its own beside
 * the bundle, which never loads the driver.
 */
function sqliteEnlisting(): typeof import('./core/store/sqlite/enlisting.ts') {
  const file = import.meta.url.endsWith('.ts')
    ? fileURLToPath(new URL('./core/store/sqlite/enlisting.ts', import.meta.url))
    : join(packageRoot(), 'dist', 'sqlite-enlisting.js')
  return createRequire(import.meta.url)(file) as typeof import('./core/store/sqlite/enlisting.ts')
}

/** Opens the hot side of a store, loading only its own driver. Throws SCHEMA_ and STORE_ errors. */
export async function openStore(database: SharedDatabase, options: StoreOptions): Promise<Store> {
  switch (database.kind) {
    case 'sqlite':
      return (await import('./core/store/sqlite/store.ts')).openSqliteStore(database.path, options)
    case 'postgres':
      return (await import('./core/store/postgres/store.ts')).openPostgresStore(database.url, options)
  }
}

/** Opens the scratch side of a store. */
async function openScratch(database: SharedDatabase, options: StoreOptions): Promise<Scratch> {
  switch (database.kind) {
    case 'sqlite':
      return (await import('./core/store/sqlite/scratch.ts')).openSqliteScratch(database.path, options)
    case 'postgres':
      return (await import('./core/store/postgres/scratch.ts')).openPostgresScratch(database.url, options)
  }
}

/**
 * Opens an installation inside an application.
 *
 * config: the same shape as a configuration file's. Relative paths start at `parts.root`, or the working directory.
 * Throws CONFIG_INVALID. Nothing is opened or imported before it is needed.
 */
export function createKhepri<const Jobs extends JobMap = JobMap>(
  config: Omit<ConfigInput, 'jobs'> & { readonly jobs?: Jobs | ConfigInput['jobs'] },
  parts: AppParts = {},
): Khepri<Jobs> {
  refuseStrangers(parts, ['clock', 'random', 'startBeat', 'root', 'driver'], {
    what: 'the parts',
    code: 'CONFIG_INVALID',
  })
  const resolved = resolveConfig(config as ConfigInput, {
    root: parts.root ?? process.cwd(),
    file: null,
    env: {},
    flags: {},
  })
  return new Khepri<Jobs>(resolved, parts)
}

/**
 * Opens the installation of a folder as the command line does: its configuration file, and the environment.
 *
 * Throws CONFIG_ errors and MODULE_BROKEN.
 */
export function loadKhepri({ cwd = process.cwd(), config, database }: LoadOptions = {}): Promise<Khepri> {
  return Khepri.load({ cwd, flags: { config, database }, env: process.env })
}

/** Which of several installations in a database this is, for messages; '' for the one with the default names. */
function placeIn({ schema, table }: Config): string {
  const parts = [
    ...(schema === undefined ? [] : [`schema ${schema}`]),
    ...(table === defaults.table ? [] : [`table ${table}`]),
  ]
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`
}

function limitsOf({ queues }: Config): QueueLimits {
  return new Map((queues ?? []).flatMap(({ name, concurrency }) => (concurrency === null ? [] : [[name, concurrency]])))
}

/** Declared queues in their order; otherwise every queue that the config or a job names, merged by priority and age. */
async function defaultQueues(config: Config, registry: Registry): Promise<Filter['queues']> {
  if (config.queues) return config.queues.map(({ name }) => [name])
  const terms = await Promise.all(registry.names().map((name) => termsOrNone(registry, name)))
  const scheduled = config.schedules.map((schedule) => schedule.terms)
  return [[...new Set([config.queue, ...[...terms, ...scheduled].flatMap(({ queue }) => queue ?? [])])]]
}

/** A module that cannot be imported names no queue; the worker reports it when one of its jobs comes. */
async function termsOrNone(registry: Registry, name: string): Promise<Terms> {
  try {
    return (await registry.get(name)?.terms()) ?? {}
  } catch {
    return {}
  }
}

function withoutUndefined<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
}
