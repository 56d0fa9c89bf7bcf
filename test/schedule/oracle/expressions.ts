import type { Seeded } from '../../guarantees/simulation/seeded.ts'
import type { Face } from './watched-clock.ts'

const months = ['JAN', 'feb', 'mar', 'Apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const weekdays = ['sun', 'mon', 'TUE', 'wed', 'thu', 'fri', 'Sat']

/** Makes a cron expression that is likely to have slots near what a clock shows, and to be struck by its changes. */
export function expressionNear(seeded: Seeded, face: Face): string {
  if (seeded.chance(0.03)) return seeded.pick(['@hourly', '@daily', '@midnight', '@weekly', '@monthly'])
  const date = new Date(face)
  return [
    minuteNear(seeded, date.getUTCMinutes()),
    hourNear(seeded, date.getUTCHours()),
    dayNear(seeded, date.getUTCDate()),
    monthNear(seeded, date.getUTCMonth() + 1),
    weekdayNear(seeded, date.getUTCDay()),
  ].join(' ')
}

function minuteNear(seeded: Seeded, minute: number): string {
  const any = (): number => (seeded.chance(0.3) ? minute : seeded.whole(0, 59))
  return seeded.pick<() => string>([
    () => '*',
    () => `*/${seeded.pick([2, 5, 7, 10, 15, 20, 30, 45, 60])}`,
    () => `${any()}`,
    () => `${any()}`,
    () => '0',
    () => `${any()},${any()},${any()}`,
    () => range(seeded, any(), 59),
  ])()
}

function hourNear(seeded: Seeded, hour: number): string {
  const next = (): number => (hour + seeded.whole(22, 26)) % 24
  const any = (): number => (seeded.chance(0.5) ? hour : seeded.chance(0.7) ? next() : seeded.whole(0, 23))
  return seeded.pick<() => string>([
    () => '*',
    () => `*/${seeded.pick([1, 2, 3, 5, 6, 12, 24])}`,
    () => `${any()}`,
    () => `${any()}`,
    () => `${any()},${any()}`,
    () => `*/${seeded.whole(2, 6)},${any()}`,
    () => range(seeded, any(), 23),
    () => `${hour}-${Math.min(23, hour + 1)}`,
  ])()
}

function dayNear(seeded: Seeded, day: number): string {
  const any = (): number =>
    seeded.chance(0.7) ? Math.min(31, Math.max(1, day + seeded.whole(-1, 1))) : seeded.whole(1, 31)
  if (seeded.chance(0.6)) return '*'
  return seeded.pick<() => string>([
    () => `*/${seeded.whole(2, 8)}`,
    () => `${any()}`,
    () => `${any()},${any()}`,
    () => range(seeded, any(), 31),
  ])()
}

function monthNear(seeded: Seeded, month: number): string {
  const any = (): number => (seeded.chance(0.8) ? month : seeded.whole(1, 12))
  if (seeded.chance(0.6)) return '*'
  return seeded.pick<() => string>([
    () => '*/2',
    () => `${any()}`,
    () => `${months[any() - 1]}`,
    () => range(seeded, any(), 12),
  ])()
}

function weekdayNear(seeded: Seeded, weekday: number): string {
  const any = (): number => (seeded.chance(0.6) ? weekday : seeded.whole(0, 6))
  if (seeded.chance(0.6)) return '*'
  return seeded.pick<() => string>([
    () => `*/${seeded.whole(2, 7)}`,
    () => `${any()}`,
    () => `${weekdays[any()]}`,
    () => 'mon-fri',
    () => 'fri-sun',
    () => '7',
    () => `${weekdays[any()]},${any()}`,
    () => range(seeded, any(), 7),
  ])()
}

function range(seeded: Seeded, first: number, most: number): string {
  const text = `${first}-${seeded.whole(first, most)}`
  return seeded.chance(0.3) ? `${text}/${seeded.whole(1, 4)}` : text
}
