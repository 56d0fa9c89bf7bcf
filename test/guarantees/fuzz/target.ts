import { type ErrorCode, isKhepriError } from '../../../src/core/errors.ts'
import type { Seeded } from '../simulation/seeded.ts'

/** What one kind of input is fed to. */
export interface Target {
  /** Makes an input and feeds it; answers what was wrong, with the input. The dice depend on the input's number alone. */
  readonly feed: (dice: Seeded, input: number) => Promise<readonly string[]>
  readonly close?: () => Promise<void>
}

/** The word for a target, on the command line of a replay. */
export type TargetName = 'job-files' | 'envelopes' | 'configs' | 'command-lines' | 'planted'

/** An input as a violation shows it. */
export const shownInput = (input: unknown): string => {
  const text = typeof input === 'string' ? JSON.stringify(input) : JSON.stringify(input, null, 1)
  return text.length > 1_000 ? `${text.slice(0, 1_000)}… (${text.length} characters)` : text
}

/** Says what is wrong with an error that an input led to: only khepri's own are shown to people, and only fitting ones. */
export function judgeError(error: unknown, codes: readonly ErrorCode[]): readonly string[] {
  if (!isKhepriError(error))
    return [`it threw ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`]
  return [
    ...(codes.includes(error.code) ? [] : [`it was refused with ${error.code}: ${error.message}`]),
    ...(error.message.trim() === '' ? ['its error has no message'] : []),
    ...(error.message.length > 5_000 ? [`its message has ${error.message.length} characters`] : []),
  ]
}

/** Control characters that a terminal obeys: none may come from an input. */
const obeyed = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/

/** How a command ended, in whatever process. */
export interface Shown {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** 70 is documented, as the code of a bug. */
const documented: ReadonlySet<number | null> = new Set([0, 1, 2, 3, 65, 66, 69, 73, 74, 75, 77, 78])

/** Says what is wrong with the way in which a command ended. */
export function judgeEnd({ code, stdout, stderr }: Shown, { mayTrace = false } = {}): readonly string[] {
  const both = `${stdout}\n${stderr}`
  return [
    ...(documented.has(code) ? [] : [`it exited ${code}`]),
    ...(/internal error/.test(stderr) ? ['it speaks of an internal error'] : []),
    ...(!mayTrace && /^\s+at .+:\d+:\d+/m.test(both) ? ['it shows a stack trace'] : []),
    ...(obeyed.test(both) ? [`it lets a control character through: ${JSON.stringify(obeyed.exec(both)?.[0])}`] : []),
    ...(code !== 0 && code !== 1 && stderr === '' ? [`it exited ${code} without a word`] : []),
  ]
}
