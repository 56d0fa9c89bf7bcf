import { KhepriError } from '../core/errors.ts'

/** Thrown by writes once the reader of stdout has gone; a listing ends quietly with it. */
export class OutputClosed extends Error {
  override readonly name = 'OutputClosed'
}

type Listener = (error: OutputClosed | KhepriError) => void

const gone: ReadonlySet<string> = new Set(['EPIPE', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_WRITE_AFTER_END', 'ECONNRESET'])

/**
 * Standard output as khepri uses it: waits for slow readers, notices when the reader has gone, and may be kept free
 * of what other people's modules print.
 */
export class Stdout {
  readonly stream: NodeJS.WriteStream
  readonly #send: NodeJS.WriteStream['write']
  readonly #listeners = new Set<Listener>()
  #fault: OutputClosed | KhepriError | null = null

  constructor(stream: NodeJS.WriteStream = process.stdout) {
    this.stream = stream
    this.#send = stream.write.bind(stream)
    stream.on('error', (error) => this.#fail(error))
  }

  get isTerminal(): boolean {
    return this.stream.isTTY === true
  }

  /** Columns of the terminal; some say 0 and mean that they do not know. */
  get width(): number {
    return this.stream.columns || 80
  }

  /** Why nothing can be written any more; null while all is well. */
  get fault(): OutputClosed | KhepriError | null {
    return this.#fault
  }

  /** Sends everything that others write to stdout to stderr instead, so that a reader finds only results there. */
  divert(other: NodeJS.WriteStream = process.stderr): void {
    this.stream.write = other.write.bind(other) as NodeJS.WriteStream['write']
  }

  /** Hears once when stdout is gone: at once if it is already. */
  onFault(listener: Listener): void {
    if (this.#fault !== null) listener(this.#fault)
    else this.#listeners.add(listener)
  }

  /** Writes, and resolves when the text has left this process. Throws OutputClosed, or IO where writing failed. */
  async write(text: string): Promise<void> {
    if (this.#fault === null)
      await new Promise<void>((resolve) => this.#send(text, (error) => resolve(error ? this.#fail(error) : undefined)))
    if (this.#fault !== null) throw this.#fault
  }

  /** Waits until everything written so far has left this process; never throws. */
  async flush(): Promise<void> {
    if (this.#fault === null) await new Promise<void>((resolve) => this.#send('', () => resolve()))
  }

  #fail(error: NodeJS.ErrnoException): void {
    if (this.#fault !== null) return
    this.#fault = gone.has(error.code ?? '')
      ? new OutputClosed('the reader of stdout has gone')
      : new KhepriError('IO', `writing to stdout failed: ${reasonOf(error)}`, {
          fix: 'is the disk full?',
          cause: error,
        })
    for (const listener of this.#listeners) listener(this.#fault)
  }
}

const reasonOf = (error: NodeJS.ErrnoException): string =>
  error.code === 'ENOSPC' ? 'no space left on device' : (error.code ?? error.message)
