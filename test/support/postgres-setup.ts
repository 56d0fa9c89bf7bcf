import type { TestProject } from 'vitest/node'
import { findBinaries, startPostgres } from './postgres.ts'

/** Gives a whole test run one Postgres: `KHEPRI_TEST_PG_URL`, or a private one that ends with the run. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const given = process.env.KHEPRI_TEST_PG_URL
  if (given) {
    provide(project, given, null)
    return undefined
  }
  const binaries = findBinaries()
  if ('missing' in binaries) {
    if (isRequired()) throw new Error(`this run needs a real Postgres: ${binaries.missing}`)
    provide(project, null, binaries.missing)
    return undefined
  }
  const server = await startPostgres()
  provide(project, server.url, null)
  return () => server.remove()
}

function provide(project: TestProject, url: string | null, skip: string | null): void {
  project.provide('postgresUrl', url)
  project.provide('postgresSkip', skip)
}

function isRequired(): boolean {
  return Boolean(process.env.CI) || process.env.KHEPRI_TEST_REQUIRE === 'pg'
}
