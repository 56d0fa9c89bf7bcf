import { closeSync, constants, existsSync, fstatSync, openSync, readSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunContext } from '../core/handler.ts'
import type { Group } from './process-group.ts'
import { nameOfRun, recordFile, recordText } from './recorded-groups.ts'
import { ownStateFolder } from './state-folder.ts'

/** The largest result file that is read. */
export const maxResultBytes = 64 * 1024

const mode = 0o600

/** The private files of one run, in the folder of this process. */
export class RunFiles {
  readonly folder: string
  /** What KHEPRI_JOB_RESULT names. */
  readonly result: string
  readonly #run: string

  constructor(context: RunContext) {
    this.folder = ownStateFolder()
    this.#run = join(this.folder, nameOfRun(context.worker, context))
    this.result = `${this.#run}.result`
    writeFileSync(this.result, '', { mode })
  }

  /**
   * A descriptor from which the payload can be read; the caller closes it.
   *
   * A file without a name rather than a pipe: a program may open /dev/stdin, seek in it, or not read it at all.
   */
  openPayload(text: string): number {
    const path = `${this.#run}.payload`
    writeFileSync(path, text, { mode })
    const descriptor = openSync(path, 'r')
    rmSync(path)
    return descriptor
  }

  record(group: Group): void {
    writeFileSync(recordFile(this.#run), recordText(group), { mode })
  }

  /** The file that the gate makes where it cannot start the command. */
  get isUnstarted(): boolean {
    return existsSync(`${this.result}.unstarted`)
  }

  /** What the run has written into its result file; null where that is no file, cannot be read or is too large. */
  readResult(): Buffer | null {
    let descriptor: number
    try {
      // Neither through a link into somebody else's file nor waiting for the writer of a pipe.
      descriptor = openSync(this.result, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ENOENT' ? Buffer.alloc(0) : null
    }
    try {
      const stat = fstatSync(descriptor)
      if (!stat.isFile() || stat.size > maxResultBytes) return null
      const bytes = Buffer.alloc(stat.size)
      return bytes.subarray(0, readSync(descriptor, bytes))
    } finally {
      closeSync(descriptor)
    }
  }

  remove(): void {
    for (const file of [recordFile(this.#run), this.result, `${this.result}.unstarted`])
      rmSync(file, { force: true, recursive: true })
  }
}
