import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { StoreKind } from '../../support/installation.ts'

export type SqliteFault = 'kill before' | 'kill after' | 'BUSY' | 'FULL' | 'IOERR' | 'IOERR after' | 'READONLY'

export type PostgresFault =
  | 'kill before'
  | 'kill after'
  | '40001'
  | '40P01'
  | '57P01'
  | 'reset before'
  | 'reset after'
  | 'silence before'
  | 'silence after'

/**
 * What befalls a statement. before: it never reaches the database; after: it has happened and nobody hears of it.
 *
 * kill: SIGKILL to the process. reset: its connection breaks. silence: no answer comes, and the connection stays open.
 */
export type Fault = SqliteFault | PostgresFault

/** Every fault of a store, those that take their full ten seconds last. */
export const faultsOf: {
  readonly sqlite: readonly SqliteFault[]
  readonly postgres: readonly PostgresFault[]
} = {
  sqlite: ['kill before', 'kill after', 'BUSY', 'FULL', 'IOERR', 'IOERR after', 'READONLY'],
  postgres: [
    'kill before',
    'kill after',
    '40001',
    '40P01',
    '57P01',
    'reset before',
    'reset after',
    'silence before',
    'silence after',
  ],
}

/** One fault at one statement. */
export interface Plan {
  readonly fault: Fault
  /** Statements are counted from 1, over all connections of the process. */
  readonly at: number
}

/** A statement as a seam saw it. */
export interface Struck {
  readonly text: string
  /**
   * greeting: the first of a session. open: inside a transaction, which a broken connection undoes. commit: of a
   * transaction that may write. read: changes nothing by itself. alone: a write that is its own transaction.
   */
  readonly role: 'greeting' | 'open' | 'commit' | 'read' | 'alone'
}

export const isKill = (fault: Fault): boolean => fault.startsWith('kill')

export const isSilence = (fault: Fault): boolean => fault.startsWith('silence')

/** One place in the programme: what a violation names, and what replays it. */
export interface Place extends Plan {
  readonly store: StoreKind
  readonly operation: string
}

/** The program that tries one place again. */
export const replayProgram = fileURLToPath(new URL('./replay.ts', import.meta.url))

/** The command that tries this place again. */
export function replayOf({ store, operation, fault, at }: Place): string {
  return `node ${relative(process.cwd(), replayProgram)} ${store} "${operation}" "${fault}" ${at}`
}
