import { KhepriError } from './errors.ts'

/** A transaction of postgres.js: what `sql.begin` hands over. A session of `sql.reserve()` is one as well. */
export type PostgresJsTransaction =
  | { unsafe(...parameters: never[]): unknown; savepoint(...parameters: never[]): unknown }
  | { unsafe(...parameters: never[]): unknown; release(...parameters: never[]): unknown }

/** A client of `pg`, or one of its pool's; never the pool itself. */
export interface PgClient {
  query(...parameters: never[]): unknown
  readonly totalCount?: never
}

/** A transaction of drizzle over postgres.js or `pg`: what `db.transaction` hands over. */
export interface DrizzleOnPostgres {
  execute(query: never): unknown
  rollback(): never
}

/** A connection of better-sqlite3. */
export interface SqliteClient {
  readonly name: string
  readonly inTransaction: boolean
  prepare(...parameters: never[]): unknown
}

/** drizzle over better-sqlite3, in a transaction or not. */
export interface DrizzleOnSqlite {
  run(query: never): { readonly changes: number }
}

/** A transaction of the caller's on Postgres. */
export type PostgresCaller = PostgresJsTransaction | PgClient | DrizzleOnPostgres

/** A connection of the caller's to the same SQLite file. */
export type SqliteCaller = SqliteClient | DrizzleOnSqlite

/** Sends one statement on the caller's connection; the answer is its rows, as the caller's driver reads them. */
export type RunInside = (
  text: string,
  parameters: readonly (string | number | boolean | null)[],
) => Promise<readonly Readonly<Record<string, unknown>>[]>

/** A connection that a caller has handed over, whatever stood around it. */
export type Enlisted =
  | { readonly kind: 'sqlite'; readonly db: SqliteClient }
  | { readonly kind: 'postgres'; readonly run: RunInside }

/**
 * Finds the connection in what a caller hands over.
 *
 * Throws USAGE for a pool, which is no transaction, for a `pg` client that has not begun one, and for anything unknown.
 */
export function enlisted(caller: unknown): Enlisted {
  const client = clientIn(caller)
  if (isSqlite(client)) return { kind: 'sqlite', db: client }
  if (isPostgresJs(client)) return { kind: 'postgres', run: runWithPostgresJs(client) }
  if (isPg(client)) return { kind: 'postgres', run: runWithPg(client) }
  throw new KhepriError('USAGE', 'with() was given what is neither a transaction nor a connection that khepri knows', {
    fix: 'give it the transaction of postgres.js, a client of pg, a better-sqlite3 connection, or drizzle over one of them',
  })
}

type Parameters = readonly (string | number | boolean | null)[]

interface PostgresJs {
  unsafe(text: string, parameters: Parameters): Promise<Awaited<ReturnType<RunInside>>>
  readonly savepoint?: unknown
  readonly release?: unknown
}

interface Pg {
  query(text: string, parameters: Parameters): Promise<{ readonly rows: Awaited<ReturnType<RunInside>> }>
  readonly totalCount?: unknown
  /** In newer versions: "I" outside of a transaction. */
  getTransactionStatus?(): string | null
}

/** drizzle keeps its driver's connection in its session. */
function clientIn(caller: unknown): unknown {
  if (!isSomething(caller)) return caller
  const { session } = caller as { readonly session?: { readonly client?: unknown } }
  return isSomething(session) && isSomething(session.client) ? session.client : caller
}

const isSomething = (value: unknown): value is object =>
  (typeof value === 'object' && value !== null) || typeof value === 'function'

const isSqlite = (client: unknown): client is SqliteClient =>
  isSomething(client) && 'inTransaction' in client && 'prepare' in client && 'name' in client

const isPostgresJs = (client: unknown): client is PostgresJs => typeof client === 'function' && 'unsafe' in client

const isPg = (client: unknown): client is Pg =>
  isSomething(client) && typeof (client as { readonly query?: unknown }).query === 'function'

function runWithPostgresJs(sql: PostgresJs): RunInside {
  if (sql.savepoint === undefined && sql.release === undefined)
    throw noTransaction('a pool of postgres.js', 'await sql.begin((tx) => khepri.with(tx).dispatch(…))')
  return (text, parameters) => sql.unsafe(text, parameters)
}

function runWithPg(client: Pg): RunInside {
  if (client.totalCount !== undefined)
    throw noTransaction('a pool of pg', 'take a client with pool.connect(), and begin a transaction on it')
  if (client.getTransactionStatus?.() === 'I')
    throw noTransaction('a client of pg without a transaction', "await client.query('begin') before, and commit after")
  return async (text, parameters) => (await client.query(text, parameters)).rows
}

const noTransaction = (what: string, fix: string): KhepriError =>
  new KhepriError('USAGE', `with() was given ${what}, on which there is nothing to commit or roll back together`, {
    fix,
  })
