import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/postgres-setup.ts'],
    pool: 'forks',
    // Tests start whole processes and database servers: three files at a time keep two cores busy.
    maxWorkers: 3,
    // Files share a process, and so the modules that each would load anew: a seventh of the whole run. None may leave
    // anything behind in it; what changes a process for good starts one of its own.
    isolate: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ['default', './test/support/reporter.ts'],
  },
})
