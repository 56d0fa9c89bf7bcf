/**
 * What this khepri does already. Each switch turns a promise of the design on in every campaign that checks it.
 * A promise that is off is not checked; nothing else is different.
 */
export const capabilities = {
  /** A killed worker's jobs start elsewhere on this host within 2 s, not only after a lease. */
  deathByPid: true,
  /** Beats come from a thread of their own: a handler that blocks the event loop keeps its job. */
  beatThread: true,
  /** A worker lets its slots run empty for a suspect that has waited 5 s. */
  suspectsGetATurn: true,
} as const
