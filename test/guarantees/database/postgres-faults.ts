import { setTimeout as wait } from 'node:timers/promises'
import postgres from 'postgres'
import type { Server } from '../../support/postgres.ts'
import type { TcpProxy } from '../../support/tcp-proxy.ts'
import type { Fault } from './shift.ts'

/** How long each fault lasts, milliseconds. */
export interface PostgresSpans {
  readonly crashes: number
  readonly awayMs: number
  readonly terminatingMs: number
  readonly readOnlyMs: number
  readonly silentMs: number
}

/** Promised: work goes on within ten seconds of the database. */
const resumeMs = 10_000

/** A session whose other side is gone is found out by the deadline of its next statement. */
const noticeMs = 10_000

/** What befalls a Postgres that workers and clients reach through a proxy. */
export function postgresFaults(server: Server, proxy: TcpProxy, spans: PostgresSpans): readonly Fault[] {
  return [
    ...Array.from({ length: spans.crashes }, (_, index) => crash(server, index + 1)),
    away(server, spans.awayMs),
    terminations(server, spans.terminatingMs),
    readOnly(server, spans.readOnlyMs),
    silence(proxy, spans.silentMs),
  ]
}

function crash(server: Server, time: number): Fault {
  const strike = async (): Promise<void> => {
    await server.stop('immediate')
    await server.restart()
  }
  return { name: `crash ${time} of the server`, strike, ms: 2_000, outages: 1, resumeMs }
}

function away(server: Server, ms: number): Fault {
  const strike = async (): Promise<void> => {
    await server.stop('immediate')
    await wait(ms)
    await server.restart()
  }
  return { name: `${ms / 1_000} s without a server`, strike, ms, outages: 1, resumeMs }
}

/** Every session is ended once a second, in the middle of whatever it does. */
function terminations(server: Server, ms: number): Fault {
  const strike = async (): Promise<void> => {
    for (let second = 0; second < ms / 1_000; second++) {
      await asSuperuser(
        server,
        (sql) => sql`select pg_terminate_backend(pid) from pg_stat_activity
        where backend_type = 'client backend' and pid <> pg_backend_pid()`,
      )
      await wait(1_000)
    }
  }
  return {
    name: `${ms / 1_000} s in which all sessions are ended each second`,
    strike,
    ms,
    outages: Math.ceil(ms / 1_000),
    resumeMs,
  }
}

function readOnly(server: Server, ms: number): Fault {
  const strike = async (): Promise<void> => {
    await asSuperuser(server, (sql) => sql`alter system set default_transaction_read_only = on`.then(() => reload(sql)))
    await wait(ms)
    await asSuperuser(server, (sql) => sql`alter system reset default_transaction_read_only`.then(() => reload(sql)))
  }
  return { name: `${ms / 1_000} s in which the server is read-only`, strike, ms, outages: 1, resumeMs }
}

const reload = (sql: postgres.Sql): Promise<unknown> => sql`select pg_reload_conf()`

/** Nothing gets through and nobody is told; the sessions that this befell stay dead for ever. */
function silence(proxy: TcpProxy, ms: number): Fault {
  const strike = async (): Promise<void> => {
    proxy.goSilent()
    await wait(ms)
    proxy.speak()
  }
  return { name: `${ms / 1_000} s of silence`, strike, ms, outages: 1, resumeMs: resumeMs + noticeMs }
}

/** On a connection of its own, past the proxy, which may write whatever the server's default says. */
async function asSuperuser(server: Server, use: (sql: postgres.Sql) => Promise<unknown>): Promise<void> {
  const sql = postgres(server.url, { max: 1, onnotice: () => {}, connection: { default_transaction_read_only: false } })
  try {
    await use(sql)
  } finally {
    await sql.end({ timeout: 5 })
  }
}
