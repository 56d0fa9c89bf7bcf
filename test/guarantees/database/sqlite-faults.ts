import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import Database from 'better-sqlite3'
import type { Fault } from './shift.ts'

/** How long each fault lasts, milliseconds. */
export interface SqliteSpans {
  readonly lockedMs: number
  readonly fullMs: number
  readonly readOnlyMs: number
}

/** Promised: work goes on within ten seconds of the database. */
const resumeMs = 10_000

/** Room for the jobs of a campaign. */
const diskMegabytes = 64

/** Where an SQLite file lies: on a small disk of its own, where the system lets us have one. */
export class SqlitePlace implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'khepri-disk-'))
  readonly #switch = mkdtempSync(join(tmpdir(), 'khepri-switch-'))
  /** Why it has no disk of its own; null where it has one. */
  readonly noDisk: string | null = mount(this.#folder)

  get file(): string {
    return join(this.#folder, 'khepri.db')
  }

  get database(): string {
    return `sqlite:${this.file}`
  }

  /** While this file exists, every process of the campaign finds the database read-only. */
  get readOnlySwitch(): string {
    return join(this.#switch, 'read-only')
  }

  /** Lets every process obey the switch. */
  get env(): Readonly<Record<string, string>> {
    const seam = join(import.meta.dirname, 'read-only-process.ts')
    return { NODE_OPTIONS: `--import=${seam}`, TEST_READ_ONLY_SWITCH: this.readOnlySwitch }
  }

  /** Takes the last byte of the disk; the result gives it back. */
  fill(): () => void {
    const filler = join(this.#folder, 'filler')
    const { bavail, bsize } = statfsSync(this.#folder)
    writeFileSync(filler, '')
    for (let size = bavail * bsize; size >= 1_024; size = Math.floor(size / 2)) appendOrNothing(filler, size)
    return () => rmSync(filler)
  }

  [Symbol.dispose](): void {
    if (this.noDisk === null) execFileSync('umount', ['-l', this.#folder])
    for (const folder of [this.#folder, this.#switch]) rmSync(folder, { recursive: true, force: true })
  }
}

function appendOrNothing(file: string, size: number): void {
  try {
    writeFileSync(file, Buffer.alloc(size), { flag: 'a' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}

function mount(folder: string): string | null {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskMegabytes}m`, 'khepri-test', folder], { stdio: 'pipe' })
    return null
  } catch {
    return 'a disk can be made here by nobody but root, or not at all'
  }
}

/** What befalls an SQLite file that workers and clients use. */
export function sqliteFaults(place: SqlitePlace, spans: SqliteSpans): readonly Fault[] {
  return [
    locked(place, spans.lockedMs),
    ...(place.noDisk === null ? [full(place, spans.fullMs)] : []),
    readOnly(place, spans.readOnlyMs),
  ]
}

/** As a backup or a forgotten shell does it. */
function locked({ file }: SqlitePlace, ms: number): Fault {
  const strike = async (): Promise<void> => {
    const db = new Database(file, { timeout: 10_000 })
    try {
      db.exec('begin exclusive')
      await wait(ms)
    } finally {
      db.close()
    }
  }
  return { name: `${ms / 1_000} s in which another process holds the lock`, strike, ms, outages: 1, resumeMs }
}

function full(place: SqlitePlace, ms: number): Fault {
  const strike = async (): Promise<void> => {
    const empty = place.fill()
    await wait(ms)
    empty()
  }
  return { name: `${ms / 1_000} s with a full disk`, strike, ms, outages: 1, resumeMs }
}

function readOnly({ readOnlySwitch }: SqlitePlace, ms: number): Fault {
  const strike = async (): Promise<void> => {
    writeFileSync(readOnlySwitch, '')
    await wait(ms)
    rmSync(readOnlySwitch)
  }
  return { name: `${ms / 1_000} s in which the file is read-only`, strike, ms, outages: 1, resumeMs }
}
