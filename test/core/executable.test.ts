import { expect, test } from 'vitest'
import { exec, parseExecutable } from '../../src/core/executable.ts'

const invalid = (message: string): object => expect.objectContaining({ code: 'CONFIG_INVALID', message })
const parse = (value: Readonly<Record<string, unknown>>) => parseExecutable(value, 'jobs.x')

test('exec() gives what the JSON form says', () => {
  const options = { queue: 'high', tries: 5, args: ['-q'], cwd: './data', env: { A: '1' } }
  expect(exec('./bin/resize.sh', options)).toEqual({ exec: './bin/resize.sh', ...options })
})

test('a command alone has no arguments, no variables of its own, and runs beside the configuration', () => {
  expect(parse({ exec: './x' })).toEqual({ command: './x', args: [], cwd: '.', env: {} })
})

test.each([
  { value: { exec: '' }, message: 'jobs.x.exec must be a path or a command, got ""' },
  { value: { exec: 7 }, message: 'jobs.x.exec must be a path or a command, got 7' },
  { value: { exec: './x\0y' }, message: 'jobs.x.exec must be a path or a command, got "./x\ufffdy"' },
  { value: { exec: './x', args: '-q' }, message: 'jobs.x.args must be a list of texts, got "-q"' },
  { value: { exec: './x', args: ['-q', 7] }, message: 'jobs.x.args[1] must be a text, got 7' },
  { value: { exec: './x', cwd: '' }, message: 'jobs.x.cwd must be a folder, got ""' },
  { value: { exec: './x', env: ['A=1'] }, message: 'jobs.x.env must be an object of texts, got a list' },
  { value: { exec: './x', env: { A: 1 } }, message: 'jobs.x.env.A must be a text, got 1' },
  {
    value: { exec: './x', env: { 'a.b': '1' } },
    message: 'a name in jobs.x.env must be made of letters, digits and _, and not begin with KHEPRI_JOB_, got "a.b"',
  },
  {
    value: { exec: './x', env: { KHEPRI_JOB_ID: '1' } },
    message:
      'a name in jobs.x.env must be made of letters, digits and _, and not begin with KHEPRI_JOB_, got "KHEPRI_JOB_ID"',
  },
  { value: { exec: './x', module: './y.ts' }, message: 'unknown key "module" in jobs.x' },
  { value: { exec: './x', shell: true }, message: 'unknown key "shell" in jobs.x' },
  { value: { exec: './x', arg: ['-q'] }, message: 'unknown key "arg" in jobs.x. Did you mean "args"?' },
])('$message', ({ value, message }) => {
  expect(() => parse(value)).toThrow(invalid(message))
})
