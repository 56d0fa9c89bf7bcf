import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { KhepriCommand, workingDirectory } from '../cli/base-command.ts'
import { type Draft, refuseExisting, writeDraft } from '../cli/drafts.ts'
import { asUsage, Flags } from '../cli/flags.ts'
import { columns } from '../cli/words.ts'
import { parseDatabase } from '../core/database-url.ts'
import { defaults } from '../core/defaults.ts'
import { KhepriError } from '../core/errors.ts'

const next = `khepri migrate && khepri dispatch --job send-welcome --payload '{"userId":7}' && khepri work`

/** `khepri init`: writes a configuration, a jobs folder and a sample job. */
export default class Init extends KhepriCommand {
  static readonly id = 'init'
  static readonly summary = 'Write a configuration and a sample job'
  static readonly description =
    'Writes into the working directory, and never over a file that is there, unless --force says so.'
  static readonly examples = ['khepri init', 'khepri init --js', 'khepri init --database=postgres://localhost/app']
  static readonly args = {}
  static readonly flags = {
    js: Flags.boolean({ summary: 'write JavaScript (.mjs) instead of TypeScript' }),
    force: Flags.boolean({ summary: 'write over files that are there' }),
  }

  /** --database goes into the file that is written. */
  protected override get namesInstallation(): boolean {
    return false
  }

  protected async run(): Promise<void> {
    const { flags } = await this.parse(Init)
    workingDirectory()
    const database = databaseFor(flags.database)
    const drafts = flags.js ? javaScript(database) : typeScript(database)
    refuseOtherConfigs(drafts)
    if (!flags.force) refuseExisting(drafts, 'khepri init --force')
    for (const draft of drafts) writeDraft(draft)
    if (this.output.mode === 'json') await this.output.document({ created: drafts.map(({ path }) => path) })
    else
      await this.print(
        columns(
          'created',
          drafts.map(({ path, remark }) => [path, remark]),
        ),
      )
    if (database.isSecret)
      this.say('The URL holds a password and is not written: set KHEPRI_DATABASE_URL before the next commands')
    if (!flags.js && isCommonJs())
      this.say('package.json says commonjs: before an application imports these jobs, run npm pkg set type=module')
    this.say(`Next:  ${next}`)
  }
}

function typeScript(database: Database): readonly Draft[] {
  return [
    configDraft('khepri.config.ts', database),
    { path: join('jobs', 'send-welcome.ts'), text: jobText('<{ userId: number }>'), remark: 'a sample job' },
  ]
}

function javaScript(database: Database): readonly Draft[] {
  return [
    configDraft('khepri.config.mjs', database),
    { path: join('jobs', 'send-welcome.mjs'), text: jobText(''), remark: 'a sample job' },
  ]
}

/** The database as it stands in the configuration. */
interface Database {
  /** Code. */
  readonly text: string
  readonly remark: string
  /** A password was in it, which must not lie in a file that is committed. */
  readonly isSecret: boolean
}

/** Throws USAGE for what no command could use. */
function databaseFor(given: string | undefined): Database {
  if (given === undefined) return { text: quoted(defaults.database), remark: defaults.database, isSecret: false }
  const { kind, label } = asUsage(() => parseDatabase(given, '--database', process.cwd()))
  const isSecret = kind === 'postgres' && hasPassword(new URL(given))
  const text = isSecret ? 'process.env.KHEPRI_DATABASE_URL' : quoted(given)
  return { text, remark: kind === 'sqlite' ? label : kind, isSecret }
}

const hasPassword = ({ password, searchParams }: URL): boolean => password !== '' || searchParams.has('password')

function isCommonJs(): boolean {
  try {
    return (JSON.parse(readFileSync('package.json', 'utf8')) as { readonly type?: unknown }).type === 'commonjs'
  } catch {
    return false
  }
}

function configDraft(path: string, database: Database): Draft {
  const text = `import { defineConfig } from 'khepri'

export default defineConfig({
  database: ${database.text}, // or postgres://user@host/database
  jobs: './jobs', // a file is a job of the file's name
})
`
  return { path, text, remark: database.remark }
}

const quoted = (text: string): string => (/['\\\n]/.test(text) ? JSON.stringify(text) : `'${text}'`)

function jobText(type: string): string {
  return `import { defineJob } from 'khepri'
export default defineJob${type}({
  tries: 3, backoff: ['10s', '1m'], timeout: '30s',
  async handle(payload, { signal, log }) { log(\`greeting user \${payload.userId}\`) },
})
`
}

/** Two configurations in one folder would leave it to chance which one counts. */
function refuseOtherConfigs(drafts: readonly Draft[]): void {
  const ours = new Set(drafts.map(({ path }) => path))
  const other = readdirSync('.').find((name) => /^khepri\.config\.(?:[cm]?[jt]s|json)$/.test(name) && !ours.has(name))
  if (other !== undefined)
    throw new KhepriError('FILE_EXISTS', `${other} is there already`, {
      fix: `remove ${other} first: of two configurations nobody knows which one counts, so --force does not help`,
    })
}
