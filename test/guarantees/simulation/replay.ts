import { planFor } from './plan.ts'
import { simulate } from './simulation.ts'

/** Plays one seed again and prints its plan and all that happens: node test/guarantees/simulation/replay.ts 812 */
const seed = Number(process.argv[2] ?? 0)
console.log(JSON.stringify(planFor(seed), null, 2))
const { lines, violations, hash } = await simulate(seed)
for (const line of lines) console.log(line)
console.log(`${violations.length} promises broken, trace ${hash}`)
process.exitCode = violations.length === 0 ? 0 : 1
