import { join, relative } from 'node:path'
import { KhepriCommand } from '../cli/base-command.ts'
import { type Draft, refuseExisting, writeDraft } from '../cli/drafts.ts'
import { Args, asUsage, Flags } from '../cli/flags.ts'
import { columns } from '../cli/words.ts'
import type { Config } from '../core/config.ts'
import { KhepriError } from '../core/errors.ts'
import { checkName } from '../core/terms.ts'

/** `khepri make job`: writes a new job from a template. */
export default class Make extends KhepriCommand {
  static readonly id = 'make'
  static readonly summary = 'Write a new job from a template: make job NAME'
  static readonly description =
    'A module in the jobs folder, in TypeScript unless the configuration is JavaScript or --js says so; with --exec an executable file. Never over a file that is there, unless --force says so.'
  static readonly examples = ['khepri make job send-invoice', 'khepri make job resize-image --exec']
  static readonly args = {
    kind: Args.string({ description: 'what to make: job', required: true, options: ['job'], ignoreStdin: true }),
    name: Args.custom<string>({
      description: 'its name',
      required: true,
      ignoreStdin: true,
      parse: async (input) => asUsage(() => checkFileName(input)),
    })(),
  }
  static readonly flags = {
    exec: Flags.boolean({ summary: 'an executable in any language; the template is a shell script' }),
    js: Flags.boolean({ summary: 'write JavaScript (.mjs)' }),
    force: Flags.boolean({ summary: 'write over a file that is there' }),
  }

  protected async run(): Promise<void> {
    const { args, flags } = await this.parse(Make)
    if (flags.exec && flags.js) throw new KhepriError('USAGE', '--exec and --js exclude each other')
    const { config } = await this.app()
    const name = args.name as string
    const folder = folderOf(config)
    const draft = flags.exec ? executable(folder, name) : moduleOf(folder, name, flags.js || isJavaScript(config))
    if (!flags.force) refuseExisting([draft], `khepri make job ${name} --force`)
    writeDraft(draft)
    await this.#tell(draft, name, config)
  }

  async #tell({ path, remark }: Draft, name: string, config: Config): Promise<void> {
    if (this.output.mode === 'json') return this.output.document({ created: path, job: name })
    await this.print(columns('created', [[path, remark]]))
    if (isRegistered(config)) this.say(`Next:  khepri run ${name} --payload '{}'`)
    else this.say(`Next:  add '${name}' to jobs in the configuration: './${relative(config.root, path)}'`)
  }
}

/** A name that is a file of the jobs folder, and one that the folder does not skip. */
function checkFileName(input: string): string {
  const name = checkName(input, 'NAME')
  if (/^[._]|[/\\]|\.test(\.|$)/.test(name))
    throw new KhepriError(
      'DATA_INVALID',
      `NAME must be a file name that does not begin with . or _, got ${JSON.stringify(name)}`,
    )
  return name
}

/** The first folder that the configuration registers, from the working directory on; jobs where there is none. */
function folderOf({ jobs, root }: Config): string {
  const folder = jobs.find((entry) => entry.kind === 'folder')
  return relative(process.cwd(), folder?.path ?? join(root, 'jobs')) || '.'
}

/** Whether what lies in that folder is a job: the configuration names the folder, or names nothing at all. */
function isRegistered({ jobs }: Config): boolean {
  return jobs.length === 0 || jobs.some(({ kind }) => kind === 'folder')
}

const isJavaScript = ({ file }: Config): boolean => /\.[cm]?js$/.test(file ?? '')

function moduleOf(folder: string, name: string, js: boolean): Draft {
  const type = js ? '' : '<Record<string, unknown>>'
  const text = `import { defineJob } from 'khepri'
export default defineJob${type}({
  tries: 3,
  timeout: '1m',
  async handle(payload, { signal, log }) {
    log('running with', payload)
  },
})
`
  return { path: join(folder, `${name}.${js ? 'mjs' : 'ts'}`), text, remark: 'a job' }
}

function executable(folder: string, name: string): Draft {
  const text = `#!/bin/sh
# The payload is JSON on stdin. Exit 0: done; 75: try again; 65 or 78: fail at once; any other: try again while tries last.
set -eu
payload=$(cat)
echo "attempt $KHEPRI_JOB_ATTEMPT of $KHEPRI_JOB_TRIES: $payload"
`
  return { path: join(folder, name), text, remark: 'an executable job', isExecutable: true }
}
