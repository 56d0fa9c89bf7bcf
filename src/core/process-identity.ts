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

/** Field 22 of a Linux stat line; the second field, the program's name, may itself hold spaces and parentheses. */
export function startTicks(stat: string): string | null {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
}

function attempt(read: () => string | null): string | null {
  try {
    return read()
  } catch {
    return null
  }
}
