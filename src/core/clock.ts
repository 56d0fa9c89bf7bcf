/** A pending call; cancelling twice, or after it ran, does nothing. */
export interface Timer {
  cancel(): void
}

/** Where the kernel gets time from: real in production, moved by hand in tests and simulations. */
export interface Clock {
  /** Wall clock, epoch milliseconds. */
  now(): number
  /** Milliseconds that only grow; for durations. */
  monotonic(): number
  /** Calls `run` once after `ms` milliseconds, however many; zero or less means the next turn of the event loop. */
  after(ms: number, run: () => void): Timer
}

/**
 * Taken when khepri is loaded, which is before any code of the user's: a handler that leaves a fake clock behind, as tests
 * install them, must not stop its worker.
 */
const { setTimeout, clearTimeout } = globalThis
const now = Date.now
const monotonic = performance.now.bind(performance)

/** The longest wait setTimeout can take: anything above fires at once. */
const longestTimeoutMs = 2 ** 31 - 1

function after(ms: number, run: () => void): Timer {
  if (Number.isNaN(ms)) throw new RangeError('a timer needs a number of milliseconds, got NaN')
  let handle: NodeJS.Timeout
  const arm = (leftMs: number): void => {
    const stepMs = Math.min(Math.max(leftMs, 0), longestTimeoutMs)
    handle = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : run()), stepMs)
  }
  arm(ms)
  return { cancel: () => clearTimeout(handle) }
}

export const systemClock: Clock = { now, monotonic, after }

/** Resolves after `ms` by the clock, or at once when the signal aborts; never rejects. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = (): void => {
      timer.cancel()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = clock.after(ms, done)
    signal?.addEventListener('abort', done, { once: true })
  })
}

/** A number in [0, 1), like Math.random; a parameter so that tests and simulations can fix it. */
export type Random = () => number
