import type { JobContext } from './job.ts'

/**
 * Builds what one run of a job needs for itself: a connection, a logger, the user that it acts for.
 *
 * What it answers with is `scope` in the handler's context, and is disposed of when the handler has come back, by its
 * `Symbol.asyncDispose`, its `Symbol.dispose` or else its `dispose()`, if it has one of them.
 */
export type OpenScope = (context: Omit<JobContext, 'scope'>) => unknown

/** Disposes of what a scope hook has built. */
export async function disposeOf(scope: unknown): Promise<void> {
  if (typeof scope !== 'object' || scope === null) return
  const { dispose } = scope as { readonly dispose?: unknown }
  const disposal: unknown =
    (scope as Partial<AsyncDisposable>)[Symbol.asyncDispose] ??
    (scope as Partial<Disposable>)[Symbol.dispose] ??
    dispose
  if (typeof disposal === 'function') await disposal.call(scope)
}
