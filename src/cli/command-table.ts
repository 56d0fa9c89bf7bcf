import { KhepriError } from '../core/errors.ts'
import type { CommandClass } from './base-command.ts'

type Load = () => Promise<{ readonly default: CommandClass }>

/**
 * Every command, in the order in which help lists them. A command's file is imported when it is called, so that
 * `khepri --version` does not pay for `khepri work`.
 */
export const commandTable: ReadonlyMap<string, Load> = new Map<string, Load>([
  ['init', () => import('../commands/init.ts')],
  ['make', () => import('../commands/make.ts')],
  ['migrate', () => import('../commands/migrate.ts')],
  ['dispatch', () => import('../commands/dispatch.ts')],
  ['work', () => import('../commands/work.ts')],
  ['run', () => import('../commands/run.ts')],
  ['list', () => import('../commands/list.ts')],
  ['show', () => import('../commands/show.ts')],
  ['failed', () => import('../commands/failed.ts')],
  ['retry', () => import('../commands/retry.ts')],
  ['flush', () => import('../commands/flush.ts')],
  ['prune', () => import('../commands/prune.ts')],
  ['cancel', () => import('../commands/cancel.ts')],
  ['pause', () => import('../commands/pause.ts')],
  ['resume', () => import('../commands/resume.ts')],
  ['schedule list', () => import('../commands/schedule/list.ts')],
  ['schedule run', () => import('../commands/schedule/run.ts')],
  ['schedule work', () => import('../commands/schedule/work.ts')],
  ['schedule test', () => import('../commands/schedule/test.ts')],
  ['schedule trigger', () => import('../commands/schedule/trigger.ts')],
  ['schedule pause', () => import('../commands/schedule/pause.ts')],
  ['schedule resume', () => import('../commands/schedule/resume.ts')],
  ['schedule simulate', () => import('../commands/schedule/simulate.ts')],
  ['schedule import', () => import('../commands/schedule/import.ts')],
  ['status', () => import('../commands/status.ts')],
  ['workers', () => import('../commands/workers.ts')],
  ['watch', () => import('../commands/watch.ts')],
  ['restart', () => import('../commands/restart.ts')],
  ['jobs', () => import('../commands/jobs.ts')],
  ['doctor', () => import('../commands/doctor.ts')],
  ['health', () => import('../commands/health.ts')],
  ['systemd', () => import('../commands/systemd.ts')],
  ['completion', () => import('../commands/completion.ts')],
  ['bench', () => import('../commands/bench.ts')],
])

/** Other names of commands; help lists a command by its own. */
export const aliases: ReadonlyMap<string, string> = new Map([['top', 'watch']])

/** Loads a command's class. */
export async function loadCommand(name: string): Promise<CommandClass | null> {
  const load = commandTable.get(aliases.get(name) ?? name)
  return load === undefined ? null : (await load()).default
}

/** The second words of a command that has two; none for others. */
export function secondWords(first: string): readonly string[] {
  return [...commandTable.keys()].flatMap((name) =>
    name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : [],
  )
}

/** The error for a word that is no command. */
export async function unknownCommand(word: string): Promise<KhepriError> {
  const { didYouMean } = await import('../core/suggest.ts')
  const second = secondWords(word)
  if (second.length > 0)
    return new KhepriError('USAGE', `${word} needs a second word: ${second.join(', ')}`, { fix: `khepri help ${word}` })
  const known = [...commandTable.keys(), 'help', 'version']
  return new KhepriError('USAGE', `unknown command ${JSON.stringify(word)}${didYouMean(word, known)}`, {
    fix: 'khepri help',
  })
}
