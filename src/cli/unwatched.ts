import type { Khepri } from '../app.ts'
import { defaults } from '../core/defaults.ts'
import { formatDuration } from '../core/duration.ts'
import { count } from './words.ts'

/** What to do where nobody looks after schedules. */
export const watchFix = 'khepri work --schedule, or khepri schedule work, or khepri schedule run once a minute'

/** Says that nobody looks after the schedules of the configuration; null where somebody does, and where there are none. */
export async function unwatched(app: Khepri): Promise<string | null> {
  const enabled = (await app.schedules()).filter((schedule) => schedule.enabled)
  if (enabled.length === 0) return null
  const { now, lastTick } = await (await app.scheduleStore()).look()
  if (lastTick !== null && now - lastTick.at < defaults.unwatchedMs) return null
  const since = lastTick === null ? '' : ` since ${formatDuration(now - lastTick.at)} ago`
  return `nobody looks after the ${count(enabled.length, 'schedule')} of this configuration${since}`
}
