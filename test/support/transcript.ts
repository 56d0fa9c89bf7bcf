import { spawn } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect } from 'vitest'
import { KhepriProject } from './khepri-project.ts'
import { repository } from './temp-project.ts'

/**
 * A user's shell session in a project of its own, written as documentation shows it:
 *
 *     $ khepri work
 *     2| error: unknown flag --concurency. Did you mean --concurrency?      [2]
 *
 * Lines that begin with `2|` are stderr, `[n]` is the exit status where it is not 0, `tty$` runs at a terminal.
 */
export class Session extends KhepriProject {
  readonly #env: NodeJS.ProcessEnv

  constructor(files: Readonly<Record<string, string>> = {}) {
    super(files)
    for (const name of Object.keys(files)) if (name.endsWith('.sh')) chmodSync(join(this.path, name), 0o755)
    const shim = this.write(
      '.bin/khepri',
      `#!/bin/sh\nexec "${process.execPath}" "${join(repository, 'bin', 'run.cjs')}" "$@"\n`,
    )
    chmodSync(shim, 0o755)
    const ours = Object.entries(process.env).filter(
      ([name]) => !/^(?:KHEPRI_|npm_|NODE_OPTIONS$|FORCE_COLOR$)/.test(name),
    )
    const path = [dirname(shim), dirname(process.execPath), process.env.PATH].join(delimiter)
    this.#env = { ...Object.fromEntries(ours), PATH: path }
  }

  /** Plays every command of a transcript, and holds what is written to what stands there, as a whole. */
  async plays(transcript: string): Promise<void> {
    const wanted = transcript.replace(/^\n/, '').trimEnd()
    const played: string[] = []
    for (const line of wanted.split('\n')) if (/^(?:tty)?\$ /.test(line)) played.push(await this.#play(line))
    expect(normal(played.join('\n'))).toBe(normal(wanted))
  }

  /** Runs a command line to its end; a line that prepares something must succeed. */
  async prepares(...lines: readonly string[]): Promise<void> {
    for (const line of lines) {
      const { code, stdout, stderr } = await this.#shell(line)
      expect(code, `${line}: ${stdout}${stderr}`).toBe(0)
    }
  }

  async #play(prompt: string): Promise<string> {
    const [, tty, line = ''] = /^(tty)?\$ (.*)$/.exec(prompt) ?? []
    const { code, stdout, stderr } = await this.#shell(line, tty === undefined ? [] : ['script', '-qec'])
    const lines = [prompt, ...linesOf(stdout), ...linesOf(stderr).map((each) => `2| ${each}`.trimEnd())]
    return `${lines.join('\n')}${code === 0 ? '' : `   [${code}]`}`
  }

  #shell(line: string, [file = 'sh', flags = '-c']: readonly string[] = []) {
    const text = file === 'script' ? `stty cols 120 rows 24; ${line}` : line
    const rest = file === 'script' ? ['/dev/null'] : []
    const child = spawn(file, [flags, text, ...rest], {
      cwd: this.path,
      env: this.#env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const written = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (each: string) => {
        written[name] += each
      })
    return new Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>(
      (resolve, reject) => {
        child.on('error', reject).on('close', (code) => resolve({ code, ...written }))
      },
    )
  }
}

/** What is seen of a text: without colours, and without what a bar or a footer has taken back. */
export function seen(text: string): string {
  return stripVTControlCharacters(text.replaceAll('\r\n', '\n').replaceAll(/[^\n]*\r(?:\u001b\[K)?/g, ''))
}

const linesOf = (text: string): readonly string[] => (text === '' ? [] : seen(text).replace(/\n$/, '').split('\n'))

/** Times, rates and places of a machine as patterns; what is aligned before them moves with them. */
function normal(transcript: string): string {
  return transcript
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll(/\b\d\d:\d\d:\d\d\b/g, '<clock>')
    .replaceAll(/ \d+[smhd] ago/g, ' <age>')
    .replaceAll(/(?<=[ ,]) *\d+(?:\.\d+)?m?s(?= |$|;|\n)/g, ' <duration>')
    .replaceAll(/\([\d,]+\/s\)/g, '(<rate>)')
    .replaceAll(/ +\[(\d+)\]$/gm, ' [$1]')
}
