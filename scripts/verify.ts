import { execFileSync } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/**
 * Runs the verification programme: `npm run verify -- --short` (the default) or `--long`, one part alone with
 * `--only PART`. Prints what each part has found out, with the commit and the time; exits 1 when a promise is broken.
 */

type Form = 'short' | 'long'
type Figures = Readonly<Record<string, number | string>>
type Run = (form: Form, print: (line: string) => void) => Promise<Figures>

const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** The parts, the quickest to tell of a fault first. docs/guarantees.md says which promise each of them is about. */
const parts: Readonly<Record<string, () => Promise<{ readonly run: Run }>>> = {
  model: () => import('../test/guarantees/model/run.ts'),
  simulation: () => import('../test/guarantees/simulation/run.ts'),
  schedules: () => import('../test/schedule/oracle/run.ts'),
  statements: () => import('../test/guarantees/statements/run.ts'),
  fuzz: () => import('../test/guarantees/fuzz/run.ts'),
  kills: () => import('../test/guarantees/kills/run.ts'),
  database: () => import('../test/guarantees/database/run.ts'),
}

/** A line of progress of one part is shown at most so often. */
const quietMs = 5_000

function asked(): { readonly form: Form; readonly names: readonly string[] } {
  const { values } = parseArgs({
    options: { short: { type: 'boolean' }, long: { type: 'boolean' }, only: { type: 'string', multiple: true } },
  })
  if (values.short && values.long) throw new Error('--short and --long exclude each other')
  const names = values.only ?? Object.keys(parts)
  const stranger = names.find((name) => !Object.hasOwn(parts, name))
  if (stranger !== undefined)
    throw new Error(`there is no part ${stranger}; there are ${Object.keys(parts).join(', ')}`)
  return { form: values.long ? 'long' : 'short', names }
}

/** The commit that is verified; what is not committed yet shows as "and changes". */
function commit(): string {
  const git = (...words: readonly string[]): string =>
    execFileSync('git', words, { cwd: root, encoding: 'utf8', stdio: 'pipe' })
  try {
    const changes = git('status', '--porcelain') === '' ? '' : ' and changes'
    return `${git('rev-parse', '--short', 'HEAD').trim()}${changes}`
  } catch {
    return 'unknown'
  }
}

/** Shows the first line at once, and then one now and then. */
function progressOf(name: string): (line: string) => void {
  let shownAt = Number.NEGATIVE_INFINITY
  return (line) => {
    if (performance.now() - shownAt < quietMs) return
    shownAt = performance.now()
    console.error(`  ${name}: ${line.split('\n', 1)[0]}`)
  }
}

/** Runs a part and prints its figures; the result is whether all promises were kept. */
async function verify(name: string, form: Form): Promise<boolean> {
  const startedAt = performance.now()
  const took = (): string => `${Math.round((performance.now() - startedAt) / 1_000)} s`
  try {
    const { run } = await (parts[name] as (typeof parts)[string])()
    const figures = await run(form, progressOf(name))
    console.log(`${name}: kept, in ${took()}`)
    for (const [what, value] of Object.entries(figures)) console.log(`  ${what.padEnd(56, ' ')} ${shown(value)}`)
    return true
  } catch (error) {
    console.log(
      `${name}: BROKEN, in ${took()}\n${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    )
    return false
  }
}

const shown = (value: number | string): string => (typeof value === 'number' ? value.toLocaleString('en') : value)

const { form, names } = asked()
console.log(
  `npm run verify -- --${form}, commit ${commit()}, ${new Date().toISOString()}, Node ${process.versions.node}`,
)
const broken: string[] = []
for (const name of names) if (!(await verify(name, form))) broken.push(name)
console.log(broken.length === 0 ? 'every promise was kept' : `broken: ${broken.join(', ')}`)
process.exitCode = broken.length === 0 ? 0 : 1
