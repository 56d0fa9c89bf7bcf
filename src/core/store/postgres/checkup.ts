import { formatDuration } from '../../duration.ts'
import { KhepriError } from '../../errors.ts'
import { examined, type Finding, fault, ok, warning } from '../../findings.ts'
import type { StoreOptions } from '../options.ts'
import { type Call, Connections } from './connections.ts'
import { relations } from './fragments.ts'
import { statement, texts } from './statement.ts'

/** The statements say "materialized", which older servers do not know. */
const oldestMajor = 12

/** Further apart than this two clocks are not merely read at different moments. */
const mostSkewMs = 1_000

const looking: Call = { doing: 'look at the server', kind: 'reading' }

const serverFacts = statement(`select current_setting('server_version') as version,
  current_setting('server_version_num')::int / 10000 as major, pg_is_in_recovery() as standby,
  current_setting('transaction_read_only') = 'on' as readonly, current_user::text as role,
  (extract(epoch from clock_timestamp()) * 1000)::bigint as now`)

const withoutRights = statement(`select p.place from unnest(:places::text[]) p (place)
  where to_regclass(p.place) is not null and not (
    has_table_privilege(p.place, 'select') and has_table_privilege(p.place, 'insert')
    and has_table_privilege(p.place, 'update') and has_table_privilege(p.place, 'delete'))`)

/** Of the server, and when it was asked. */
interface Facts {
  readonly version: string
  readonly major: number
  readonly standby: boolean
  readonly readonly: boolean
  readonly role: string
  readonly now: number
  readonly askedAt: number
  readonly answeredAt: number
}

/** Looks whether a Postgres database can be worked with; changes nothing. Never throws. hostNow: the clock of this host. */
export async function checkPostgres(
  url: string,
  options: StoreOptions,
  hostNow: () => number = Date.now,
): Promise<readonly Finding[]> {
  try {
    const connections = new Connections(url, options)
    try {
      return await withConnections(connections, options, hostNow)
    } finally {
      await connections.close()
    }
  } catch (error) {
    return [fault('database', error)]
  }
}

async function withConnections(
  connections: Connections,
  options: StoreOptions,
  hostNow: () => number,
): Promise<readonly Finding[]> {
  // The first answer pays for the connection; the second one's time is what the clocks are compared by.
  await connections.run(serverFacts, {}, looking)
  const askedAt = hostNow()
  const [row] = await connections.run(serverFacts, {}, looking)
  const facts = { ...row, askedAt, answeredAt: hostNow() } as unknown as Facts
  const { label, prepare } = options
  return [
    ok('database', label),
    await examined('version', () => judgeVersion(facts, label)),
    await examined('writable', () => judgeRights(connections, facts, options)),
    judgeClock(facts),
    await examined('pooler', async () => judgePooler(await isPooled(connections), prepare)),
  ]
}

function judgeVersion({ version, major }: Facts, label: string): Finding {
  if (major >= oldestMajor) return ok('version', `Postgres ${version}`)
  throw new KhepriError('CONFIG_INVALID', `${label} is Postgres ${version}; khepri needs ${oldestMajor} or newer`, {
    fix: `upgrade the server, or use another one in the database setting`,
  })
}

async function judgeRights(
  connections: Connections,
  { standby, readonly, role }: Facts,
  { names, schema, label }: StoreOptions,
): Promise<Finding> {
  if (standby || readonly)
    throw new KhepriError(
      'STORE_DENIED',
      `${label} is ${standby ? 'a standby' : 'read-only'}: nothing can be written`,
      {
        fix: standby ? 'name the primary server in the database setting' : 'set default_transaction_read_only to off',
      },
    )
  const { channel: _channel, jobIds: _jobIds, ...tables } = relations(names, schema)
  const { migrations, ...needed } = tables
  const denied = await connections.run(withoutRights, { places: texts(Object.values(needed)) }, looking)
  if (denied.length === 0) return ok('writable', `yes, as ${role}`)
  const places = denied.map(({ place }) => place).join(', ')
  throw new KhepriError('STORE_DENIED', `the role ${role} may not read and write ${places} of ${label}`, {
    fix: `grant select, insert, update, delete on ${places} to ${role}`,
  })
}

function judgeClock({ now, askedAt, answeredAt }: Facts): Finding {
  const aheadMs = Math.round(now - (askedAt + answeredAt) / 2)
  const surelyMs = Math.abs(aheadMs) - (answeredAt - askedAt) / 2
  if (surelyMs <= mostSkewMs)
    return ok('clock', `the database and this host agree within ${formatDuration(mostSkewMs)}`)
  return warning(
    'clock',
    `the database is ${formatDuration(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'} this host`,
    'set both by NTP; jobs are due by the clock of the database, the times of worker lines are those of the host',
  )
}

/** A pooler gives out session numbers of its own, which are not those of the sessions behind it. */
async function isPooled(connections: Connections): Promise<boolean> {
  const session = await connections.openSession({})
  try {
    const [row] = await session.run('select pg_backend_pid() as pid', [])
    return row?.pid !== session.backendPid
  } finally {
    session.destroy()
  }
}

function judgePooler(isThere: boolean, prepare: boolean): Finding {
  if (!isThere) return ok('pooler', 'none')
  if (!prepare) return ok('pooler', 'one, and prepare is false')
  return warning(
    'pooler',
    'a pooler such as PgBouncer stands before the database, and prepare is true',
    'set prepare: false, or KHEPRI_PREPARE=false, where it pools transactions',
  )
}
