import { configDefaults, defineConfig } from 'vitest/config'

/** Campaigns of the verification programme: long, and run by `npm run verify`; KHEPRI_TEST_CAMPAIGNS=1 adds them here. */
const campaigns = ['database', 'fuzz', 'history', 'kills', 'simulation', 'statements'].map(
  (part) => `test/guarantees/${part}/**`,
)

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, ...(process.env.KHEPRI_TEST_CAMPAIGNS === '1' ? [] : campaigns)],
    globalSetup: ['test/support/postgres-setup.ts'],
    pool: 'forks',
    // Tests start whole processes and database servers: two files at a time keep a small machine quick.
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ['default', './test/support/reporter.ts'],
  },
})
