import { formatDuration } from '../core/duration.ts'

/** How long something took: "2.4s" from a second to a minute, otherwise as durations are written everywhere. */
export function elapsed(ms: number): string {
  return ms >= 1_000 && ms < 60_000 ? `${(ms / 1_000).toFixed(1)}s` : formatDuration(ms)
}
