/** Where one contestant works, alone, for one measure of one round. */
export interface Place {
  /** A folder of its own. */
  readonly folder: string
  /** A file that is not there yet, or the address of an empty database. */
  readonly database: string
}

/** What every benchmark job carries. */
export interface Payload {
  /** Its number, from 0. */
  readonly n: number
  readonly kind: 'noop' | 'wait'
  /** Of a wait, milliseconds. */
  readonly ms: number
  /** Of its attempts so many throw. */
  readonly failures: number
  /** When somebody asked for it, milliseconds of `now`. */
  readonly at: number
  /** Makes the payload as large as the measure wants it. */
  readonly fill: string
}

/** One job to be added. */
export interface NewJob {
  readonly payload: Payload
  /** Runs, the first included. */
  readonly tries: 1 | 2
  /** Waits before its first run. */
  readonly delayMs: number
  /** Comes before the usual ones. */
  readonly urgent: boolean
}

/** The adding side of a contestant. */
export interface Client {
  /** Adds one job; durable as the contestant means it when it resolves. */
  addOne(job: NewJob): Promise<void>
  /** Adds many in its best documented way; null where it has none. */
  readonly addMany: ((jobs: readonly NewJob[]) => Promise<void>) | null
  /** Jobs that have not ended: waiting, scheduled, running or locked. */
  left(): Promise<number>
  close(): Promise<void>
}

/** What workers run; attempt: 1 on the first run. */
export type Handle = (payload: Payload, attempt: number) => void | Promise<void>

/** The working side of a contestant. */
export interface Working {
  /** Settles what is done and ends. */
  stop(): Promise<void>
}

/** A product that is measured, or the limit of a store, behind one small interface. */
export interface Peer {
  /** Makes its tables in an empty place. */
  prepare(place: Place): Promise<void>
  open(place: Place): Promise<Client>
  /** concurrency: null where the measure leaves it to the contestant. */
  drain(place: Place, concurrency: number | null, handle: Handle): Promise<Working>
}

/** Milliseconds since the epoch, with fractions, alike in all processes of a machine. */
export function now(): number {
  return performance.timeOrigin + performance.now()
}
