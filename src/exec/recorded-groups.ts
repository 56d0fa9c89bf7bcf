import { readFileSync, rmdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Held, WorkerId } from '../core/store/store.ts'
import { endGroup, type Group, isReplaced } from './process-group.ts'
import { entriesOf, stateFolders } from './state-folder.ts'

const ending = '.group'

/** The name under which everything about one run is kept: no second run of any job has it. */
export function nameOfRun(worker: WorkerId, { id, fence }: Held): string {
  return `${worker}-${id}-${fence}`
}

/** The file that says which group runs a job. */
export const recordFile = (run: string): string => run + ending

/** What stands in a record; the guard, a shell script, reads it too. */
export const recordText = ({ id, start }: Group): string => `${id} ${start ?? '-'}\n`

/** Tells whether a process that has this folder runs anything. */
export const holdsRecords = (folder: string): boolean => entriesOf(folder).some((file) => file.endsWith(ending))

/**
 * Ends, with SIGKILL, whatever the workers have left running on this host.
 *
 * Resolves when it is dead; never rejects. What belongs to another user's workers is not seen.
 */
export async function endGroupsOf(workers: readonly WorkerId[]): Promise<void> {
  const dead = new Set(workers.map(String))
  await Promise.all(stateFolders().map((folder) => endIn(folder, dead)))
}

async function endIn(folder: string, dead: ReadonlySet<string>): Promise<void> {
  const files = entriesOf(folder).filter((file) => dead.has(file.split('-', 1)[0] ?? ''))
  if (files.length === 0) return
  const paths = files.map((file) => join(folder, file))
  await Promise.all(paths.filter((path) => path.endsWith(ending)).map(end))
  clear(folder, paths)
}

async function end(record: string): Promise<void> {
  const group = groupIn(record)
  if (group !== null && !isReplaced(group)) await endGroup(group.id, 0)
}

/** null where the record is gone: whoever took it away has ended the group. */
function groupIn(path: string): Group | null {
  try {
    const [id, start] = readFileSync(path, 'utf8').trim().split(' ')
    return Number(id) > 1 ? { id: Number(id), start: start === '-' ? null : (start ?? null) } : null
  } catch {
    return null
  }
}

/** The folder goes with its last file. */
function clear(folder: string, paths: readonly string[]): void {
  try {
    for (const path of paths) rmSync(path, { force: true, recursive: true })
    rmdirSync(folder)
  } catch {
    // It holds more, or somebody else was faster.
  }
}
