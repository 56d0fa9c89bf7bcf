import { spawnSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { expect } from 'vitest'
import type { Ended } from './live.ts'
import { repository, type TempProject } from './temp-project.ts'

/** How a command refuses: its exit code, and how its message begins. */
export interface Refusal {
  readonly code: number
  /** What stands behind "error: ", from the first character on. */
  readonly says: string | RegExp
}

/** Holds a command to the manners of a refusal: the code, one error and nothing before it, no result, no stack trace. */
export function expectRefusal({ code, stdout, stderr }: Ended, refusal: Refusal): void {
  const [, message = ''] = /^error: ([\s\S]*)$/.exec(stderr) ?? []
  if (typeof refusal.says === 'string') expect(message.slice(0, refusal.says.length) || stderr).toBe(refusal.says)
  else expect(message || stderr).toMatch(refusal.says)
  expect(code, stderr).toBe(refusal.code)
  expect(stdout).toBe('')
  expect(stderr.match(/^error: /gm)).toHaveLength(1)
  expect(stderr).not.toMatch(/^\s+at .*\d+:\d+/m)
  expect(stderr.length).toBeLessThan(2_000)
}

/** Holds a command to one line of JSON on stderr, with the code that is also its exit code. */
export function expectJsonRefusal(
  { code, stdout, stderr }: Ended,
  error: { readonly code: string; readonly exit: number },
): void {
  expect(stderr).toMatch(/^[^\n]+\n$/)
  expect(JSON.parse(stderr)).toEqual({
    error: { ...error, message: expect.stringMatching(/./), fix: expect.toSatisfy(isTextOrNull) },
  })
  expect(stdout).toBe('')
  expect(code).toBe(error.exit)
}

const isTextOrNull = (value: unknown): boolean => value === null || typeof value === 'string'

/** The ids of "nobody" nearly everywhere. */
const stranger = 65_534

const asStranger = ['setpriv', `--reuid=${stranger}`, `--regid=${stranger}`, '--clear-groups']

/** Runs khepri, "$@", as a user for whom the rights of files hold; for root they do not. */
export const withoutRights = process.getuid?.() === 0 ? `exec ${asStranger.join(' ')} "$@"` : 'exec "$@"'

/** Whether a process can be that user here: root needs setpriv, and a clone that others may read. */
export const canBeWithoutRights = process.getuid?.() !== 0 || canRunAsStranger()

function canRunAsStranger(): boolean {
  const [command = '', ...words] = asStranger
  const look = `require('node:fs').accessSync(${JSON.stringify(`${repository}dist/cli.js`)})`
  return spawnSync(command, [...words, process.execPath, '-e', look]).status === 0
}

/** Lets every user look into a project; its files keep their own rights. */
export function letAllIn(project: TempProject): void {
  chmodSync(project.path, 0o755)
}
