import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { defaults } from '../core/defaults.ts'
import { KhepriError } from '../core/errors.ts'
import { holdsRecords } from './recorded-groups.ts'

/**
 * Waits until the process that holds the other end of its stdin is gone, and ends the groups that it has recorded.
 *
 * A group whose leader has another start time than the record is somebody else's by now.
 */
const script = `
while read -r _; do :; done
cd "$1" || exit 0
each() {
  for record in *.group; do
    read -r group start <"$record" || continue
    if [ "$start" != - ] && read -r stat <"/proc/$group/stat"; then
      now=$(set -- \${stat##*) }; echo "\${20}")
      [ "$now" = "$start" ] || continue
    fi
    for signal; do kill -s "$signal" -- "-$group"; done
  done
}
set -- *.group
if [ -e "$1" ]; then each TERM CONT; sleep "$GRACE"; each KILL; fi
folder=$PWD
cd / && rm -rf -- "$folder"
`

/** One for this process, from its first executable on. */
let guard: ChildProcess | null = null

/** Makes sure that what is recorded in the folder is ended when this process is gone, however it goes. Throws BUG. */
export function requireGuard(folder: string): void {
  if (guard !== null) return
  const child = spawn('/bin/sh', ['-c', script, 'khepri-guard', folder], {
    // Neither Ctrl-C nor a kill of the worker's group may take it along, nor its folder be held.
    detached: true,
    cwd: '/',
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin', GRACE: String(defaults.graceMs / 1_000) },
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const forget = (): void => {
    if (guard !== child) return
    guard = null
    // Somebody has ended it; what runs is not left without one.
    if (holdsRecords(folder)) requireGuard(folder)
  }
  child.on('error', forget).on('exit', forget)
  if (child.pid === undefined) throw new KhepriError('BUG', 'the guard of executables cannot be started: no /bin/sh')
  guard = child
  child.unref()
  const lifeline = child.stdin as Socket | null
  lifeline?.on('error', forget).unref()
}
