import { KhepriCommand, workingDirectory } from '../cli/base-command.ts'
import { candidates, type LoadApp, shells } from '../cli/completing.ts'
import { reply, type Shell, scripts, wordsOf } from '../cli/completion-scripts.ts'
import { Args, Flags, positiveDurationFlag } from '../cli/flags.ts'
import { limitLife } from '../cli/time-limit.ts'

/** Who presses TAB does not wait for longer than that. */
const answerWithinMs = 300

/** `khepri completion`: prints what a shell sources so that TAB completes commands, flags, ids, queues and jobs. */
export default class Completion extends KhepriCommand {
  static readonly id = 'completion'
  static readonly summary = 'Print the completion script of a shell'
  static readonly description =
    'On TAB the shell asks khepri for commands, flags, and the ids, queues and job names of the installation. What takes longer than 300 ms is not offered.'
  static readonly examples = [
    'source <(khepri completion bash)',
    'khepri completion zsh > "$fpath[1]/_khepri"',
    'khepri completion fish > ~/.config/fish/completions/khepri.fish',
  ]
  static readonly args = {
    shell: Args.string({ required: true, options: shells, description: shells.join(', ') }),
    words: Args.string({ multiple: true, hidden: true, description: 'the words on the line' }),
  }
  static readonly flags = {
    reply: Flags.boolean({ hidden: true, summary: 'answer a shell that completes the words behind --' }),
    within: positiveDurationFlag({ hidden: true, summary: 'how long the answer may take' }),
  }

  protected async run(): Promise<void> {
    const { args, flags } = await this.parse(Completion)
    const shell = args.shell as Shell
    if (!flags.reply) return this.print(scripts[shell])
    await this.#answer(shell, wordsOf(shell, (args.words ?? []) as readonly string[]), flags.within ?? answerWithinMs)
  }

  /** What cannot be looked up is not offered; a shell has no place for an error. */
  async #answer(shell: Shell, words: readonly string[], withinMs: number): Promise<void> {
    const sources = { load: limited(withinMs), isDescribed: shell !== 'bash' }
    const text = await candidates(words, sources).then(
      (found) => reply(shell, found, words.at(-1) ?? ''),
      () => '',
    )
    await this.output.stdout.write(text)
  }
}

/** Reads an installation, and ends this process if it is still at it when the time is over. */
function limited(withinMs: number): LoadApp {
  return async (flags) => {
    limitLife(withinMs)
    const { Khepri } = await import('../app.ts')
    return Khepri.load({ cwd: workingDirectory(), flags, env: process.env })
  }
}
