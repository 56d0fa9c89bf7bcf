import { describe, expect, it } from 'vitest'
import { asTyped, callingOf, shellWord } from '../../src/cli/own-words.ts'
import { KhepriProject } from '../support/khepri-project.ts'

it.each([
  ['khepri migrate', 'npx khepri migrate --config=c.ts'],
  ['khepri jobs lists the known ones', 'npx khepri jobs --config=c.ts lists the known ones'],
  ['khepri migrate && khepri work', 'npx khepri migrate --config=c.ts && npx khepri work --config=c.ts'],
  ['khepri help', 'npx khepri help'],
  ['use the khepri that migrated it', 'use the khepri that migrated it'],
  ['npm install khepri', 'npm install khepri'],
])('%j becomes %j', (text, typed) => {
  expect(asTyped(text, { program: 'npx khepri', flags: ' --config=c.ts' })).toBe(typed)
})

it('a password in --database is masked where the flag is repeated', () => {
  expect(callingOf({ database: 'postgres://app:s3cret@db1/app' }, {}).flags).toBe(
    " --database='postgres://app:***@db1/app'",
  )
})

it.each([
  ['./a-b_c.json', './a-b_c.json'],
  ['my file', "'my file'"],
  ["it's", `'it'\\''s'`],
])('%j is written as %j in a shell', (text, word) => {
  expect(shellWord(text)).toBe(word)
})

describe('recommended commands', () => {
  it('do not drop the --database and -C that were given', async () => {
    using project = new KhepriProject({ 'other.json': '{"tries":2}' })
    const { code, stderr } = await project.khepri(['work', '-C', 'other.json', '--database=sqlite:./other.db'])
    expect(code).toBe(78)
    expect(stderr).toContain('khepri migrate --config=other.json --database=sqlite:./other.db')
  })

  it('are not ones that the shell does not find where npx started khepri', async () => {
    using project = new KhepriProject()
    const { stderr } = await project.khepri(['init'], { env: { npm_command: 'exec', npm_lifecycle_event: 'npx' } })
    expect(stderr).toContain('Next:  npx khepri migrate && npx khepri dispatch ')
  })

  it('of init do not repeat the database, which is in the file by then', async () => {
    using project = new KhepriProject()
    const { stderr } = await project.khepri(['init', '--database=sqlite:./other.db'])
    expect(stderr).toContain('Next:  khepri migrate && khepri dispatch --job send-welcome ')
  })
})
