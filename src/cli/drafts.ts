import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { KhepriError } from '../core/errors.ts'

/** A file that a command writes for the user. */
export interface Draft {
  readonly path: string
  readonly text: string
  /** What is said of it beside its path. */
  readonly remark: string
  /** Everybody who may read it may run it. */
  readonly isExecutable?: boolean
}

/** Throws FILE_EXISTS for the first that is there. force: the command that writes over it. */
export function refuseExisting(drafts: readonly Draft[], force: string): void {
  const existing = drafts.find(({ path }) => existsSync(path))
  if (existing !== undefined)
    throw new KhepriError('FILE_EXISTS', `${existing.path} exists already`, { fix: `${force} writes over it` })
}

/** Writes a file, and the folders that it needs. Throws IO. */
export function writeDraft({ path, text, isExecutable = false }: Draft): void {
  try {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    if (isExecutable) chmodSync(path, 0o755)
  } catch (error) {
    throw new KhepriError('IO', `cannot write ${path}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`, {
      cause: error,
    })
  }
}
