import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { Installation } from '../support/installation.ts'
import { canBeWithoutRights, expectRefusal, letAllIn, withoutRights } from '../support/refusals.ts'

/** Many processes, which a busy machine starts slowly. */
vi.setConfig({ testTimeout: 180_000 })

let installation: Installation

beforeAll(async () => {
  installation = await Installation.migrated('sqlite')
})
afterAll(() => installation[Symbol.asyncDispose]())

/** Every test of this file but those with an installation of their own leaves the database as it was: empty. */
async function expectNothingWritten(): Promise<void> {
  expect(
    await installation.ask('select (select count(*) from jobs) + (select count(*) from failed_jobs) as rows'),
  ).toEqual([{ rows: 0 }])
}

const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
const jobWith = (payload: string): string => `{"job":"note","payload":${payload}}`
const fiftyMegabytes = (): string => `"${'x'.repeat(50_000_000)}"`
const point = (line: string, column: number): string => `  1 | ${line}\n    | ${' '.repeat(column - 1)}^\n`

describe('dispatch FILE refuses, and writes nothing for,', () => {
  it.concurrent.each<[what: string, content: string | Uint8Array, says: string]>([
    ['an empty file', '', 'FILE is empty, expected JSON\n'],
    ['a file of blank lines', ' \n\r\n\t\n', 'FILE is empty, expected JSON\n'],
    ['a byte order mark alone', '\ufeff', 'FILE is empty, expected JSON\n'],
    [
      'garbage behind a value',
      '{"job":"note"} x',
      `FILE:1:16: expected the end after a value\n${point('{"job":"note"} x', 16)}`,
    ],
    [
      'two values on one line',
      '{"job":"note"} {"job":"note"}',
      `FILE:1:16: expected the end after a value\n${point('{"job":"note"} {"job":"note"}', 16)}`,
    ],
    [
      'two values on the second line',
      '{"job":"note"}\n{"job":"note"}{"job":"note"}\n',
      'FILE:2:15: expected the end after a value\n',
    ],
    [
      'a second value behind one of two lines',
      '{\n"job":"note"}\n{"job":"note"}',
      'FILE:3:1: expected the end after a value\n',
    ],
    [
      'a text that ends early',
      '{"job":"note","payload":',
      "FILE:1:25: expected a value after ':', but the text ends\n",
    ],
    [
      'a missing comma',
      '{\n  "job": "note",\n  "payload": 7 "queue": "high"\n}',
      "FILE:3:16: expected ',' or '}' after a value\n",
    ],
    [
      'bytes that are not UTF-8',
      Buffer.from('{"job":"note","payload":"\xff"}', 'latin1'),
      'FILE:1: not UTF-8 at byte 25\n',
    ],
    ['UTF-16', Buffer.from('\ufeff{"job":"note"}', 'utf16le'), 'FILE:1: not UTF-8 at byte 0, it looks like UTF-16\n'],
    [
      'a bad line after two good ones',
      '{"job":"note"}\n{"job":"note"}\n{"job"}\n',
      "FILE:3:7: expected ':' after a key\n",
    ],
    ['a bad element after a good one', '[{"job":"note"},\n{"job":7}]', 'FILE:2: job must be a name, got 7\n'],
    ['null', 'null', 'FILE:1: a job must be an object such as {"job":"send-welcome","payload":{}}, got null\n'],
    ['a number', '7', 'FILE:1: a job must be an object such as {"job":"send-welcome","payload":{}}, got a number\n'],
    [
      'a list in a list',
      '[[]]',
      'FILE:1: a job must be an object such as {"job":"send-welcome","payload":{}}, got a list\n',
    ],
    ['an object without a job', '{}', 'FILE:1: job must be a name, got undefined\n'],
    ['an unknown key', '{"job":"note","paylod":{}}', 'FILE:1: unknown key "paylod". Did you mean "payload"?\n'],
    ['the key __proto__', '{"job":"note","__proto__":{"tries":3}}', 'FILE:1: unknown key "__proto__"\n'],
    ['a key that stands twice', '{"job":"note","job":"hold"}', 'FILE:1:15: "job" stands here a second time\n'],
    ['50 MB on one line', jobWith(fiftyMegabytes()), 'FILE:1: this job has more than 1,114,112 bytes\n'],
    [
      '50 MB in a list',
      `[{"job":"note"},\n${jobWith(fiftyMegabytes())}]`,
      'FILE:2: this job has more than 1,114,112 bytes\n',
    ],
    ['50 MB that are not JSON', 'x'.repeat(50_000_000), 'FILE:1:'],
    [
      'a payload of 1 MiB and 1 byte',
      jobWith(`"${'x'.repeat(1_048_575)}"`),
      'FILE:1: the payload of note is 1,048,577 bytes, maxPayload allows 1,048,576\n',
    ],
    [
      '200,000 levels of nesting',
      jobWith(nested(200_000)),
      'FILE:1: "payload" is nested more than 1,000 levels deep\n',
    ],
    ['1,001 levels of nesting', jobWith(nested(1_001)), 'FILE:1: "payload" is nested more than 1,000 levels deep\n'],
    ['200,000 lists around nothing', nested(200_000), 'FILE:1: a job must be an object '],
  ])('%s', async (what, content, says) => {
    const file = `${what.replaceAll(/\W+/g, '-')}.json`
    installation.project.write(file, content)
    expectRefusal(await installation.run(['dispatch', file, '--quiet']), { code: 65, says: says.replace('FILE', file) })
    await expectNothingWritten()
  })

  it.concurrent.each<[what: string, members: string, says: string]>([
    ['0 tries', '"job":"note","tries":0', 'tries must be a whole number of at least 1, got 0'],
    ['tries of null', '"job":"note","tries":null', 'tries must be a whole number of at least 1, got null'],
    ['a delay of NaN', '"job":"note","delay":"NaN"', 'delay must be a duration such as '],
    ['a delay of 1e99 s', '"job":"note","delay":1e99', 'delay must be at most 3650d, got 1e+99'],
    ['a delay and a time', '"job":"note","delay":5,"at":"2030-01-31T09:00:00Z"', 'at and delay exclude each other'],
    [
      'a time without an offset',
      '"job":"note","at":"2030-01-31T09:00:00"',
      'at must be a time with an offset such as ',
    ],
    [
      'a queue of two lines',
      String.raw`"job":"note","queue":"a\nb"`,
      'queue must be free of control characters and valid ',
    ],
    [
      'a queue of 500 characters',
      `"job":"note","queue":"${'q'.repeat(500)}"`,
      'queue must have at most 255 characters, got 500',
    ],
    [
      'a job name with NUL',
      String.raw`"job":"note\u0000"`,
      'job must be free of control characters and valid Unicode, got "note',
    ],
    [
      'the job name constructor',
      '"job":"constructor"',
      'unknown job "constructor"\nnothing was dispatched\n  fix: khepri jobs lists the known ones; ',
    ],
    ['the job name ../../evil', '"job":"../../evil"', 'unknown job "../../evil"\n'],
  ])('%s, on the second line', async (what, members, says) => {
    const file = `${what.replaceAll(/\W+/g, '-')}.ndjson`
    installation.project.write(file, `{"job":"note"}\n{${members}}\n`)
    expectRefusal(await installation.run(['dispatch', file, '--quiet']), { code: 65, says: `${file}:2: ${says}` })
    await expectNothingWritten()
  })

  it.concurrent('a name of 500 characters and one of two lines, even with --allow-unknown', async () => {
    for (const [name, says] of [
      ['x'.repeat(500), 'job must have at most 255 characters, got 500'],
      ['note\nnote', 'job must be free of control characters and valid Unicode'],
    ] as const) {
      const file = `name-${name.length}.json`
      installation.project.write(file, JSON.stringify({ job: name }))
      const ended = await installation.run(['dispatch', file, '--allow-unknown'])
      expectRefusal(ended, { code: 65, says: `${file}:1: ${says}` })
    }
    await expectNothingWritten()
  })

  it.concurrent('a good file beside a bad one', async () => {
    installation.project.write('good.json', '{"job":"note"}')
    installation.project.write('bad.json', '{"job":"note"')
    expectRefusal(await installation.run(['dispatch', 'good.json', 'bad.json']), { code: 65, says: 'bad.json:1:14: ' })
    await expectNothingWritten()
  })
})

describe('dispatch --skip-invalid', () => {
  const terms = [
    ...[
      '"tries":-1',
      '"tries":1.5',
      '"tries":1e99',
      '"tries":"3"',
      '"tries":"NaN"',
      '"maxCrashes":-1',
      '"maxCrashes":0.5',
    ],
    ...['"delay":-1', '"delay":null', '"delay":"5 fortnights"', '"delay":"-5m"', '"at":"tomorrow"', '"at":1900000000'],
    ...['"at":"2030-02-30T09:00:00Z"', '"at":null', '"timeout":0', '"timeout":"NaN"', '"timeout":-1', '"timeout":1e99'],
    ...[
      '"backoff":{"kind":"exponentiel"}',
      '"backoff":[]',
      '"backoff":["1s",-1]',
      '"backoff":{"kind":"fixed"}',
      '"backoff":null',
    ],
    ...['"priority":1.5', '"priority":40000', '"priority":"high"', '"priority":null', '"unique":""', '"unique":7'],
    ...['"queue":""', '"queue":"a,b"', '"queue":"*"', '"queue":" x"', '"queue":7', String.raw`"queue":"\ud800"`],
  ].map((term) => `{"job":"note",${term}}`)
  const names = [
    '__proto__',
    'toString',
    '/etc/passwd',
    'file:///etc/passwd',
    'node:fs',
    '_ledger',
    'note.mjs',
    '',
    7,
    null,
  ].map((job) => JSON.stringify({ job }))
  const bad = [...terms, ...names]

  it(`leaves out ${bad.length} lines of terms and names that cannot be, keeps them as they were, and dispatches the rest`, async () => {
    await using own = await Installation.migrated('sqlite')
    own.project.write('mixed.ndjson', ['{"job":"note"}', ...bad, '{"job":"note","delay":"5","tries":2}', ''].join('\n'))
    const { code, stdout, stderr } = await own.run([
      'dispatch',
      'mixed.ndjson',
      '--skip-invalid',
      '--rejects',
      'bad.ndjson',
    ])
    expect(stdout).toBe('1\n2\n')
    expect(stderr).toMatch(
      new RegExp(
        `^Dispatched 2 jobs; ${bad.length} lines rejected, see bad\\.ndjson \\(first: line 2, tries must be a whole number of at least 1, got -1\\)\\. Run them: khepri work\\n$`,
      ),
    )
    expect(code).toBe(1)
    expect(readFileSync(join(own.project.path, 'bad.ndjson'), 'utf8')).toBe(`${bad.join('\n')}\n`)
    expect(await own.ask('select count(*) as rows from jobs')).toEqual([{ rows: 2 }])
  })
})

describe('dispatch refuses with 66, and does not wait for,', () => {
  const make: Readonly<Record<string, (path: string) => void>> = {
    'a file that is not there': () => {},
    'a folder': (path) => mkdirSync(path),
    'a FIFO that nobody writes': (path) => execFileSync('mkfifo', [path]),
    'a link to itself': (path) => symlinkSync(path, path),
  }
  it.concurrent.each([
    ['a file that is not there', 'cannot read FILE: no such file\n'],
    ['a folder', 'FILE is a directory, not a file\n'],
    [
      'a FIFO that nobody writes',
      'FILE is not a regular file\n  fix: to read from a pipe or device: khepri dispatch - < FILE\n',
    ],
    ['a link to itself', 'cannot read FILE: its links form a ring\n'],
  ])('%s', async (what, says) => {
    const file = what.replaceAll(' ', '-')
    make[what]?.(join(installation.project.path, file))
    expectRefusal(await installation.run(['dispatch', file, '--quiet']), {
      code: 66,
      says: says.replaceAll('FILE', file),
    })
    await expectNothingWritten()
  })

  it.concurrent('a path through a file', async () => {
    const ended = await installation.run(['dispatch', 'package.json/job.json'])
    expectRefusal(ended, { code: 66, says: 'cannot read package.json/job.json: a part of its path is not a folder\n' })
  })

  it.concurrent('a --payload @FILE that is not there', async () => {
    const ended = await installation.run(['dispatch', '--job', 'note', '--payload', '@missing.json'])
    expectRefusal(ended, { code: 66, says: 'cannot read missing.json: no such file\n' })
  })

  it.skipIf(!canBeWithoutRights)('a file that its user may not read', async () => {
    await using own = await Installation.migrated('sqlite')
    letAllIn(own.project)
    chmodSync(own.project.write('secret.json', '{"job":"note"}'), 0o200)
    const ended = await own.run(['dispatch', 'secret.json'], { shell: withoutRights })
    expectRefusal(ended, { code: 66, says: 'cannot read secret.json: permission denied\n' })
  })
})

describe('dispatch takes', () => {
  it.each<[what: string, content: string | Uint8Array, count: number]>([
    ['a byte order mark in front', '\ufeff{"job":"note"}', 1],
    ['lines that end with CRLF', '{"job":"note"}\r\n{"job":"note"}\r\n', 2],
    ['blank lines between jobs', '\n{"job":"note"}\n\n  \n{"job":"note"}', 2],
    ['a list over several lines', '[\n{"job":"note"},\n{"job":"note"}\n]\n', 2],
    ['an empty list, as nothing', '[]', 0],
    ['a payload of exactly 1 MiB', jobWith(`"${'x'.repeat(1_048_574)}"`), 1],
    ['exactly 1,000 levels of nesting', jobWith(nested(1_000)), 1],
  ])('%s', async (_, content, count) => {
    await using own = await Installation.migrated('sqlite')
    own.project.write('job.json', content)
    const { code, stdout } = await own.run(['dispatch', 'job.json'])
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: Array.from({ length: count }, (__, n) => `${n + 1}\n`).join(''),
    })
    await own.must('work', '--stop-when-empty')
    expect(own.ledger.ended.size).toBe(count)
  })
})

describe('dispatch - refuses', () => {
  it.concurrent.each([
    ['nothing', '', 'stdin is empty, expected JSON\n'],
    [
      'a bad line in the first chunk',
      '{"job":"note"}\n{"job":\n',
      "stdin:2:8: expected a value after ':', but the text ends\n",
    ],
    [
      'a line of 50 MB',
      `{"job":"note"}\n${jobWith(fiftyMegabytes())}\n`,
      'stdin:2: this job has more than 1,114,112 bytes\n',
    ],
  ])('%s, and writes nothing', async (_, stdin, says) => {
    expectRefusal(await installation.run(['dispatch', '-', '--quiet'], { stdin }), { code: 65, says })
    await expectNothingWritten()
  })

  it('a bad line in the third chunk of 2, and names the last line that is in', async () => {
    await using own = await Installation.migrated('sqlite')
    const stdin = `${'{"job":"note"}\n'.repeat(5)}{"job":\n`
    const ended = await own.run(['dispatch', '-', '--chunk=2'], { stdin })
    expectRefusal(ended, { code: 65, says: 'stdin:6:8: ' })
    expect(ended.stderr).toContain('\n4 jobs are in, up to stdin:4\n  fix: dispatch what comes after line 4 of stdin\n')
    expect(await own.ask('select count(*) as rows from jobs')).toEqual([{ rows: 4 }])
  })
})
