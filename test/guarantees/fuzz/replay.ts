import { feed } from './feeding.ts'
import type { TargetName } from './target.ts'

/** Feeds one input again, as a violation names it: `node replay.ts TARGET SEED INPUT`. */

const [, , target, seed, input] = process.argv
const wrong = await feed({
  target: target as TargetName,
  seed: Number(seed),
  from: Number(input),
  to: Number(input) + 1,
})
console.log(wrong.join('\n') || 'nothing is wrong')
process.exitCode = wrong.length > 0 ? 1 : 0
