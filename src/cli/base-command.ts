import type { ArgInput, FlagInput } from '@oclif/core/interfaces'
import { parse } from '@oclif/core/parser'
import type { Khepri } from '../app.ts'
import type { ConfigSources } from '../core/config.ts'
import { KhepriError } from '../core/errors.ts'
import { onSlowLoad } from '../core/user-code.ts'
import { exitCodeOf, exits } from './exit-codes.ts'
import { choiceFlag, Flags, textFlag } from './flags.ts'
import { apart, joinWords } from './many-words.ts'
import { hushNode } from './node-warnings.ts'
import { Output, type OutputOptions } from './output.ts'
import { callingOf } from './own-words.ts'
import { Progress } from './progress.ts'
import { asKhepriError, strayError } from './report.ts'
import { OutputClosed, type Stdout } from './stdout.ts'
import type { Style } from './style.ts'
import { checkTimezone } from './time.ts'
import { unknownFlag, usageError } from './usage-errors.ts'
import { beforeDashes, isDebugging, outputOptionsIn } from './words-given.ts'

const group = 'GLOBAL'

/** The flags that every command has. */
export const globalFlags = {
  config: textFlag({ char: 'C', helpValue: 'FILE', helpGroup: group, summary: 'use this configuration file' }),
  database: textFlag({ helpValue: 'URL', helpGroup: group, summary: 'sqlite:./file.db or postgres://…' }),
  json: Flags.boolean({ helpGroup: group, summary: 'results and errors as JSON' }),
  plain: Flags.boolean({ helpGroup: group, summary: 'TAB-separated, without a header' }),
  color: choiceFlag(['auto', 'always', 'never'])({ helpGroup: group, summary: 'colour; by default at a terminal' }),
  quiet: Flags.boolean({ helpGroup: group, summary: 'results and errors only' }),
  verbose: Flags.boolean({ char: 'v', helpGroup: group, summary: 'stack traces with errors' }),
  timezone: textFlag({
    helpValue: 'TZ',
    helpGroup: group,
    summary: 'time zone in which times are shown and read',
    parse: async (input) => checkTimezone(input, '--timezone'),
  }),
  help: Flags.boolean({ char: 'h', helpGroup: group, summary: 'show this help' }),
  version: Flags.boolean({ char: 'V', helpGroup: group, summary: 'show the version' }),
}

type GlobalFlags = ValuesOf<typeof globalFlags>

/** The values that declared flags have once they are read. */
export type ValuesOf<Inputs> = Inputs extends FlagInput<infer Values> ? Values : never

/** What a command class says about itself, for help. */
interface CommandTexts {
  readonly id: string
  readonly summary: string
  readonly description?: string
  readonly examples?: readonly string[]
}

/** What a command class says about itself, for parsing and for help. */
export interface CommandShape<F extends Values, A extends Values> extends CommandTexts {
  readonly flags: FlagInput<F>
  readonly args: ArgInput<A>
}

type Values = Record<string, unknown>

/** A command as the command table loads it. */
export interface CommandClass extends CommandTexts {
  readonly flags: FlagInput
  readonly args: ArgInput
  new (setting: CommandSetting): KhepriCommand
}

/** What a command is started with. */
export interface CommandSetting {
  readonly argv: readonly string[]
  readonly stdout: Stdout
}

/** What every command shares: global flags, the application object, output, and one way to report errors. */
export abstract class KhepriCommand {
  readonly #setting: CommandSetting
  #output: Output
  #flags: GlobalFlags | null = null
  #app: Promise<Khepri> | null = null
  #exit: number = exits.ok

  constructor(setting: CommandSetting) {
    this.#setting = setting
    this.#output = new Output(outputOptionsIn(setting.argv), setting.stdout)
  }

  /** Does what the command is for. Returning is success; the exit code is what `exitWith` said. */
  protected abstract run(): Promise<void>

  /** Runs the command and resolves with its exit code, once everything it wrote has left this process. Never throws. */
  async start(): Promise<number> {
    process.on('uncaughtException', (error) => this.#notice(error))
    hushNode()
    try {
      if (!this.sharesStdout) this.#setting.stdout.divert()
      onSlowLoad((source) => this.say(`loading ${source} takes long`))
      await this.run()
    } catch (error) {
      this.report(error)
    }
    await this.#close()
    await this.#setting.stdout.flush()
    return this.#exit
  }

  /** True where what users' modules print belongs on stdout. */
  protected get sharesStdout(): boolean {
    return false
  }

  /** Something that a module of the user's left behind has thrown; most commands do what they are for all the same. */
  protected heardStray(): void {}

  /** True where --config and --database say which installation is meant, so that recommended commands repeat them. */
  protected get namesInstallation(): boolean {
    return true
  }

  /** Results, on stdout. */
  protected get output(): Output {
    return this.#output
  }

  /** Tells whether somebody sits at the other end and can be asked. */
  protected get canAsk(): boolean {
    return process.stdin.isTTY === true && process.stderr.isTTY === true
  }

  /** The application of the flags' configuration; loaded once, closed at the end. Only after `parse`. */
  protected app(): Promise<Khepri> {
    const { config, database } = this.#flags ?? {}
    const flags = { ...(config !== undefined && { config }), ...(database !== undefined && { database }) }
    this.#app ??= this.#load(flags)
    return this.#app
  }

  /** Prints a result on stdout. */
  protected print(text: string, style?: Style): Promise<void> {
    return this.#output.print(text, style)
  }

  /** Writes prose on stderr, unless --quiet. */
  protected say(text: string, style?: Style): void {
    this.#output.say(text, style)
  }

  /** Warns on stderr of something that was probably not meant, unless --quiet; nothing ends. */
  protected warn(text: string): void {
    this.#output.say(`warning: ${text}`, 'yellow')
  }

  /** Shows how far long work is, on stderr: a bar at a terminal, otherwise a line every few seconds. */
  protected progress(label: string, unit: string): Progress {
    const { quiet, json } = this.#output.options
    const mode = quiet || json ? 'none' : process.stderr.isTTY ? 'bar' : 'lines'
    return new Progress({ label, unit, mode, write: (text) => process.stderr.write(text) })
  }

  /** Sets the exit code of a command that ran to its end; the first failure counts. */
  protected exitWith(code: number): void {
    if (this.#exit === exits.ok) this.#exit = code
  }

  /** Reports an error on stderr and sets the exit code: the error's own, or the one given. */
  protected report(thrown: unknown, exit?: number): void {
    if (thrown instanceof OutputClosed) return
    const error = asKhepriError(thrown)
    const code = exit ?? exitCodeOf(error)
    this.#output.report(error, code)
    this.exitWith(code)
  }

  /** Reads the command line by what the class says. Throws USAGE. */
  protected async parse<F extends Values, A extends Values>(
    shape: CommandShape<F, A>,
  ): Promise<{ readonly flags: F & GlobalFlags; readonly args: A }> {
    const flags = { ...globalFlags, ...shape.flags }
    const argv = [...this.#setting.argv]
    const usage = { command: shape.id, flags: Object.keys(flags).map((name) => `--${name}`) }
    refuseInherited(argv, usage)
    refuseValues(argv, flags)
    try {
      const joined = joinWords(argv, shape.args as never)
      const parsed = await parse<F & GlobalFlags, Values, A>(joined.argv, {
        flags: flags as never,
        args: joined.args as never,
      })
      return this.#accept({ ...parsed, args: apart(parsed.args) })
    } catch (error) {
      throw usageError(error, usage)
    }
  }

  #accept<Parsed extends { readonly flags: GlobalFlags }>(parsed: Parsed): Parsed {
    const { json, plain } = parsed.flags
    if (json && plain) throw new KhepriError('USAGE', '--json and --plain exclude each other')
    this.#flags = parsed.flags
    const calling = callingOf(this.namesInstallation ? parsed.flags : {}, process.env)
    this.#output = new Output({ ...outputOptions(parsed.flags), calling }, this.#setting.stdout)
    return parsed
  }

  async #load(flags: ConfigSources['flags']): Promise<Khepri> {
    const [{ Khepri }, { unknownVariables }] = await Promise.all([
      import('../app.ts'),
      import('../core/environment.ts'),
    ])
    const warning = unknownVariables(process.env)
    if (warning !== null) this.warn(warning)
    return Khepri.load({ cwd: workingDirectory(), flags, env: process.env })
  }

  /** A timer or a promise that nobody waits for threw: it changes nothing of what this command has done. A worker has its own way. */
  #notice(thrown: unknown): void {
    if (process.listenerCount('uncaughtException') > 1) return
    const { message, fix } = strayError(thrown)
    this.say(`warning: ${message}\n  fix: ${fix}`)
    this.heardStray()
  }

  async #close(): Promise<void> {
    try {
      const app = await this.#app?.catch(() => null)
      await app?.close()
    } catch (error) {
      this.report(error)
    }
  }
}

/** The folder in which khepri was started. Throws CONFIG_MISSING where that folder has been removed. */
export function workingDirectory(): string {
  try {
    return process.cwd()
  } catch (cause) {
    throw new KhepriError('CONFIG_MISSING', 'the working directory does not exist any more', {
      fix: 'change to a folder that exists',
      cause,
    })
  }
}

/** Every object has these names; oclif looks flags up in plain objects and would take them for flags. */
function refuseInherited(
  argv: readonly string[],
  usage: { readonly command: string; readonly flags: readonly string[] },
): void {
  for (const token of beforeDashes(argv)) {
    const [, name] = /^--([^=]+)/.exec(token) ?? []
    if (name !== undefined && name in Object.prototype) throw unknownFlag(token, usage)
  }
}

/** oclif drops the value of a flag that takes none and reads it as an argument, which the error then would be about. */
function refuseValues(argv: readonly string[], flags: FlagInput): void {
  for (const token of beforeDashes(argv)) {
    const [, name = '', value] = /^--([^=]+)=(.*)$/s.exec(token) ?? []
    if (Object.hasOwn(flags, name) && flags[name]?.type === 'boolean')
      throw new KhepriError('USAGE', `--${name} takes no value, got ${JSON.stringify(value)}`)
  }
}

function outputOptions({ json, plain, quiet, verbose, timezone, color }: GlobalFlags): Omit<OutputOptions, 'calling'> {
  return { json, plain, quiet, verbose: verbose || isDebugging(), timezone, color: color ?? 'auto' }
}
