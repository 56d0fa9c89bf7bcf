import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { type Ended, khepri, Live, type StartOptions } from './live.ts'
import { TempProject } from './temp-project.ts'

type RunOptions = Omit<StartOptions, 'cwd'>

/** A user's project, with the built command line to run in it. */
export class KhepriProject extends TempProject {
  constructor(files: Readonly<Record<string, string>> = {}) {
    super({ 'package.json': '{}', ...files })
  }

  /** Runs khepri to its end. */
  khepri(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
    return khepri(args, { cwd: this.path, ...options })
  }

  /** Starts a khepri that is watched, and killed at the end of the block that holds it. */
  start(args: readonly string[], options: RunOptions = {}): Live {
    return Live.start(args, { cwd: this.path, ...options })
  }

  /** How many live jobs its SQLite file holds. */
  count(): number {
    const db = new Database(join(this.path, 'khepri.db'), { readonly: true })
    try {
      return db.prepare<[], { readonly count: number }>('select count(*) as count from jobs').get()?.count ?? 0
    } finally {
      db.close()
    }
  }
}

/** Migrated once for each test file, and copied: a process less in every test. */
let template: Promise<KhepriProject> | null = null

/** A project whose tables exist. */
export async function migratedProject(files: Readonly<Record<string, string>> = {}): Promise<KhepriProject> {
  template ??= migrate()
  const made = new KhepriProject(files)
  copyFileSync(join((await template).path, 'khepri.db'), join(made.path, 'khepri.db'))
  return made
}

async function migrate(): Promise<KhepriProject> {
  const project = new KhepriProject()
  process.once('exit', () => project[Symbol.dispose]())
  const { code, stderr } = await project.khepri(['migrate'])
  if (code !== 0 || existsSync(join(project.path, 'khepri.db-wal')))
    throw new Error(`migrate ended with ${code}: ${stderr}`)
  return project
}
