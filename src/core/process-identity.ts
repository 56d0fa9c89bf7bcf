import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** What tells this process from every other one, on this machine and on others. null: the system does not say. */
export interface ProcessIdentity {
  readonly host: string
  readonly bootId: string | null
  readonly pidNamespace: string | null
  readonly pid: number
  /** When the process started, in clock ticks since boot: a later process with the same number has another one. */
  readonly pidStart: string | null
}

export function processIdentity(): ProcessIdentity {
  return {
    host: hostname(),
    bootId: attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    pidNamespace: attempt(() => readlinkSync('/proc/self/ns/pid')),
    pid: process.pid,
    pidStart: attempt(() => startTicks(readFileSync('/proc/self/stat', 'utf8'))),
  }
}

/** What is known of another worker's process. unknown: on another machine, in another namespace, or not readable. */
export type Fate = 'alive' | 'gone' | 'rebooted' | 'unknown'

/** What a neighbour's row says about its process. */
export type ProcessTrace = Pick<ProcessIdentity, 'bootId' | 'pidNamespace' | 'pid' | 'pidStart'>

/**
 * Tells whether the process of a worker with our host name is still there.
 *
 * Only what the kernel of this very machine says counts: same boot, same pid namespace. A number that belongs to a
 * process with another start time belongs to somebody else, so its worker is gone; so is a zombie.
 */
export function fateOf(other: ProcessTrace, self: ProcessIdentity): Fate {
  if (other.bootId === null || self.bootId === null) return 'unknown'
  if (other.bootId !== self.bootId) return 'rebooted'
  if (other.pidNamespace === null || other.pidNamespace !== self.pidNamespace) return 'unknown'
  return fateOfPid(other.pid, other.pidStart)
}

function fateOfPid(pid: number, start: string | null): Fate {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'ENOENT' || code === 'ESRCH' ? 'gone' : 'unknown'
  }
  if (/^[ZX]/.test(afterName(stat))) return 'gone'
  const now = startTicks(stat)
  return start === null || now === null || now === start ? 'alive' : 'gone'
}

/** Field 22 of a Linux stat line; the second field, the program's name, may itself hold spaces and parentheses. */
export function startTicks(stat: string): string | null {
  return afterName(stat).split(' ')[19] ?? null
}

/** From the third field on: the process state and what follows. */
const afterName = (stat: string): string => stat.slice(stat.lastIndexOf(')') + 2)

function attempt(read: () => string | null): string | null {
  try {
    return read()
  } catch {
    return null
  }
}
