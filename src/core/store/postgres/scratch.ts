import type { StoreOptions } from '../options.ts'
import type { Scratch } from '../scratch.ts'
import { type Call, Connections } from './connections.ts'
import { relations } from './fragments.ts'
import { statement } from './statement.ts'

const looking: Call = { doing: 'read its settings', kind: 'reading' }
const removing: Call = { doing: 'remove the scratch tables', kind: 'repeatable' }

/** What decides how long a commit takes, and how much of a table is read from memory. */
const settings = statement(`select name, setting || coalesce(unit, '') as value from pg_settings
  where name in ('server_version', 'fsync', 'synchronous_commit', 'shared_buffers', 'max_wal_size') order by name`)

/** A scratch installation that is tables beside the user's own. */
export async function openPostgresScratch(url: string, options: StoreOptions): Promise<Scratch> {
  return {
    name: options.names.jobs,
    settings: () => connected(url, options, settingsOf),
    remove: () => connected(url, options, (connections) => removeFrom(connections, options)),
  }
}

async function settingsOf(connections: Connections): Promise<Readonly<Record<string, string>>> {
  const rows = await connections.run(settings, {}, looking)
  const named = Object.fromEntries(rows.map(({ name, value }) => [name, String(value)]))
  const { server_version: version, ...others } = named
  return { Postgres: version ?? 'unknown', ...others }
}

async function removeFrom(connections: Connections, { names, schema }: StoreOptions): Promise<void> {
  const { channel: _channel, jobIds: _jobIds, ...tables } = relations(names, schema)
  const drop = statement(`drop table if exists ${Object.values(tables).join(', ')}`)
  await connections.run(drop, {}, removing)
}

async function connected<T>(
  url: string,
  options: StoreOptions,
  use: (connections: Connections) => Promise<T>,
): Promise<T> {
  const connections = new Connections(url, options)
  try {
    return await use(connections)
  } finally {
    await connections.close()
  }
}
