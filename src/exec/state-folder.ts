import { lstatSync, mkdirSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KhepriError } from '../core/errors.ts'
import { processIdentity } from '../core/process-identity.ts'

/**
 * Where a user's processes keep what they run, for each other to find.
 *
 * The path follows from the user, the boot and the pid namespace alone, so that every worker of a host finds those of its
 * neighbours, whatever their environment says. Process numbers of another boot or namespace mean nothing here.
 */
function place(): string {
  const { bootId, pidNamespace } = processIdentity()
  return join(userFolder(), `${bootId ?? 'boot'}-${pidNamespace?.replace(/\D/g, '') ?? 'host'}`)
}

const userFolder = (): string =>
  join(process.platform === 'win32' ? tmpdir() : '/tmp', `khepri-${process.geteuid?.() ?? 'user'}`)

let found: string | undefined

/** The folders of all processes of this user. None where somebody else could have put something there. */
export function stateFolders(): readonly string[] {
  found ??= place()
  const folder = found
  return isPrivate(userFolder()) ? entriesOf(folder).map((name) => join(folder, name)) : []
}

let own: string | undefined

/** Makes the private folder of this process, if it is not there; the result is its path. Throws CONFIG_UNSAFE. */
export function ownStateFolder(): string {
  own ??= join(place(), ownName())
  mkdirSync(own, { recursive: true, mode: 0o700 })
  const folder = userFolder()
  if (isPrivate(folder)) return own
  throw new KhepriError('CONFIG_UNSAFE', `${folder} is not a folder of this user's alone`, { fix: `remove ${folder}` })
}

/** The names in a folder; none where it is not there. */
export function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function ownName(): string {
  const { pid, pidStart } = processIdentity()
  return `${pid}-${pidStart ?? Math.round(performance.timeOrigin)}`
}

/** Everybody may make folders in /tmp, also one with our name. */
function isPrivate(folder: string): boolean {
  const stat = lstatSync(folder, { throwIfNoEntry: false })
  if (stat?.isDirectory() !== true) return false
  const user = process.geteuid?.()
  return user === undefined || (stat.uid === user && (stat.mode & 0o077) === 0)
}
