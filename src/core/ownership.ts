import { type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { KhepriError } from './errors.ts'

const writableByAll = 0o002
const sticky = 0o1000

/**
 * Refuses code that somebody else could have put there: a file or folder that belongs to a stranger or that all may write.
 *
 * The own user and root are no strangers. A folder with the sticky bit, such as /tmp, may be writable. shown: as messages name it.
 * Throws CONFIG_UNSAFE. Does nothing where the system has no owners (Windows).
 */
export function requireTrusted(path: string, shown: string): void {
  const user = process.geteuid?.()
  if (user === undefined) return
  const { uid, mode } = statOf(path)
  if (uid !== user && uid !== 0)
    throw unsafe(`${shown} belongs to another user (uid ${uid}, you are ${user})`, `chown ${user} ${shown}`)
  if ((mode & writableByAll) !== 0 && (mode & sticky) === 0)
    throw unsafe(`${shown} is writable by all`, `chmod o-w ${shown}`)
}

/** The same for a file and for the folder that it lies in, as who may write there may replace the file. */
export function requireTrustedFile(path: string, shown: string): void {
  requireTrusted(path, shown)
  requireTrusted(dirname(path), dirname(shown))
}

function statOf(path: string): Pick<Stats, 'uid' | 'mode'> {
  try {
    return statSync(path)
  } catch {
    // Whoever reads it next says better what is wrong with it.
    return { uid: 0, mode: 0 }
  }
}

const unsafe = (message: string, fix: string): KhepriError => new KhepriError('CONFIG_UNSAFE', message, { fix })
