import { expect, it } from 'vitest'
import { run } from './run.ts'

it('3,058 job files, envelopes, configurations and command lines that are a little wrong end as documented, without a crash, a hang or a stack trace', async () => {
  const figures = await run('sample', () => {})
  expect(figures['inputs fed']).toBe(3_058)
}, 240_000)
