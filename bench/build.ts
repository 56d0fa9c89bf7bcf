import { readdirSync } from 'node:fs'
import { join, parse } from 'node:path'
import { build } from 'rolldown'

const folder = import.meta.dirname

/** Where the built agents are. */
export const builtFolder = join(folder, 'dist')

/** Turns agents and adapters into JavaScript: a cold start must not pay for our types. Packages stay where they are. */
export async function buildAgents(): Promise<void> {
  const adapters = readdirSync(join(folder, 'peers')).map((file) => [parse(file).name, join(folder, 'peers', file)])
  await build({
    cwd: folder,
    input: {
      agent: 'agent.ts',
      handlers: 'handlers.ts',
      'idle-floor': 'idle-floor.ts',
      ...Object.fromEntries(adapters),
    },
    external: (id) => !id.startsWith('.') && !id.startsWith('/') && !/^(?:agent|handlers|idle-floor)\.ts$/.test(id),
    platform: 'node',
    logLevel: 'warn',
    output: {
      dir: builtFolder,
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: 'chunk-[hash].js',
      cleanDir: true,
    },
  })
}
