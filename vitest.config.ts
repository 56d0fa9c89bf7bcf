import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/postgres-setup.ts'],
    pool: 'forks',
    // Tests start whole processes and database servers: two files at a time keep a small machine quick.
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ['default', './test/support/reporter.ts'],
  },
})
