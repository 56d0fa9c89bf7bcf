import { parse } from '@oclif/core/parser'
import { describe, expect, it } from 'vitest'
import {
  backoffFlag,
  countFlag,
  durationFlag,
  integerFlag,
  jobId,
  namesFlag,
  queueListFlag,
} from '../../src/cli/flags.ts'

const flags = {
  queue: queueListFlag(),
  job: namesFlag(),
  backoff: backoffFlag(),
  sleep: durationFlag(),
  tries: countFlag(),
  priority: integerFlag({ min: -100, max: 100 }),
}

async function read(word: string): Promise<unknown> {
  const { flags: values } = await parse([word], { flags })
  return Object.values(values)[0]
}

describe('flags', () => {
  it.each([
    ['--queue=high,default', ['high', 'default']],
    ['--queue=a,b,a', ['a', 'b']],
    ['--queue=*', 'all'],
    ['--job=send-welcome', ['send-welcome']],
    ['--backoff=10s,1m', { kind: 'list', delaysMs: [10_000, 60_000] }],
    ['--backoff=10s', { kind: 'fixed', delayMs: 10_000 }],
    ['--backoff=none', { kind: 'none' }],
    ['--sleep=1.5m', 90_000],
    ['--sleep=0', 0],
    ['--tries=3', 3],
    ['--priority=-5', -5],
  ])('%s is %j', async (word, value) => {
    expect(await read(word)).toEqual(value)
  })

  it.each([
    ['--queue=', '--queue needs at least one name, got ""'],
    ['--queue=,', '--queue has an empty name in ","'],
    ['--queue=a,,b', '--queue has an empty name in "a,,b"'],
    ['--queue=a,*', '--queue: "*" means every queue and cannot be combined with names or a limit'],
    ['--sleep=abc', '--sleep must be a duration'],
    ['--sleep=-1s', '--sleep must be a duration'],
    ['--sleep=99999d', '--sleep must be at most'],
    ['--backoff=10s,x', '--backoff[1] must be a duration'],
    ['--tries=0', '--tries must be a whole number of at least 1, got "0"'],
    ['--tries=1e3', '--tries must be a whole number of at least 1, got "1e3"'],
    ['--tries=99999999999999999999', '--tries must be a whole number'],
    ['--priority=101', '--priority must be a whole number from -100 to 100, got "101"'],
  ])('%s is refused as wrong usage', async (word, message) => {
    await expect(read(word)).rejects.toMatchObject({ code: 'USAGE', message: expect.stringContaining(message) })
  })

  it('an id is a whole number above zero, and nothing that only looks like one', () => {
    expect(jobId('42')).toBe(42)
    for (const text of ['0', '-1', '1.0', '1e3', '0x10', '', ' 1', '9007199254740993'])
      expect(() => jobId(text)).toThrow(expect.objectContaining({ code: 'USAGE' }))
  })
})
