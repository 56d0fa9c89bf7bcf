import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/**
 * Streams a million lines of NDJSON through `khepri dispatch -` into a new SQLite file, and says how long that took and
 * how much memory it held at most: `npm run stream [-- LINES]`. Ends with 1 above 300 MiB, or where a line is missing.
 */

const root = join(import.meta.dirname, '..')
const lines = Number(process.argv[2] ?? 1_000_000)
const limitMiB = 300

/** A piece of the stream is so many lines. */
const pieceLines = 1_000

function* pieces(): Generator<string> {
  for (let from = 0; from < lines; from += pieceLines) {
    const count = Math.min(pieceLines, lines - from)
    yield Array.from({ length: count }, (_, index) => `{"job":"note","payload":{"userId":${from + index}}}\n`).join('')
  }
}

function start(folder: string, words: readonly string[]) {
  const child = spawn(
    process.execPath,
    ['--import', join(folder, 'watch.mjs'), join(root, 'bin', 'run.cjs'), ...words],
    {
      cwd: folder,
      stdio: ['pipe', 'inherit', 'inherit'],
    },
  )
  const ended = new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
  return { stdin: child.stdin, ended }
}

async function run(folder: string): Promise<boolean> {
  const memory = join(folder, 'memory')
  writeFileSync(join(folder, 'package.json'), '{}')
  writeFileSync(
    join(folder, 'watch.mjs'),
    `import { writeFileSync } from 'node:fs'
     process.on('exit', () => writeFileSync(${JSON.stringify(memory)}, String(process.resourceUsage().maxRSS / 1024)))`,
  )
  const migrating = start(folder, ['migrate'])
  migrating.stdin.end()
  await migrating.ended
  const dispatching = start(folder, ['dispatch', '-', '--allow-unknown'])
  const [code] = await Promise.all([dispatching.ended, pipeline(Readable.from(pieces()), dispatching.stdin)])
  const mostMiB = Math.round(Number(readFileSync(memory, 'utf8')))
  console.log(`${lines.toLocaleString('en-US')} lines, at most ${mostMiB} MiB (limit ${limitMiB}), exit ${code}`)
  return code === 0 && mostMiB < limitMiB
}

const folder = mkdtempSync(join(tmpdir(), 'khepri-stream-'))
try {
  process.exitCode = (await run(folder)) ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
