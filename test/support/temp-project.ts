import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A folder with files, away from this repository; gone at the end of the block that holds it with `using`. */
export class TempProject implements Disposable {
  readonly path: string

  constructor(files: Readonly<Record<string, string>> = {}) {
    this.path = realpathSync(mkdtempSync(join(tmpdir(), 'khepri-project-')))
    for (const [name, text] of Object.entries(files)) this.write(name, text)
  }

  /** Writes a file and the folders above it; the result is its path. */
  write(name: string, content: string | Uint8Array): string {
    const file = join(this.path, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
    return file
  }

  /**
   * Runs lines of code in a process of its own, with plain Node and our sources, and gives what they pass to `report`.
   * Test runners have a module system of their own, so only such a process shows how users' modules are loaded.
   */
  async runCode(code: string): Promise<unknown> {
    const script = this.write('.driver/run.mts', `${prelude}\n${code}\n`)
    const { stdout, stderr, status } = await runNode(script, this.path)
    if (status !== 0) throw new Error(`the driver ended with ${status}: ${stderr}`)
    return JSON.parse(stdout)
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

const core = new URL('../../src/core/', import.meta.url)

const prelude = `
import { loadConfig } from '${core}config.ts'
import { loadModule } from '${core}module-loader.ts'
import { Registry } from '${core}registry.ts'
const cwd = process.cwd()
const report = (value) => process.stdout.write(JSON.stringify(value, (_, each) => (each === undefined ? 'undefined' : each)))
const caught = async (promise) => promise.then(() => 'nothing was thrown', ({ code, message, fix }) => ({ code, message, fix }))
const openRegistry = async () => Registry.open(await loadConfig({ cwd, flags: {}, env: {} }))
`

function runNode(script: string, cwd: string): Promise<{ stdout: string; stderr: string; status: number | null }> {
  return new Promise((done, fail) => {
    const child = spawn(process.execPath, [script], { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
    const output = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] += text
      })
    child.on('error', fail).on('close', (status) => done({ ...output, status }))
  })
}

/** The folder of this repository. */
export const repository = fileURLToPath(new URL('../../', import.meta.url))
