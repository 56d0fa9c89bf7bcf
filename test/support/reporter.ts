import { writeSync } from 'node:fs'
import type { Reporter, SerializedError, TestModule } from 'vitest/node'

/** Ends every test run with the line "N passed, N failed, N skipped", after all that others print. */
export default class CountingReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const counts = { passed: 0, failed: unhandled.length, skipped: 0, pending: 0 }
    for (const module of modules) {
      // A file that cannot be loaded, or whose hook broke, has tests that nobody counted.
      counts.failed += module.errors().length
      for (const test of module.children.allTests()) counts[test.result().state] += 1
      for (const suite of module.children.allSuites()) counts.failed += suite.errors().length
    }
    const line = `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped + counts.pending} skipped\n`
    process.once('exit', () => writeSync(process.stdout.fd, line))
  }
}
