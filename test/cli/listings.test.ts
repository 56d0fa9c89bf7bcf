import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import { type KhepriProject, migratedProject } from '../support/khepri-project.ts'

const failures = 20_000

/** What a terminal would obey, what would end a line, and more than fits on one. */
const awkward = `\u001b[31m🚀\r\n\u009b2J${'x'.repeat(6_000)}`

function insertFailures({ path }: KhepriProject): void {
  const db = new Database(join(path, 'khepri.db'))
  db.prepare(
    `with recursive n(id) as (select 1 union all select id + 1 from n where id < ?)
     insert into failed_jobs select id, 1, 'default', 0, 'boom', 1, 0, null, 1, 0, id, 'tries', 'Error', ?, '{}' from n`,
  ).run(failures, awkward)
  db.close()
}

/** Has the process leave behind how much memory it has held at most; the result reads it, in MiB. */
function memoryWatch(project: KhepriProject): { readonly env: Readonly<Record<string, string>>; mostMiB(): number } {
  const file = join(project.path, 'memory')
  const watch = project.write(
    'watch-memory.mjs',
    `import { writeFileSync } from 'node:fs'
     process.on('exit', () => writeFileSync(${JSON.stringify(file)}, String(process.resourceUsage().maxRSS / 1024)))`,
  )
  return { env: { NODE_OPTIONS: `--import ${watch}` }, mostMiB: () => Number(readFileSync(file, 'utf8')) }
}

/** Looks at every byte: counts lines, and those in which a terminal would find something to obey. */
const counted = `"$@" | LC_ALL=C awk '/\\033|\\302\\233|\\r/ { bad++ } END { print NR, bad + 0 }'`

it('20,000 failures of 6,000 characters stream one a line, in less than 300 MiB of memory, without a foreign escape code', async () => {
  using project = await migratedProject()
  insertFailures(project)
  const memory = memoryWatch(project)
  for (const [flags, lines] of [
    [[], failures + 1],
    [['--json'], failures],
  ] as const) {
    const { stdout, stderr } = await project.khepri(['failed', ...flags], { shell: counted, env: memory.env })
    expect({ stdout, stderr }).toEqual({ stdout: `${lines} 0\n`, stderr: '' })
    expect(memory.mostMiB()).toBeLessThan(300)
  }
})

it('the first line of a listing is there while nobody has read the rest, and ends quietly with its reader', async () => {
  using project = await migratedProject()
  insertFailures(project)
  // The listing cannot have ended by the second line: a pipe holds less than that.
  const shell = '{ "$@"; echo "exit $?" >&2; } | { IFS= read -r line; echo "$line" | cut -c 1-30; }'
  expect(await project.khepri(['failed'], { shell })).toMatchObject({
    stdout: 'ID     Queue    Job   Failed a\n',
    stderr: 'exit 0\n',
  })
})
