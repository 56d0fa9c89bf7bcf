/** How one command is called in the table: the same words in every situation. */
export interface Called {
  /** Words behind the command. */
  readonly words: readonly string[]
  /** The same command asked for an id that does not exist; where a command takes no id, one that nobody asked for. */
  readonly unknownId: readonly string[]
  /** What is typed where it asks, at a terminal. */
  readonly typed?: string
  /** Goes on until it is told to stop. */
  readonly isEndless?: boolean
}

const id = '99'

/** Every command, so that it does what it is for in the project of the table. */
export const called: Readonly<Record<string, Called>> = {
  init: { words: ['--force'], unknownId: [id] },
  make: { words: ['job', 'tidy'], unknownId: ['job', 'tidy', id] },
  migrate: { words: [], unknownId: [id] },
  dispatch: { words: ['--job=note', '--queue=mail'], unknownId: [id] },
  work: { words: ['--queue=default', '--stop-when-empty'], unknownId: [id] },
  run: { words: ['note'], unknownId: [`--id=${id}`] },
  list: { words: [], unknownId: [id] },
  show: { words: ['2'], unknownId: [id] },
  failed: { words: [], unknownId: [id] },
  retry: { words: ['2'], unknownId: ['2', id] },
  flush: { words: ['2'], unknownId: ['2', id], typed: 'y\n' },
  prune: { words: ['--keep-done=0s'], unknownId: [id] },
  cancel: { words: ['3'], unknownId: ['3', id] },
  pause: { words: ['mail', '--reason=deploy'], unknownId: [id] },
  resume: { words: ['mail'], unknownId: [id] },
  status: { words: [], unknownId: [id] },
  workers: { words: [], unknownId: [id] },
  watch: { words: ['--every=1h'], unknownId: [id], isEndless: true },
  restart: { words: [], unknownId: [id] },
  jobs: { words: [], unknownId: [id] },
  doctor: { words: [], unknownId: [id] },
  health: { words: [], unknownId: [id] },
  systemd: { words: ['--user'], unknownId: [id] },
  completion: { words: ['bash'], unknownId: ['bash', id] },
  'schedule list': { words: [], unknownId: [id] },
  'schedule run': { words: [], unknownId: [id] },
  'schedule test': { words: ['nightly'], unknownId: [id] },
  'schedule trigger': { words: ['nightly'], unknownId: [id] },
  'schedule pause': { words: ['nightly'], unknownId: [id] },
  'schedule resume': { words: ['nightly'], unknownId: [id] },
  'schedule simulate': { words: ['nightly', '--from=2026-03-27Z', '--to=2026-03-31Z'], unknownId: [id] },
  'schedule import': { words: ['crontab'], unknownId: [id] },
  // What it measures is a test of its own; here it is one that ends at once.
  bench: { words: ['--database=memory:'], unknownId: [id] },
}

/** The project of the table: job 1 is done and kept, 2 has failed, 3 waits on default, 4 is due in days. */
export const files: Readonly<Record<string, string>> = {
  'package.json': '{}',
  'khepri.config.json':
    '{"keepDone":"30d","schedules":{"nightly":{"job":"note","cron":"30 2 * * *","zone":"Europe/Oslo"}}}\n',
  crontab: '# Every night\n30 2 * * * /usr/local/bin/backup\n@reboot /usr/local/bin/warm\n',
  'jobs/note.mjs': 'export default (_, { log }) => log("noted")\n',
  'jobs/boom.mjs':
    'export default () => { throw Object.assign(new Error("it broke"), { stack: "Error: it broke\\n    at boom.mjs" }) }\n',
}

/** The command lines that make it. */
export const preparation: readonly (readonly string[])[] = [
  ['migrate'],
  ['dispatch', '--job=note'],
  ['dispatch', '--job=boom'],
  ['work', '--stop-when-empty'],
  ['dispatch', '--job=note', '--payload={"userId":7}'],
  ['dispatch', '--job=note', '--queue=mail', '--delay=40d'],
]
