import { describe, expect, it } from 'vitest'
import { plantedFaults } from './planted-faults.ts'
import { run } from './run.ts'
import { type Plant, simulate } from './simulation.ts'

describe('the kernel on a virtual clock, with crashes, pauses, outages and clocks that jump', () => {
  it('keeps every promise in the runs of 200 seeds', async () => {
    const figures = await run('test', () => {})
    expect(figures).toMatchObject({ seeds: 200 })
    expect(figures['runs of handlers']).toBeGreaterThan(1_000)
  })

  it('does the same things at the same times in two runs of one seed, and others with another', async () => {
    const seeds = [3, 17, 61, 102]
    const hashes = async (): Promise<string[]> => {
      const all: string[] = []
      for (const seed of seeds) all.push((await simulate(seed)).hash)
      return all
    }
    const first = await hashes()
    expect(await hashes()).toEqual(first)
    expect(new Set(first).size).toBe(seeds.length)
  })
})

describe('a planted fault is found by one of the first 200 seeds:', () => {
  it.each(Object.entries(plantedFaults))('%s', async (_, plant) => {
    expect(await firstFound(plant)).toBeLessThan(200)
  })
})

/** The first seed whose run breaks a promise; Infinity where none of 200 does. */
async function firstFound(plant: Plant): Promise<number> {
  for (let seed = 0; seed < 200; seed++) if ((await simulate(seed, plant)).violations.length > 0) return seed
  return Number.POSITIVE_INFINITY
}
