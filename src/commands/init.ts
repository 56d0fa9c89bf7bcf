import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { KhepriCommand } from '../cli/base-command.ts'
import { type Draft, refuseExisting, writeDraft } from '../cli/drafts.ts'
import { Flags } from '../cli/flags.ts'
import { columns } from '../cli/words.ts'
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
    const database = flags.database ?? defaults.database
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
    this.say(`Next:  ${next}`)
  }
}

function typeScript(database: string): readonly Draft[] {
  return [
    configDraft('khepri.config.ts', database),
    { path: join('jobs', 'send-welcome.ts'), text: jobText('<{ userId: number }>'), remark: 'a sample job' },
  ]
}

function javaScript(database: string): readonly Draft[] {
  return [
    configDraft('khepri.config.mjs', database),
    { path: join('jobs', 'send-welcome.mjs'), text: jobText(''), remark: 'a sample job' },
  ]
}

function configDraft(path: string, database: string): Draft {
  const text = `import { defineConfig } from 'khepri'

export default defineConfig({
  database: ${quoted(database)}, // or postgres://user@host/database
  jobs: './jobs', // a file is a job of the file's name
})
`
  return { path, text, remark: database.startsWith('sqlite:') ? database : 'postgres' }
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
    throw new KhepriError('FILE_EXISTS', `${other} is there already`, { fix: `remove ${other} first` })
}
