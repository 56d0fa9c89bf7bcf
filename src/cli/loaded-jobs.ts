import { setImmediate as oneTurn } from 'node:timers/promises'
import type { RegisteredJob, Registry } from '../core/registry.ts'
import type { Terms } from '../core/terms.ts'
import { watchBlockedLoads } from './blocked-loads.ts'

/** A registered job as far as it could be loaded. */
export interface LoadedJob {
  readonly name: string
  readonly source: string
  /** null where its module is broken. */
  readonly terms: Terms | null
  readonly fault: unknown
}

/** Imports the module of every registered job and looks for every executable; a module whose code never returns is named. */
export async function loadAll(registry: Registry): Promise<readonly LoadedJob[]> {
  const jobs: LoadedJob[] = []
  const stopWatching = watchBlockedLoads()
  for (const name of registry.names()) {
    const job = registry.get(name)
    if (job !== undefined) jobs.push(await load(job))
  }
  stopWatching()
  // What a module left to a promise is known to have failed one turn later.
  await oneTurn()
  return jobs
}

async function load(job: RegisteredJob): Promise<LoadedJob> {
  const { name, source } = job
  try {
    const handler = await job.handler()
    await handler.verify?.()
    return { name, source, terms: { ...handler.terms, ...(await job.terms()) }, fault: null }
  } catch (fault) {
    return { name, source, terms: null, fault }
  }
}
