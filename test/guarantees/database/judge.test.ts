import { expect, it } from 'vitest'
import type { LedgerLine } from '../../support/installation.ts'
import { type Account, judge } from './judge.ts'
import type { Asked, Batch } from './load.ts'

const good: Asked = { key: 'good', ms: 1, fails: 0, tries: 1 }
const mended: Asked = { key: 'mended', ms: 1, fails: 1, tries: 2 }
const doomed: Asked = { key: 'doomed', ms: 1, fails: 2, tries: 2 }
const ids = new Map([good, mended, doomed].map(({ key }, index) => [key, index + 1]))

const fine = { code: 0, signal: null, stdout: '', stderr: '' }
const unreachable = { ...fine, code: 69, stderr: 'error: cannot reach it\n  fix: is it up?\n' }
const unknown = {
  ...fine,
  code: 75,
  stderr: 'error: it broke off: the jobs may or may not have been queued\n  fix: look\n',
}

function line(what: LedgerLine['what'], { key }: Asked, attempt: number): LedgerLine {
  return { what, id: ids.get(key) ?? 0, attempt, crashes: 0, payload: JSON.stringify({ key }), pid: 7, at: 0 }
}

const ran: Readonly<Record<string, readonly LedgerLine[]>> = {
  good: [line('start', good, 1), line('end', good, 1)],
  mended: [line('start', mended, 1), line('start', mended, 2), line('end', mended, 2)],
  doomed: [line('start', doomed, 1), line('start', doomed, 2)],
}

/** What is to be seen of three jobs for which all went well, but for what is changed. */
function account(changes: Partial<Account> & { readonly ended?: Batch['ended'] } = {}): Account {
  const { ended = fine, ...rest } = changes
  return { batches: [{ jobs: [good, mended, doomed], ended }], lines: Object.values(ran).flat(), failed: [3], ...rest }
}

it('an account in which every job ran as planned has no violation', () => {
  expect(judge(account())).toEqual([])
})

it('a refused dispatch of which nothing ran, and one of unknown outcome, have no violation', () => {
  expect(judge(account({ ended: unreachable, lines: [], failed: [] }))).toEqual([])
  expect(judge(account({ ended: unknown, lines: [], failed: [] }))).toEqual([])
  expect(judge(account({ ended: unknown }))).toEqual([])
})

it.each<[string, Account, string]>([
  [
    'a job that exit 0 promised and nobody ran',
    account({ lines: [...(ran.mended ?? []), ...(ran.doomed ?? [])] }),
    'only 2 of them ever ran',
  ],
  ['a refused dispatch whose jobs ran', account({ ended: unreachable }), 'yet 3 of them ran'],
  [
    'half a file of unknown outcome',
    account({ ended: unknown, lines: ran.good ?? [], failed: [] }),
    '1 of them ran, as if it were no transaction',
  ],
  [
    'a second start',
    account({ lines: [...account().lines, line('start', good, 1)] }),
    'was to start as attempts 1, and started',
  ],
  [
    'a retry that did not come',
    account({ lines: account().lines.filter(({ id, attempt }) => id !== 3 || attempt === 1) }),
    'job 3 (doomed) was to start as attempts 1,2',
  ],
  [
    'a job that never came to its end',
    account({ lines: account().lines.filter(({ what }) => what === 'start') }),
    'job 1 (good) came to its end 0 times',
  ],
  ['a failed job in no list', account({ failed: [] }), 'job 3 (doomed) is not in the list of failed jobs'],
  ['a good job in the list of failed ones', account({ failed: [1, 3] }), 'job 1 (good) is in the list of failed jobs'],
  ['a stranger in the list of failed ones', account({ failed: [3, 99] }), '2 jobs are failed, and 1 should be'],
  ['an exit code of a bug', account({ ended: { ...unreachable, code: 70 }, lines: [], failed: [] }), 'exited 70'],
  [
    'a stack trace',
    account({
      ended: { ...unreachable, stderr: `${unreachable.stderr}    at f (/x.js:1:2)\n` },
      lines: [],
      failed: [],
    }),
    'with a stack trace',
  ],
  [
    'an error without a way out',
    account({ ended: { ...unreachable, stderr: 'error: no\n' }, lines: [], failed: [] }),
    'without a way out',
  ],
])('%s is a violation', (_, wrong, told) => {
  expect(judge(wrong)).toContainEqual(expect.stringContaining(told))
})
