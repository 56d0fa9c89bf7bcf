import { KhepriError } from './errors.ts'
import { shown } from './text.ts'

const unitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/** A duration as users write it: "250ms", "30s", "5m", "2h", "7d", "1w"; a bare number is seconds. */
export type DurationInput = string | number

/**
 * Reads a duration; the result is whole milliseconds.
 *
 * what: the thing being read, for the message. Throws DATA_INVALID for anything else: negative, NaN, infinite, no unit
 * in a text, or beyond `maxMs`.
 */
export function parseDuration(input: unknown, what: string, maxMs: number): number {
  const ms = toMs(input)
  if (ms === null)
    throw new KhepriError(
      'DATA_INVALID',
      `${what} must be a duration such as "30s", "5m" or "2h" (a bare number is seconds), got ${shown(input)}`,
    )
  if (ms > maxMs)
    throw new KhepriError('DATA_INVALID', `${what} must be at most ${formatDuration(maxMs)}, got ${shown(input)}`)
  return ms
}

function toMs(input: unknown): number | null {
  if (typeof input === 'number') return Number.isFinite(input) && input >= 0 ? Math.round(input * 1_000) : null
  if (typeof input !== 'string') return null
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)?$/.exec(input.trim())
  if (!match) return null
  return Math.round(Number(match[1]) * (unitsMs[match[2] ?? 's'] as number))
}

/** Writes a duration for people, two units at most: "83ms", "1.21s", "10m", "1h 30m", "3d". */
export function formatDuration(exactMs: number): string {
  // Rounded before the unit is chosen, or 59.999 s would be shown as 60 s.
  const ms = exactMs < 1_000 ? Math.round(exactMs) : Math.round(exactMs / 10) * 10
  if (ms < 1_000) return `${ms}ms`
  if (ms < 60_000) return `${ms / 1_000}s`
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1_000],
  ] as const
  const first = units.findIndex(([, size]) => ms >= size)
  const [unit, size] = units[first] as (typeof units)[number]
  const next = units[first + 1]
  const rest = next === undefined ? 0 : Math.floor((ms % size) / next[1])
  return rest === 0 ? `${Math.floor(ms / size)}${unit}` : `${Math.floor(ms / size)}${unit} ${rest}${next?.[0]}`
}
