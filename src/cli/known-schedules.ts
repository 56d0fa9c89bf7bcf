import type { Khepri } from '../app.ts'
import { KhepriError } from '../core/errors.ts'
import { didYouMean } from '../core/suggest.ts'
import { checkName } from '../core/terms.ts'
import type { Schedule } from '../schedule/schedule.ts'
import { Args, asUsage } from './flags.ts'

/** The name of a schedule as an argument. */
export const scheduleArgument = Args.custom<string>({
  description: 'the name of a schedule',
  ignoreStdin: true,
  parse: async (input) => asUsage(() => checkName(input, 'NAME')),
})

/** The schedule of that name in the configuration. Throws NOT_FOUND. */
export async function scheduleNamed(app: Khepri, name: string): Promise<Schedule> {
  const schedules = await app.schedules()
  const found = schedules.find((schedule) => schedule.name === name)
  if (found === undefined)
    throw noSchedule(
      name,
      schedules.map((schedule) => schedule.name),
    )
  return found
}

/** The error for a name that no schedule has. */
function noSchedule(name: string, known: readonly string[]): KhepriError {
  return new KhepriError('NOT_FOUND', `no schedule ${JSON.stringify(name)}${didYouMean(name, known)}`, {
    fix: 'khepri schedule list',
  })
}

/** The name, if the configuration or the store knows such a schedule. Throws NOT_FOUND. */
export async function knownSchedule(app: Khepri, name: string): Promise<string> {
  const [schedules, sight] = [await app.schedules(), await (await app.scheduleStore()).look()]
  const known = [...schedules, ...sight.schedules].map((schedule) => schedule.name)
  if (!known.includes(name)) throw noSchedule(name, known)
  return name
}
