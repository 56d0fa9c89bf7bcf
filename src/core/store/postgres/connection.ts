import { connect, Socket } from 'node:net'
import postgres from 'postgres'
import { systemClock } from '../../clock.ts'
import { ServerCancelError, SilenceError } from './errors.ts'
import type { Parameter } from './statement.ts'

/** One row of an answer; the caller knows the columns of its own statement. */
export type Row = Readonly<Record<string, unknown>>

/** Where one server listens. */
export interface Address {
  readonly host: string
  readonly port: number
  /** A Unix socket instead. */
  readonly path: string | undefined
}

/** What every connection of a store is opened with. */
export interface ConnectionOptions {
  readonly url: string
  readonly prepare: boolean
  readonly deadlineMs: number
  /** Hears every notification of a channel that this session listens on. */
  readonly onNotify?: () => void
  /** Hears the end of the session, whatever the reason. */
  readonly onClose?: () => void
}

const driverTypes = { bigint: { to: 20, from: [20], serialize: String, parse: Number } }

/** So long before the deadline the server is asked to cancel, so that it can still answer that it did. */
const cancelMs = 1_000

type Client = postgres.Sql<{ bigint: number }>

/**
 * One session with the server: one socket, and the driver's client that owns it.
 *
 * The driver would connect anew by itself and has been seen to send what was meant for a dead connection, or for a
 * transaction that died with it, on the next one. Here a client dies with its socket, so nothing can leak over.
 */
export class Connection {
  readonly #client: Client
  readonly #socket: Socket
  readonly #address: Address
  readonly #options: ConnectionOptions
  #closed = false
  #silent = false
  #backend: { readonly pid: number; readonly secret: number } | null = null

  /** Connects and logs in. Throws what the socket or the server says; nothing of the caller's has been sent by then. */
  static async open(address: Address, options: ConnectionOptions): Promise<Connection> {
    const connection = new Connection(address, options)
    try {
      await connection.#greet()
      return connection
    } catch (error) {
      connection.destroy()
      throw error
    }
  }

  private constructor(address: Address, options: ConnectionOptions) {
    this.#address = address
    this.#options = options
    this.#socket = new Socket()
    let dialled = false
    const socketOnce = (): Socket => {
      if (dialled) return deadSocket()
      dialled = true
      // Not before the driver listens: an error of a local address comes at once.
      setImmediate(() => this.#dial())
      return this.#socket
    }
    this.#client = postgres(options.url, this.#settings(socketOnce))
  }

  /** The number of this session as the greeting gave it: the server's, or one that a pooler made up. */
  get backendPid(): number | null {
    return this.#backend?.pid ?? null
  }

  get isUsable(): boolean {
    return !this.#closed && !this.#socket.destroyed && !this.#socket.readableEnded
  }

  /**
   * Runs one statement.
   *
   * Shortly before the deadline the server is asked to cancel, which answers surely that nothing happened; a server that
   * is silent even then loses the connection, and SilenceError is thrown.
   */
  async run(text: string, parameters: readonly Parameter[], deadlineMs = this.#options.deadlineMs): Promise<Row[]> {
    return this.#withinDeadline(deadlineMs, this.#query(text, parameters))
  }

  /** Like `run`, each row as a list of its values. */
  async values(text: string, parameters: readonly Parameter[], deadlineMs: number): Promise<unknown[][]> {
    return this.#withinDeadline(deadlineMs, this.#query(text, parameters).values())
  }

  #query(text: string, parameters: readonly Parameter[]): postgres.PendingQuery<postgres.Row[]> {
    const prepare = this.#options.prepare && parameters.length > 0
    return this.#client.unsafe<postgres.Row[]>(text, [...parameters], { prepare })
  }

  async #withinDeadline<T>(deadlineMs: number, query: PromiseLike<T>): Promise<T> {
    let isCancelled = false
    const cancelling = systemClock.after(deadlineMs - Math.min(cancelMs, deadlineMs / 2), () => {
      isCancelled = true
      this.#cancel()
    })
    const dropping = systemClock.after(deadlineMs, () => this.#dropSilent())
    try {
      return await query
    } catch (error) {
      if (this.#silent) throw new SilenceError()
      throw isCancellation(error) && !isCancelled ? new ServerCancelError('cancelled', { cause: error }) : error
    } finally {
      cancelling.cancel()
      dropping.cancel()
    }
  }

  /** Says goodbye and waits for the socket to close; a server that does not answer is left after `deadlineMs`. */
  async close(deadlineMs: number): Promise<void> {
    this.#closed = true
    await this.#client.end({ timeout: deadlineMs / 1_000 })
    this.destroy()
  }

  /** Drops the socket; a statement under way fails. */
  destroy(): void {
    this.#closed = true
    this.#socket.destroy()
  }

  #settings(socket: () => Socket) {
    const { deadlineMs, prepare } = this.#options
    const { host, port } = this.#address
    return {
      host,
      port,
      max: 1,
      prepare,
      socket,
      types: driverTypes,
      fetch_types: false,
      connect_timeout: deadlineMs / 1_000,
      keep_alive: 30,
      max_lifetime: null,
      onnotice: () => {},
      onclose: () => {
        this.#closed = true
        this.#options.onClose?.()
      },
      ...(this.#options.onNotify && { onnotify: this.#options.onNotify }),
      connection: { application_name: 'khepri' },
    }
  }

  /** The first round trip; after it a statement is surely sent on a living session. */
  async #greet(): Promise<void> {
    // Compiling these small statements costs more than running them. Behind a pooler the session is not ours to set.
    const greeting = this.#client.unsafe(this.#options.prepare ? 'set jit = off' : 'select 1')
    const { state } = await this.#withinDeadline(this.#options.deadlineMs, greeting)
    this.#backend = state as unknown as { pid: number; secret: number }
  }

  #dial(): void {
    const { host, port, path } = this.#address
    // The driver names the host to TLS by this property.
    Object.assign(this.#socket, { host, port })
    if (path === undefined) this.#socket.connect(port, host)
    else this.#socket.connect(path)
  }

  #dropSilent(): void {
    this.#silent = true
    this.destroy()
  }

  /** Asks the server, over a socket of its own, to cancel what this session runs. */
  #cancel(): void {
    if (this.#backend === null) return
    const { host, port, path } = this.#address
    const request = Buffer.alloc(16)
    request.writeInt32BE(16, 0)
    request.writeInt32BE(cancelRequest, 4)
    request.writeUInt32BE(this.#backend.pid, 8)
    request.writeUInt32BE(this.#backend.secret, 12)
    const socket = path === undefined ? connect(port, host) : connect(path)
    // Nobody waits for it: whether it helped shows on the session itself.
    socket.on('error', () => {})
    socket.setTimeout(this.#options.deadlineMs, () => socket.destroy())
    socket.unref()
    socket.end(request)
  }
}

function isCancellation(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '57014'
}

/** The protocol's number for "cancel". */
const cancelRequest = 80_877_102

/** What the driver gets when it wants to connect a second time; a statement that meets it has not been sent. */
function deadSocket(): Socket {
  const socket = new Socket()
  socket.on('error', () => {})
  const gone = Object.assign(new Error('the connection is gone'), { code: 'CONNECTION_CLOSED' })
  setImmediate(() => socket.destroy(gone))
  return socket
}

/** The servers that a URL names, in its order. Throws where it is not a URL. */
export function addressesOf(url: string): readonly Address[] {
  const { host, port, path } = postgres(url, { max: 1 }).options
  const unixPath = typeof path === 'string' ? path : undefined
  return host.map((name, index) => ({ host: name, port: port[index] ?? 5432, path: unixPath }))
}
