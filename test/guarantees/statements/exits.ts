import type { StoreKind } from '../../support/installation.ts'
import type { Fault, Struck } from './faults.ts'
import type { Operation } from './operations.ts'

/** One fault, and the statement that it befell. */
export interface Strike {
  readonly fault: Fault
  readonly struck: Struck
}

const exit = { done: 0, unreachable: 69, full: 74, unknown: 75, denied: 77 } as const

/**
 * The exit codes that the manual allows, for every fault that leaves the process alive.
 *
 * What a safe retry cures is cured: 0, without a word. A worker that has joined waits for the store and ends well.
 */
export function exitsFor(store: StoreKind, operation: Operation, strike: Strike): readonly number[] {
  const code = store === 'sqlite' ? sqliteExit(operation, strike) : postgresExit(operation, strike)
  return operation.kind === 'worker' ? [exit.done, code] : [code]
}

function sqliteExit(operation: Operation, { fault, struck }: Strike): number {
  switch (fault) {
    case 'BUSY':
      return exit.done
    case 'FULL':
      return exit.full
    case 'READONLY':
      return exit.denied
    default:
      if (struck.role !== 'commit') return exit.unreachable
      // A job with a unique key cannot be doubled, so the dispatch is repeated.
      return operation.name.startsWith('dispatch') && operation.kind === 'repeatable' ? exit.done : exit.unknown
  }
}

function postgresExit({ kind }: Operation, { fault, struck }: Strike): number {
  if (fault === '40001' || fault === '40P01') return exit.done
  const mayBeWritten = struck.role === 'commit' || struck.role === 'alone'
  if (mayBeWritten && kind === 'command') return exit.unknown
  // A silent server is not asked a second time: that would double the wait.
  if (fault.startsWith('silence')) return exit.unreachable
  return exit.done
}

/** What the message of an error names, by fault. */
export function faultInText(fault: Fault): RegExp {
  const texts: Partial<Record<Fault, RegExp>> = {
    FULL: /is full \(SQLITE_FULL\)/,
    READONLY: /cannot be written \(SQLITE_READONLY\)/,
    IOERR: /\(SQLITE_IOERR_WRITE\)/,
    'IOERR after': /\(SQLITE_IOERR_FSYNC\)/,
    // The driver does not always pass on what a server says with its last breath.
    '57P01': /the server is shutting down|the connection was closed/,
    'reset before': /the connection was (reset|closed)/,
    'reset after': /the connection was (reset|closed)/,
    'silence before': /no answer within (10|60) s/,
    'silence after': /no answer within (10|60) s/,
  }
  return texts[fault] ?? /^$/
}
