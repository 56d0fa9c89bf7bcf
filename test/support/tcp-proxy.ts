import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** A wire between a client and a server that can be cut, or go silent, without either side being told. */
export class TcpProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** What was open when silence fell: nothing ever gets through there again. */
  readonly #dead = new WeakSet<Socket>()
  /** What was sent on newer connections during the silence. */
  readonly #held: { readonly to: Socket; readonly chunk: Buffer }[] = []
  #silent = false

  static async open(port: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(port)
    await once(proxy.#server.listen(0, '127.0.0.1'), 'listening')
    return proxy
  }

  private constructor(port: number) {
    this.#server = createServer((client) => this.#join(client, connect(port, '127.0.0.1')))
  }

  get port(): number {
    const address = this.#server.address()
    return address !== null && typeof address === 'object' ? address.port : 0
  }

  /** Resolves when no connection goes through it any more. */
  async untilEmpty(): Promise<void> {
    for (const socket of this.#sockets) if (!socket.closed) await once(socket, 'close')
  }

  #join(client: Socket, server: Socket): void {
    this.#pass(client, server)
    this.#pass(server, client)
  }

  #pass(from: Socket, to: Socket): void {
    this.#sockets.add(from)
    from.on('data', (chunk) => {
      if (this.#dead.has(from)) return
      if (this.#silent) this.#held.push({ to, chunk })
      else to.write(chunk)
    })
    from.on('error', () => {})
    from.on('close', () => {
      this.#sockets.delete(from)
      to.destroy()
    })
  }

  /** From now on nothing gets through, in either direction; connections stay open. */
  goSilent(): void {
    this.#silent = true
    for (const socket of this.#sockets) this.#dead.add(socket)
  }

  /** Ends the silence: what newer connections have sent arrives late; those that it befell stay dead. */
  speak(): void {
    this.#silent = false
    for (const { to, chunk } of this.#held.splice(0)) to.write(chunk)
  }

  /** Cuts every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async close(): Promise<void> {
    this.cut()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
