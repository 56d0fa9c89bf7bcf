import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { KhepriError } from '../../errors.ts'

/**
 * File systems on which SQLite's locks and shared memory cannot be trusted, by the magic number of Linux's statfs(2).
 * Write-ahead logs there have been seen to damage databases within minutes.
 */
const networkFileSystems: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0x01021997, '9p'],
  [0x65735546, 'FUSE or virtiofs'],
  [0x786f4256, 'a VirtualBox share'],
  [0x5346414f, 'AFS'],
  [0x00c36400, 'Ceph'],
  [0x73757245, 'Coda'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
])

/** Names the network file system that a statfs type belongs to, or answers null for one that keeps locks. */
export function networkFileSystem(type: number): string | null {
  return networkFileSystems.get(type >>> 0) ?? null
}

/** Refuses to put a database on a network file system. typeOf: answers the statfs type of a folder. */
export function refuseNetworkFileSystem(path: string, label: string, typeOf = statfsType): void {
  const kind = networkFileSystem(typeOf(dirname(path)))
  if (kind === null) return
  throw new KhepriError('CONFIG_INVALID', `${label} lies on ${kind}, where SQLite's locks cannot be trusted`, {
    fix: 'put the file on a local disk, or use Postgres',
  })
}

/** The numbers are Linux's own; elsewhere they mean something else, and nothing is refused. */
function statfsType(folder: string): number {
  return process.platform === 'linux' ? statfsSync(folder).type : 0
}

/**
 * Refuses a path that cannot be an open database: its folder is missing, it is a folder, or its rights forbid it.
 *
 * The driver says "cannot open" for all of these; the user needs to know which it is.
 */
export function refuseUnusable(path: string, label: string): void {
  const folder = dirname(path)
  if (!existsSync(folder))
    throw new KhepriError('STORE_UNREACHABLE', `the folder of ${label} does not exist`, { fix: `mkdir -p ${folder}` })
  const isThere = existsSync(path)
  if (isThere && statSync(path).isDirectory())
    throw new KhepriError('STORE_UNREACHABLE', `${label} is a folder`, { fix: 'name a file in the database setting' })
  if (isThere) requireAccess(path, label)
  else requireAccess(folder, `the folder of ${label}`)
}

function requireAccess(path: string, shown: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
  } catch (cause) {
    throw new KhepriError('STORE_DENIED', `${shown} cannot be read and written by this user`, {
      fix: `check the rights of ${path}`,
      cause,
    })
  }
}
