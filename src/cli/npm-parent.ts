import { readFileSync } from 'node:fs'
import type { Clock, Timer } from '../core/clock.ts'

/** How often a worker that npm started looks for its parent. */
const lookMs = 1_000

/** Who a process descends from; tests pass their own. */
export interface Ancestry {
  /** The parent of this process, now. */
  parent(): number
  /** The parent of another process and the name of its program; null where neither can be told. */
  of(pid: number): { readonly parent: number; readonly program: string } | null
}

/** Tells whether npm, npx or a relative of theirs started this process. */
export function isStartedByNpm(env: NodeJS.ProcessEnv): boolean {
  return env.npm_lifecycle_event !== undefined || env.npm_command !== undefined
}

/**
 * Calls `onGone` once when the npm that started this process is gone; the result ends the watch.
 *
 * npm does not pass SIGTERM on, so its death is the only sign. It is the parent, or, where npm's shell did not replace
 * itself, the parent of that shell.
 */
export function watchNpm(clock: Clock, onGone: () => void, ancestry: Ancestry = system): () => void {
  const parent = ancestry.parent()
  const shell = ancestry.of(parent)
  const npm = shell !== null && shells.test(shell.program) ? shell.parent : null
  const isGone = (): boolean => ancestry.parent() !== parent || (npm !== null && ancestry.of(parent)?.parent !== npm)
  let timer: Timer
  const look = (): void => {
    if (isGone()) onGone()
    else timer = clock.after(lookMs, look)
  }
  timer = clock.after(lookMs, look)
  return () => timer.cancel()
}

const shells = /^(?:ba|da|a|z|k)?sh$|^busybox$/

const system: Ancestry = {
  parent: () => process.ppid,
  of(pid) {
    try {
      // "4121 (sh) S 4109 …"; the name may itself hold parentheses.
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      const end = stat.lastIndexOf(')')
      return { program: stat.slice(stat.indexOf('(') + 1, end), parent: Number(stat.slice(end + 2).split(' ')[1]) }
    } catch {
      return null
    }
  },
}
