import { commandTable } from './command-table.ts'

/** How the person at the other end calls khepri, so that the commands it recommends can be pasted as they are. */
export interface Calling {
  /** "khepri", or "npx khepri". */
  readonly program: string
  /** The flags that say which installation is meant: " --database=sqlite:./other.db"; '' for none. */
  readonly flags: string
}

/** How khepri was called. given: the flags that name an installation; a password in a URL is masked. */
export function callingOf(
  given: { readonly config?: string | undefined; readonly database?: string | undefined },
  env: NodeJS.ProcessEnv,
): Calling {
  const { config, database } = given
  return {
    program: isStartedByNpx(env) ? 'npx khepri' : 'khepri',
    flags: [
      config === undefined ? '' : ` --config=${shellWord(config)}`,
      database === undefined ? '' : ` --database=${shellWord(masked(database))}`,
    ].join(''),
  }
}

/** Writes the commands in a text as this caller has to type them. */
export function asTyped(text: string, { program, flags }: Calling): string {
  return text.replaceAll(/\bkhepri ([a-z][a-z-]*)/g, (all, word: string) => {
    if (commandTable.has(word)) return `${program} ${word}${flags}`
    return word === 'help' ? `${program} ${word}` : all
  })
}

/** A word as a shell takes it: quoted where it would be read as something else. */
export function shellWord(text: string): string {
  return /^[\w.,:/@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** npx and npm exec put only the project's own khepri on the PATH, and only for their child. */
const isStartedByNpx = ({ npm_lifecycle_event: event, npm_command: command }: NodeJS.ProcessEnv): boolean =>
  event === 'npx' || command === 'exec'

const masked = (url: string): string => url.replace(/(:\/\/[^/@]*?):[^/]*@/, '$1:***@')
