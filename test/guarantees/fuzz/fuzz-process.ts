import { Seeded } from '../simulation/seeded.ts'
import type { Target, TargetName } from './target.ts'

/**
 * A process of its own for one target, so that what hangs or crashes takes nobody with it: its parent hears of each input
 * before it is fed.
 */

/** What it tells its parent. */
export type Report =
  | { readonly kind: 'feeding'; readonly input: number }
  | { readonly kind: 'wrong'; readonly input: number; readonly what: string }
  | { readonly kind: 'ended' }

const openers: Readonly<Record<TargetName, () => Promise<Target>>> = {
  'job-files': async () => (await import('./job-files.ts')).jobFiles,
  envelopes: async () => (await import('./envelopes.ts')).envelopes,
  configs: async () => (await import('./configs.ts')).configs(),
  planted: async () => (await import('./planted.ts')).planted,
  'command-lines': async () => (await import('./command-lines.ts')).commandLines(),
}

const [, , name, seed, from, to] = process.argv

async function feedAll(target: Target): Promise<void> {
  for (let input = Number(from); input < Number(to); input++) {
    await tell({ kind: 'feeding', input })
    const wrong = await target.feed(new Seeded(Number(seed) * 1_000_003 + input), input)
    for (const what of wrong) await tell({ kind: 'wrong', input, what })
  }
}

/** Resolves when the parent will hear of it, whatever befalls this process afterwards. */
function tell(report: Report): Promise<void> {
  return new Promise((resolve) => process.send?.(report, () => resolve()))
}

const target = await openers[name as TargetName]()
await feedAll(target)
await target.close?.()
await tell({ kind: 'ended' })
process.disconnect()
