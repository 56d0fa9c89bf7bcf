import { loadConfig } from '../../../src/core/config.ts'
import { environmentVariables } from '../../../src/core/environment.ts'
import type { ErrorCode } from '../../../src/core/errors.ts'
import { Registry } from '../../../src/core/registry.ts'
import { TempProject } from '../../support/temp-project.ts'
import type { Seeded } from '../simulation/seeded.ts'
import { anyJson, awkwardWord, bytesOf, mutated } from './mutation.ts'
import { judgeError, shownInput, type Target } from './target.ts'

const codes: readonly ErrorCode[] = ['CONFIG_INVALID', 'CONFIG_UNSAFE', 'CONFIG_MISSING']

/** Configuration files in JSON, and settings in the environment, up to the names of the jobs. */
export function configs(): Target {
  const project = new TempProject({ 'package.json': '{}', 'jobs/note.mjs': 'export default () => {}' })
  return {
    feed: async (dice) => {
      const text = aConfig(dice)
      const env = anEnvironment(dice)
      project.write('khepri.config.json', bytesOf(text, dice))
      const wrong = await load(project.path, env)
      return wrong.map((what) => `${what}: ${shownInput(text)} with ${shownInput(env)}`)
    },
    close: async () => project[Symbol.dispose](),
  }
}

async function load(cwd: string, env: Readonly<Record<string, string>>): Promise<readonly string[]> {
  try {
    const registry = await Registry.open(await loadConfig({ cwd, flags: {}, env }))
    registry.names()
    return []
  } catch (error) {
    return judgeError(error, codes)
  }
}

/** A configuration that is mostly right, as JSON. */
export function aConfig(dice: Seeded): string {
  const members = Object.entries(values).flatMap(([key, choices]) =>
    dice.chance(0.25) ? [`"${key}":${dice.chance(0.15) ? anyJson(dice) : dice.pick(choices)}`] : [],
  )
  return mutated(`{${members.join(',\n ')}}`, dice)
}

const values: Readonly<Record<string, readonly [string, ...string[]]>> = {
  database: [
    '"sqlite:./khepri.db"',
    '"memory:"',
    '"postgres://u:secret@127.0.0.1:1/db"',
    '"mysql://x"',
    '"sqlite:"',
    '""',
  ],
  table: ['"work"', '"Jobs"', `"${'t'.repeat(41)}"`, '"jobs; drop"'],
  failedTable: ['"work_failed"', '"jobs"'],
  schema: ['"tenant"', '"a b"', 'null'],
  queue: ['"default"', '"*"', '""'],
  queues: ['{"high":{"concurrency":8},"default":{}}', '{}', '[]', '{"__proto__":{}}'],
  concurrency: ['4', '0', '"4"', '1e9'],
  retryAfter: ['90', '"30s"', '0', '-1', '"1000y"'],
  sleep: ['"1s"', '0.001'],
  timeout: ['"30s"', 'null'],
  tries: ['3', '0'],
  backoff: ['"10s"', '["1s",5]', '{"kind":"exponential","base":"1s","max":"1h","jitter":true}', '{"kind":"linear"}'],
  maxCrashes: ['3', '0'],
  unknownJobs: ['"wait"', '"ignore"'],
  maxPayload: ['"1MiB"', '"1GB"', '0'],
  keepDone: ['"7d"', 'null'],
  keepCancelled: ['"7d"'],
  prepare: ['false', '"false"'],
  jobs: [
    '"./jobs"',
    '"./missing"',
    '{"a":"./jobs/note.mjs"}',
    '["./jobs",{"note":"./other.mjs"}]',
    '[[]]',
    '{"x":{"module":7}}',
  ],
}

function anEnvironment(dice: Seeded): Readonly<Record<string, string>> {
  if (dice.chance(0.7)) return {}
  // The place of the configuration is this campaign's own.
  const names = environmentVariables.map(({ name }) => name).filter((name) => name !== 'KHEPRI_CONFIG')
  const { name } = { name: names[dice.whole(0, names.length - 1)] ?? '' }
  return { [name]: dice.chance(0.5) ? awkwardWord(dice) : dice.pick(['5', '30s', 'true', 'none', 'a,b']) }
}

/** The same in TypeScript, with what its syntax can get wrong besides. */
export function aTypescriptConfig(dice: Seeded): string {
  const text = `import { defineConfig } from 'khepri'\nexport default defineConfig(${aConfig(dice)})\n`
  return dice.chance(0.5) ? mutated(text, dice) : text
}
