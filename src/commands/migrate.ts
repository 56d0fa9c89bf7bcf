import { KhepriCommand } from '../cli/base-command.ts'
import { durationFlag, Flags } from '../cli/flags.ts'
import { schemaFault } from '../cli/schema-fault.ts'
import { columns, count } from '../cli/words.ts'
import { sleep, systemClock } from '../core/clock.ts'
import { formatDuration } from '../core/duration.ts'
import { isTransient, KhepriError } from '../core/errors.ts'
import type { Migration, MigrationStatus, Migrations } from '../core/store/migrations.ts'

const askAgainMs = 250

/** `khepri migrate`: brings the tables up to date, or tells how they are. */
export default class Migrate extends KhepriCommand {
  static readonly id = 'migrate'
  static readonly summary = 'Create or update the tables'
  static readonly description =
    'Applies what is missing, under a lock: of twenty at once one applies, the others wait and find nothing to do.'
  static readonly examples = [
    'khepri migrate',
    'khepri migrate --check --wait 60s && khepri work',
    'khepri migrate --sql > migration.sql',
  ]
  static readonly args = {}
  static readonly flags = {
    status: Flags.boolean({ summary: 'list the migrations and whether each is applied' }),
    'dry-run': Flags.boolean({ summary: 'name what would be applied' }),
    sql: Flags.boolean({ summary: 'print the SQL of what would be applied' }),
    check: Flags.boolean({ summary: 'exit 0 where the tables are current, 78 where they are not' }),
    wait: durationFlag({ helpValue: '60s', summary: 'with --check: wait so long for the tables to become current' }),
  }

  protected async run(): Promise<void> {
    const { flags } = await this.parse(Migrate)
    const modes = (['status', 'dry-run', 'sql', 'check'] as const).filter((mode) => flags[mode])
    if (modes.length > 1) throw new KhepriError('USAGE', `--${modes[0]} and --${modes[1]} exclude each other`)
    if (flags.wait !== undefined && !flags.check) throw new KhepriError('USAGE', '--wait needs --check')
    const app = await this.app()
    const { label } = app.config.database
    if (flags.check) return this.#check(label, flags.wait ?? 0)
    const migrations = await app.migrations()
    if (flags.status) return this.#status(await migrations.status())
    if (flags['dry-run'] || flags.sql) return this.#preview(await migrations.status(), { label, sql: flags.sql })
    await this.#apply(migrations, label)
  }

  async #apply(migrations: Migrations, label: string): Promise<void> {
    const startedAt = systemClock.monotonic()
    const applied = await migrations.apply()
    const ms = Math.round(systemClock.monotonic() - startedAt)
    if (this.output.mode === 'json')
      return this.output.document({ database: label, applied: applied.map(({ name }) => name), ms })
    if (applied.length === 0) return this.#nothing(await migrations.status(), label)
    await this.print(
      columns('applied', [[span(applied), `${count(applied.length, 'migration')}, ${formatDuration(ms)}`]]),
    )
  }

  async #preview(
    { applied, pending }: MigrationStatus,
    { label, sql }: { readonly label: string; readonly sql: boolean },
  ): Promise<void> {
    if (this.output.mode === 'json')
      return this.output.document({
        database: label,
        pending: pending.map((each) => (sql ? each : { name: each.name })),
      })
    if (pending.length === 0) return this.#nothing({ applied }, label)
    if (!sql) return this.print(columns('would apply', [[span(pending), count(pending.length, 'migration')]]))
    for (const { name, sql: text } of pending)
      await this.print(`-- ${name}\n${text.replaceAll('--> statement-breakpoint', '\n').trim()}\n`)
  }

  async #status({ applied, newer, pending, unknown }: MigrationStatus): Promise<void> {
    const rows = [
      ...applied.map((name) => ({ name, state: 'applied' })),
      ...newer.map((name) => ({ name, state: 'newer' })),
      ...pending.map(({ name }) => ({ name, state: 'pending' })),
      ...unknown.map((name) => ({ name, state: 'unknown' })),
    ]
    const table = [
      { title: 'Migration', value: ({ name }: { name: string }) => name },
      { title: 'State', value: ({ state }: { state: string }) => state },
    ]
    await this.output.list(rows, { columns: table, record: (row) => row })
  }

  /** Looks again until the tables are current or the time is over; a database that is not there yet may still come. */
  async #check(label: string, waitMs: number): Promise<void> {
    const end = systemClock.monotonic() + waitMs
    for (;;) {
      const fault = await this.#fault(label)
      if (fault === null) return this.#current(label)
      if (systemClock.monotonic() >= end) throw fault
      await sleep(systemClock, Math.min(askAgainMs, end - systemClock.monotonic()))
    }
  }

  async #fault(label: string): Promise<unknown> {
    try {
      return schemaFault(await (await (await this.app()).migrations()).status(), label)
    } catch (error) {
      if (isTransient(error)) return error
      throw error
    }
  }

  async #current(label: string): Promise<void> {
    if (this.output.mode === 'json') return this.output.document({ database: label, current: true })
    this.say(`The schema of ${label} is current`)
  }

  #nothing({ applied }: Pick<MigrationStatus, 'applied'>, label: string): void {
    this.say(`Nothing to do: ${label} is at ${numberOf(applied.at(-1) ?? 'nothing')}`)
  }
}

/** "0000_jobs .. 0002_workers" */
function span(migrations: readonly Migration[]): string {
  const [first, last] = [migrations[0]?.name ?? '', migrations.at(-1)?.name ?? '']
  return first === last ? first : `${first} .. ${last}`
}

const numberOf = (name: string): string => name.split('_', 1)[0] as string
