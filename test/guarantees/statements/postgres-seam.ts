import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Plan, PostgresFault, Struck } from './faults.ts'

/** Raised by the server itself, in the place of the statement, so that its transaction ends as it really would. */
const insteadOf: Readonly<Record<string, string>> = {
  '40001': `do $$ begin raise exception 'injected' using errcode = '40001'; end $$`,
  '40P01': `do $$ begin raise exception 'injected' using errcode = '40P01'; end $$`,
  '57P01': 'do $$ begin perform pg_terminate_backend(pg_backend_pid()), pg_sleep(10); end $$',
}

/**
 * A wire to a Postgres server that reads the protocol: it counts statements over all sessions that go through it, and
 * lets a fault befall one. Neither the driver nor the code above it knows.
 */
export class PostgresSeam {
  readonly #server: Server
  readonly #sessions = new Set<Session>()
  #plan: Plan | null = null
  #count = 0
  #struck: Struck | null = null

  /** kill: ends the process whose statements these are. */
  static async open(port: number, kill: () => void): Promise<PostgresSeam> {
    const seam = new PostgresSeam(port, kill)
    await once(seam.#server.listen(0, '127.0.0.1'), 'listening')
    return seam
  }

  private constructor(port: number, kill: () => void) {
    this.#server = createServer((client) => {
      const session = new Session(client, connect(port, '127.0.0.1'), (text) => this.#faultFor(text), kill)
      this.#sessions.add(session)
      client.on('close', () => this.#sessions.delete(session))
    })
  }

  get port(): number {
    const address = this.#server.address()
    return address !== null && typeof address === 'object' ? address.port : 0
  }

  get count(): number {
    return this.#count
  }

  get struck(): Struck | null {
    return this.#struck
  }

  arm(plan: Plan | null): void {
    this.#plan = plan
    this.#count = 0
    this.#struck = null
  }

  #faultFor(statement: Struck): PostgresFault | null {
    this.#count += 1
    if (this.#plan === null || this.#count !== this.#plan.at) return null
    this.#struck = statement
    return this.#plan.fault as PostgresFault
  }

  /** Cuts what is left of earlier sessions. */
  cut(): void {
    for (const session of this.#sessions) session.cut()
  }

  async close(): Promise<void> {
    this.cut()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/** What becomes of the bytes after a fault. */
type Wire = 'open' | 'until ready' | 'silent' | 'cut'

/** One connection of the client: its messages are read one by one before they go on. */
class Session {
  readonly #client: Socket
  readonly #server: Socket
  readonly #judge: (statement: Struck) => PostgresFault | null
  readonly #kill: () => void
  readonly #texts = new Map<string, string>()
  #bound = ''
  #isStarted = false
  #statements = 0
  #inTransaction = false
  #fromClient: Buffer = Buffer.alloc(0)
  #fromServer: Buffer = Buffer.alloc(0)
  #wire: Wire = 'open'
  /** What befalls the client once the server has done the statement. */
  #afterwards: PostgresFault | null = null

  constructor(client: Socket, server: Socket, judge: (statement: Struck) => PostgresFault | null, kill: () => void) {
    this.#client = client
    this.#server = server
    this.#judge = judge
    this.#kill = kill
    client.on('data', (chunk) => this.#readClient(chunk))
    server.on('data', (chunk) => this.#readServer(chunk))
    for (const [from, to] of [[client, server] as const, [server, client] as const]) {
      from.on('error', () => {})
      from.on('close', () => to.destroy())
    }
  }

  cut(): void {
    this.#wire = 'cut'
    this.#client.resetAndDestroy()
    this.#server.destroy()
  }

  #readClient(chunk: Buffer): void {
    this.#fromClient = Buffer.concat([this.#fromClient, chunk])
    for (let message = this.#nextOfClient(); message; message = this.#nextOfClient()) {
      if (this.#wire !== 'open' && this.#wire !== 'until ready') return
      this.#pass(message)
    }
  }

  /** The first message has no type, as it comes before the protocol is agreed upon. */
  #nextOfClient(): Buffer | null {
    const [message, rest] = split(this.#fromClient, this.#isStarted ? 1 : 0)
    this.#fromClient = rest
    return message
  }

  #pass(message: Buffer): void {
    if (!this.#isStarted) {
      this.#isStarted = true
      this.#server.write(message)
      return
    }
    const text = this.#statementIn(message)
    const fault = text === null ? null : this.#judge(this.#describe(text))
    if (text === null || fault === null) this.#server.write(message)
    else this.#strike(fault, message, text)
  }

  /** The text of the statement that this message runs; null where it runs none. */
  #statementIn(message: Buffer): string | null {
    const type = String.fromCharCode(message[0] ?? 0)
    const [first = '', second = ''] = message.subarray(5).toString('utf8').split('\0', 2)
    if (type === 'P') this.#texts.set(first, second)
    if (type === 'B') this.#bound = this.#texts.get(second) ?? ''
    if (type === 'Q') return first
    return type === 'E' ? this.#bound : null
  }

  #describe(text: string): Struck {
    const role = this.#roleOf(text)
    this.#statements += 1
    if (/^begin/i.test(text)) this.#inTransaction = true
    if (/^(commit|rollback)/i.test(text)) this.#inTransaction = false
    return { text, role }
  }

  #roleOf(text: string): Struck['role'] {
    if (this.#statements === 0) return 'greeting'
    if (text === 'commit') return 'commit'
    if (this.#inTransaction || /^(begin|rollback)/i.test(text)) return 'open'
    return /\b(insert into|update|delete from)\b/i.test(text) ? 'alone' : 'read'
  }

  #strike(fault: PostgresFault, message: Buffer, text: string): void {
    const instead = insteadOf[fault]
    // A COMMIT that fails has ended its transaction all the same.
    if (instead !== undefined && text === 'commit') this.#server.write(query(`rollback; ${instead}`))
    else if (instead !== undefined) this.#server.write(message[0] === simpleQuery ? query(instead) : execution(instead))
    else if (fault.endsWith(' after')) this.#strikeAfter(fault, message)
    else this.#befall(fault)
  }

  #strikeAfter(fault: PostgresFault, message: Buffer): void {
    this.#afterwards = fault
    this.#wire = 'until ready'
    this.#server.write(message)
  }

  #befall(fault: PostgresFault): void {
    this.#wire = 'silent'
    if (fault.startsWith('kill')) this.#kill()
    if (fault.startsWith('reset')) this.cut()
  }

  #readServer(chunk: Buffer): void {
    if (this.#wire === 'open') this.#client.write(chunk)
    if (this.#wire !== 'until ready' || this.#afterwards === null) return
    this.#fromServer = Buffer.concat([this.#fromServer, chunk])
    if (this.#hasAnswered()) this.#befall(this.#afterwards)
  }

  #hasAnswered(): boolean {
    for (;;) {
      const [message, rest] = split(this.#fromServer, 1)
      this.#fromServer = rest
      if (message === null) return false
      if (message[0] === readyForQuery) return true
    }
  }
}

const readyForQuery = 'Z'.charCodeAt(0)
const simpleQuery = 'Q'.charCodeAt(0)

/** The first whole message of some bytes, and the rest. typeBytes: how many stand before its length. */
function split(bytes: Buffer, typeBytes: 0 | 1): readonly [Buffer | null, Buffer] {
  if (bytes.length < typeBytes + 4) return [null, bytes]
  const length = typeBytes + bytes.readInt32BE(typeBytes)
  return bytes.length < length ? [null, bytes] : [bytes.subarray(0, length), bytes.subarray(length)]
}

function query(text: string): Buffer {
  return message('Q', `${text}\0`)
}

/** Another statement in the place of one that is bound: the Sync that follows is the client's own. */
function execution(text: string): Buffer {
  return Buffer.concat([message('P', `\0${text}\0\0\0`), message('B', '\0\0\0\0\0\0\0\0'), message('E', '\0\0\0\0\0')])
}

function message(type: string, body: string): Buffer {
  const bytes = Buffer.from(`${type}\0\0\0\0${body}`)
  bytes.writeInt32BE(bytes.length - 1, 1)
  return bytes
}
