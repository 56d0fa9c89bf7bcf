import { readFileSync } from 'node:fs'
import { sleep, systemClock } from '../core/clock.ts'
import { startTicks } from '../core/process-identity.ts'
import { entriesOf } from './state-folder.ts'

/** A process group by the process that leads it. */
export interface Group {
  readonly id: number
  /** When its leader started, in clock ticks since boot; null where the system does not say. */
  readonly start: string | null
}

/** How long a group is waited for after SIGKILL: it does nothing any more, even if a disk keeps it from vanishing. */
const killMs = 2_000

/** The time between two looks at a group: short at first, as most end at once. */
const firstStepMs = 5
const longestStepMs = 50

/** Describes the group that a process leads. */
export function groupOf(leader: number): Group {
  return { id: leader, start: startOf(leader) }
}

/**
 * Ends a group: SIGTERM, and after the grace SIGKILL. With a grace of 0 it is SIGKILL at once.
 *
 * Resolves when nothing of it lives any more, or when SIGKILL has had time to work. Never rejects.
 */
export async function endGroup(id: number, graceMs: number): Promise<void> {
  if (graceMs > 0) {
    signal(id, 'SIGTERM')
    // One that was stopped would hear of it only when somebody lets it go on.
    signal(id, 'SIGCONT')
    if (await isGoneWithin(id, graceMs)) return
  }
  signal(id, 'SIGKILL')
  await isGoneWithin(id, killMs)
}

/** Tells whether a group's number belongs to somebody else by now, so that it must not be touched. */
export function isReplaced({ id, start }: Group): boolean {
  const now = startOf(id)
  return start !== null && now !== null && now !== start
}

/** Resolves true as soon as nothing of a group lives, false when that has not come about in time. */
export async function isGoneWithin(id: number, ms: number): Promise<boolean> {
  const deadline = systemClock.monotonic() + ms
  for (let stepMs = firstStepMs; ; stepMs = Math.min(stepMs * 2, longestStepMs)) {
    if (!isAlive(id)) return true
    if (systemClock.monotonic() >= deadline) return false
    await sleep(systemClock, stepMs)
  }
}

/** The dead whom nobody has collected answer to signals too, so where the system can list them it is asked. */
function isAlive(id: number): boolean {
  if (!signal(id, 0)) return false
  const states = statesIn(id)
  return states === null || states.some((state) => state !== 'Z' && state !== 'X')
}

/** False: no process of the group is left. */
function signal(id: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-id, signal)
  } catch (error) {
    // What runs as another user is there, though it does not listen to us.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** The states of a group's processes; null where the system does not list them. */
function statesIn(group: number): readonly string[] | null {
  const pids = entriesOf('/proc').filter((name) => /^\d+$/.test(name))
  if (pids.length === 0) return null
  return pids.flatMap((pid) => {
    const [state = '', , groupOfPid] =
      statOf(pid)
        ?.replace(/^.*\) /s, '')
        .split(' ', 3) ?? []
    return Number(groupOfPid) === group ? [state] : []
  })
}

function startOf(pid: number): string | null {
  const stat = statOf(pid)
  return stat === null ? null : startTicks(stat)
}

function statOf(pid: number | string): string | null {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return null
  }
}
