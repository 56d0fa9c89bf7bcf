import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Opened } from '../../../src/testing/index.ts'
import { histories, type Operation, StorePlayer } from '../../support/store-model.ts'
import { openMemory } from '../../support/stores.ts'

/** Operations in one history. */
export const historyLength = 60

/** So many operations lie between two looks at everything an operator can see. */
const lookEvery = 4

/**
 * Plays random histories on the memory store and on another one, side by side: each operation must have the same answer.
 *
 * Throws with the history and with the seed that makes it again.
 */
export function agree(
  open: () => Promise<Opened>,
  runs: { readonly count: number; readonly seed?: number },
): Promise<void> {
  const property = fc.asyncProperty(histories(historyLength), (history) => playOnBoth(history, open))
  return fc.assert(property, { numRuns: runs.count, ...(runs.seed !== undefined && { seed: runs.seed }) })
}

async function playOnBoth(history: readonly Operation[], open: () => Promise<Opened>): Promise<void> {
  const [model, real] = [await openMemory(), await open()]
  try {
    const [expected, actual] = [new StorePlayer(model), new StorePlayer(real)]
    for (const [step, operation] of history.entries()) {
      assert.deepEqual(await actual.play(operation), await expected.play(operation), `step ${step}, ${operation.kind}`)
      if (step % lookEvery === 0) assert.deepEqual(await actual.view(), await expected.view(), `after step ${step}`)
    }
    assert.deepEqual(await actual.view(), await expected.view(), 'in the end')
    assert.deepEqual(await actual.attempts(), await expected.attempts(), 'the attempts of every job')
  } finally {
    await real.close()
  }
}
