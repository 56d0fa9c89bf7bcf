import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { KhepriError } from './errors.ts'

interface Manifest {
  readonly name: string
  readonly version: string
}

interface Package {
  readonly root: string
  readonly version: string
}

let found: Package | undefined

/** The folder of khepri's own package.json; found from src/ and from dist/ alike. */
export function packageRoot(): string {
  return thisPackage().root
}

/** The version of this khepri, as in its package.json. */
export function version(): string {
  return thisPackage().version
}

function thisPackage(): Package {
  found ??= packageAbove(dirname(fileURLToPath(import.meta.url)))
  return found
}

/** Walks up to khepri's own manifest, past any that belongs to somebody else. */
function packageAbove(folder: string): Package {
  const manifest = manifestIn(folder)
  if (manifest?.name === 'khepri') return { root: folder, version: manifest.version }
  if (dirname(folder) === folder) throw new KhepriError('BUG', 'no package.json of khepri lies above its code')
  return packageAbove(dirname(folder))
}

function manifestIn(folder: string): Manifest | null {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
  } catch {
    return null
  }
}
