import { migratedProject } from '../../support/khepri-project.ts'
import { khepri } from '../../support/live.ts'
import { Seeded } from '../simulation/seeded.ts'
import { aCommandLine, flagsOfCommands } from './command-lines.ts'
import { aTypescriptConfig } from './configs.ts'
import { aJobFile } from './job-files.ts'
import { bytesOf } from './mutation.ts'
import { judgeEnd, shownInput } from './target.ts'

/** Longer than any of them needs on a busy machine. */
const patienceMs = 30_000

/** Inputs to khepri in a process of its own: job files, stdin, configurations in TypeScript, flags. Answers what was wrong. */
export async function feedProcess(seed: number, input: number): Promise<readonly string[]> {
  const dice = new Seeded(seed * 1_000_003 + input)
  using project = await migratedProject({ 'jobs/note.mjs': 'export default () => {}' })
  const { argv, stdin, text } = await anInvocation(dice, (name, content) => project.write(name, content))
  const timer = AbortSignal.timeout(patienceMs)
  const ended = await Promise.race([
    khepri(argv, { cwd: project.path, ...(stdin !== undefined && { stdin }) }),
    new Promise<null>((resolve) => timer.addEventListener('abort', () => resolve(null))),
  ])
  const mayTrace = argv.some((word) => /^(-[a-zA-Z]*v|--verb)/.test(word))
  const wrong = ended === null ? [`it did not end within ${patienceMs / 1_000} s`] : judgeEnd(ended, { mayTrace })
  return wrong.map(
    (what) =>
      `whole process ${input}: ${what}: khepri ${shownInput(argv)} with ${shownInput(text)}\n${ended?.stderr.slice(0, 500)}\n  replay: feedProcess(${seed}, ${input}) of test/guarantees/fuzz/whole-processes.ts`,
  )
}

interface Invocation {
  readonly argv: readonly string[]
  readonly stdin?: string
  /** What it reads. */
  readonly text: string
}

async function anInvocation(dice: Seeded, write: (name: string, content: Buffer) => string): Promise<Invocation> {
  const kind = dice.whole(0, 3)
  if (kind === 0) {
    const text = aTypescriptConfig(dice)
    write('khepri.config.ts', bytesOf(text, dice))
    return { argv: [dice.pick(['jobs', 'failed', 'migrate'])], text }
  }
  const text = aJobFile(dice)
  if (kind === 1) return { argv: ['dispatch', '-', '--allow-unknown'], stdin: text, text }
  if (kind === 2) {
    write('job.json', bytesOf(text, dice))
    return { argv: ['dispatch', 'job.json', '--allow-unknown'], text }
  }
  return { argv: aCommandLine(await flagsOfCommands(), dice), text: '' }
}
