import { readFileSync } from 'node:fs'
import { violationsIn } from './checker.ts'
import type { History } from './history.ts'
import { promises } from './violation.ts'

/** Checks a history that was kept: `node test/guarantees/history/check.ts FILE`. */
const [, , file = ''] = process.argv
const violations = violationsIn(JSON.parse(readFileSync(file, 'utf8')) as History)
for (const { promise, what } of violations) console.log(`${promises[promise]}\n    ${what}`)
console.log(`${violations.length} promises were broken`)
process.exitCode = violations.length === 0 ? 0 : 1
