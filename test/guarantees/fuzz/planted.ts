import type { Target } from './target.ts'

/** The input on which each fault comes; every other one is taken well. */
export const plantedAt = { wrong: 1, throws: 2, exits: 3, spins: 4 } as const

/** A target with every fault that fuzzing looks for, to show that each is found. */
export const planted: Target = {
  feed: async (_, input) => {
    if (input === plantedAt.wrong) return ['it is wrong']
    if (input === plantedAt.throws) throw new Error('it throws')
    if (input === plantedAt.exits) process.exit(7)
    while (input === plantedAt.spins) Math.random()
    return []
  },
}
