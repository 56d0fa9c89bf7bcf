import { expect, it } from 'vitest'
import { feed } from './feeding.ts'
import { run } from './run.ts'
import { judgeEnd } from './target.ts'

/** A machine that many share: nothing here waits for time to pass. */
const timeoutMs = 240_000

it(
  '1,704 job files, envelopes, configurations and command lines that are a little wrong end as documented, without a crash, a hang or a stack trace',
  async () => {
    const figures = await run('sample', () => {})
    expect(figures['inputs fed']).toBe(1_704)
  },
  timeoutMs,
)

it(
  'a wrong answer, a crash, an exit and an endless loop are each found, told with their input, and do not stop the rest',
  async () => {
    const wrong = await feed({ target: 'planted', seed: 1, from: 0, to: 6 })
    expect(wrong).toEqual([
      expect.stringMatching(/^planted, input 1: it is wrong\n {2}replay: .* planted 1 1$/),
      expect.stringMatching(/^planted, input 2: the process ended with 1: [\s\S]*it throws/),
      expect.stringMatching(/^planted, input 3: the process ended with 7/),
      expect.stringMatching(/^planted, input 4: it computes for more than 5 s/),
    ])
  },
  timeoutMs,
)

const fine = { code: 0, stdout: 'ID  Queue\n', stderr: '' }

it.each<[string, Partial<typeof fine>, string]>([
  ['the exit code of a bug', { code: 70, stderr: 'error: x\n' }, 'it exited 70'],
  ['an exit code that is not documented', { code: 4, stderr: 'error: x\n' }, 'it exited 4'],
  ['an internal error', { stderr: 'error: internal error\n' }, 'it speaks of an internal error'],
  ['a stack trace', { stderr: 'Error: x\n    at f (file:///x.js:1:2)\n' }, 'it shows a stack trace'],
  ['an escape sequence in a list', { stdout: '\u001b[31mred\n' }, 'it lets a control character through'],
  ['a refusal without a word', { code: 2 }, 'it exited 2 without a word'],
])('%s is a violation', (_, parts, told) => {
  expect(judgeEnd(fine)).toEqual([])
  expect(judgeEnd({ ...fine, ...parts })).toContainEqual(expect.stringContaining(told))
})
