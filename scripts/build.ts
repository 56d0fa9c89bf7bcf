import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'rolldown'

const root = fileURLToPath(new URL('..', import.meta.url))

/** What the package offers: the command line, the library, the kit for tests, the thread that workers start, and what cannot be waited for in a transaction. What they share has files of its own. */
const entries = {
  cli: 'src/cli/main.ts',
  index: 'src/index.ts',
  testing: 'src/testing/index.ts',
  'beat-thread-main': 'src/beat-thread-main.ts',
  'sqlite-enlisting': 'src/core/store/sqlite/enlisting.ts',
}

/** Taken from the user's node_modules: it has a native part. */
const external = ['better-sqlite3']

async function bundle(folder: string): Promise<void> {
  await build({
    cwd: root,
    input: entries,
    external,
    platform: 'node',
    logLevel: 'warn',
    output: {
      dir: folder,
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: 'chunks/[name]-[hash].js',
    },
  })
}

function declare(folder: string): void {
  const tsc = join(root, 'node_modules', '.bin', 'tsc')
  execFileSync(tsc, ['-p', 'scripts/tsconfig.types.json', '--outDir', folder], { cwd: root, stdio: 'inherit' })
}

/** Puts the new build in the old one's place at once, so that whoever runs dist/ meanwhile never finds half of it. */
function replace(folder: string): void {
  const dist = join(root, 'dist')
  const old = `${folder}-old`
  if (existsSync(dist)) renameSync(dist, old)
  renameSync(folder, dist)
  rmSync(old, { recursive: true, force: true })
}

const scratch = join(root, 'node_modules', '.khepri-build')
mkdirSync(scratch, { recursive: true })
const next = mkdtempSync(join(scratch, 'dist-'))
// A temporary folder is its maker's alone; a build is for every user of this clone.
chmodSync(next, 0o755)
try {
  await bundle(next)
  declare(join(next, 'types'))
  replace(next)
} finally {
  rmSync(next, { recursive: true, force: true })
}
