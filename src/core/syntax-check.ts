import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

const strip = `
  const source = require('node:fs').readFileSync(0, 'utf8')
  process.stdout.write(require('node:module').stripTypeScriptTypes(source))
`

const deadlineMs = 10_000

/**
 * Finds the line of a syntax error in a file of module code; null if it has none.
 *
 * A failed `import()` does not say where; only a process of its own that checks the file does. Its types are stripped by
 * another one before, as files are judged by their package.json there, and text is not.
 */
export async function findSyntaxError(file: string): Promise<number | null> {
  if (!existsSync(file)) return null
  const source = readFileSync(file, 'utf8')
  const plain = /\.[cm]?ts$/.test(file) ? (await runNode(['-e', strip], source)).stdout : source
  const { stderr } = await runNode(['--check', '--input-type=module', '-'], plain)
  const match = /^\[stdin\]:(\d+)$/m.exec(stderr)
  return match ? Number(match[1]) : null
}

function runNode(
  args: readonly string[],
  input: string,
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  return new Promise((done) => {
    const { NODE_OPTIONS: _, ...env } = process.env
    const child = spawn(process.execPath, ['--no-warnings', ...args], { env, timeout: deadlineMs })
    const output = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] += text
      })
    child.on('error', () => done(output)).on('close', () => done(output))
    // A child that ended early does not read; that is no failure of ours.
    child.stdin.on('error', () => {}).end(input)
  })
}
