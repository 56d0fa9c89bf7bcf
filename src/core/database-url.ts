import { resolve } from 'node:path'
import { KhepriError } from './errors.ts'
import { oneLine, shown } from './text.ts'

/** Where the jobs live. `label` is how messages show it: as it was written, a password masked. */
export type DatabaseLocation =
  | { readonly kind: 'sqlite'; readonly path: string; readonly label: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly label: string }
  /** isSync: jobs run where they are dispatched, and nothing of them is kept. */
  | { readonly kind: 'memory'; readonly label: string; readonly isSync?: true }

/** A database that other threads and processes can open too. */
export type SharedDatabase = Exclude<DatabaseLocation, { readonly kind: 'memory' }>

const knownForms = 'sqlite:./khepri.db, postgres://user:password@host/database, memory: or sync:'

/**
 * Reads a database location.
 *
 * what: the setting it came from, for messages. folder: what a relative path of a file starts from.
 * Throws CONFIG_INVALID; no message ever repeats more of the text than its scheme, as a password may be anywhere in it.
 */
export function parseDatabase(value: unknown, what: string, folder: string): DatabaseLocation {
  if (typeof value !== 'string' || value.trim() === '') throw invalid(`${what} must be ${knownForms}`)
  const text = value.trim()
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase()
  if (scheme === 'sqlite') return sqlite(text, what, folder)
  if (scheme === 'postgres' || scheme === 'postgresql') return postgres(text, what)
  if (scheme === 'memory') return { kind: 'memory', label: 'memory:' }
  if (scheme === 'sync') return { kind: 'memory', label: 'sync:', isSync: true }
  if (scheme === undefined)
    throw invalid(
      `${what} must begin with a scheme: ${knownForms}`,
      `for an SQLite file write sqlite: in front of its path`,
    )
  throw invalid(`${what}: no store for "${scheme}:"`, `use ${knownForms}`)
}

function sqlite(text: string, what: string, folder: string): DatabaseLocation {
  const path = text.slice('sqlite:'.length).replace(/^\/\//, '')
  if (path === '' || path.includes('\0')) throw invalid(`${what} names no file`, 'write sqlite:./khepri.db')
  if (path === ':memory:')
    throw invalid(`${what}: an SQLite database in memory is not offered`, 'use memory: in tests, a file otherwise')
  if (path.includes('?')) throw invalid(`${what}: sqlite: takes a path and no parameters, got ${shown(text)}`)
  if (path.startsWith('~'))
    throw invalid(`${what}: "~" is known to shells only, got ${shown(text)}`, 'write the path in full')
  return { kind: 'sqlite', path: resolve(folder, path), label: oneLine(text) }
}

function postgres(text: string, what: string): DatabaseLocation {
  const url = URL.canParse(text) ? new URL(text) : null
  const isMisread = url !== null && (url.hash !== '' || url.search.includes('@'))
  if (url === null || isMisread)
    throw invalid(
      `${what} is not a URL that can be read`,
      'write postgres://user:password@host:5432/database, and special characters in the password as % codes (encodeURIComponent)',
    )
  // The server would take it for a setting of its own and answer with a riddle.
  if (url.searchParams.has('schema'))
    throw invalid(
      `${what}: "schema" is no parameter of a Postgres URL`,
      'remove it, and use the setting schema, or KHEPRI_SCHEMA',
    )
  return { kind: 'postgres', url: text, label: labelOf(url) }
}

/** Parameters are left out: a password may be among them. */
function labelOf(url: URL): string {
  const password = url.password === '' ? '' : ':***'
  const user = url.username === '' && password === '' ? '' : `${url.username}${password}@`
  return oneLine(`${url.protocol}//${user}${url.hostname || 'localhost'}:${url.port || '5432'}${url.pathname}`)
}

const invalid = (message: string, fix?: string): KhepriError =>
  new KhepriError('CONFIG_INVALID', message, fix === undefined ? {} : { fix })
