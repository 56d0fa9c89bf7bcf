import type { ScheduleInput } from '../core/schedules-setting.ts'
import type { Crontab, CrontabEntry } from './crontab.ts'

/** The entries of a crontab as schedules of a configuration. zone: of the entries that name none. */
export function schedulesFrom({ entries }: Crontab, zone: string): Readonly<Record<string, ScheduleInput>> {
  const schedules = new Map<string, ScheduleInput>()
  for (const entry of entries) schedules.set(freeName(nameOf(entry.command), schedules), scheduleOf(entry, zone))
  return Object.fromEntries(schedules)
}

function scheduleOf(entry: CrontabEntry, zone: string): ScheduleInput {
  const { SHELL: shell = '/bin/sh', MAILTO: _, ...environment } = entry.environment
  return {
    ...(entry.description !== null && { description: entry.description }),
    cron: entry.cron,
    zone: entry.zone ?? zone,
    // cron starts the next run whether or not the one before has ended.
    overlap: 'allow',
    // cron runs nothing of what it has missed.
    misfire: 'skip',
    exec: shell,
    args: ['-c', commandOf(entry)],
    ...(Object.keys(environment).length > 0 && { env: environment }),
  }
}

/** What the command is to read comes on its standard input, in place of the payload. */
function commandOf({ command, stdin }: CrontabEntry): string {
  return stdin === null ? command : `printf %s ${quoted(stdin)} | { ${command}\n}`
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** The program that it runs, as far as that can be told: of "cd /srv && ./bin/report.sh -v" it is "report". */
function nameOf(command: string): string {
  const last = command.split(/&&|;|\|\|?/).findLast((part) => part.trim() !== '') ?? ''
  const first = command.includes('&&') ? last : command
  const program =
    first
      .trim()
      .split(/\s+/)
      .find((word) => !/^[A-Za-z_]\w*=/.test(word)) ?? ''
  const base = program.slice(program.lastIndexOf('/') + 1).replace(/\.[^.]+$/, '')
  return base.replaceAll(/[^\w-]+/g, '-').replace(/^-+|-+$/g, '') || 'job'
}

function freeName(name: string, taken: ReadonlyMap<string, unknown>): string {
  for (let count = 1; ; count++) {
    const candidate = count === 1 ? name : `${name}-${count}`
    if (!taken.has(candidate)) return candidate
  }
}
